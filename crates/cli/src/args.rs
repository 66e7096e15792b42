//! The command line of the program.

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::{
    add, call, check_config, demo, import, list, logs, remove, restart, revisions, serve, status, stdio,
};

/// One endpoint for all your MCP servers, for clients of every protocol revision.
#[derive(Parser, Debug)]
#[command(
    name = "dateline",
    version,
    about = "One endpoint for all your MCP servers, for clients of every protocol revision",
    after_help = "Examples:
  dateline serve                                      serve the configured servers (or a demo) at http://127.0.0.1:4400/mcp
  dateline serve --config ~/mcp.json                  serve the servers of a client's configuration
  dateline list http://127.0.0.1:4400/mcp             list what a server offers
  dateline import                                     show the servers that clients on this machine use
  dateline add time -- uvx mcp-server-time            configure one more server
  dateline status                                     show the state of the servers
  dateline restart time                               start a server again
  dateline revisions tools/call                       show in which revisions something exists
  dateline call http://127.0.0.1:4400/mcp add a=40 b=2
  dateline call echo message=hi -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 done; 1 the server answered with an error; 2 wrong usage or configuration;
3 a server cannot be started or reached; 4 the address cannot be listened on."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// What to log: error, warn, info, debug, trace, or a filter such as `gateway=debug`.
    #[arg(long, global = true, value_name = "LEVEL", env = "DATELINE_LOG", default_value = "warn")]
    pub(crate) log_level: String,

    /// How to log: lines for people, or one JSON object per line.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve all configured servers, merged, over HTTP.
    Serve(serve::Args),
    /// Serve all configured servers, merged, over standard input and output.
    ///
    /// This is for clients that start a command: configure `dateline stdio` as their one server.
    Stdio(stdio::Args),
    /// List the tools, resources and prompts of a server.
    List(list::Args),
    /// Call a tool of a server.
    Call(call::Args),
    /// Serve a demo server that shows every feature of the protocol.
    Demo(demo::Args),
    /// Show the state of the running dateline's servers.
    ///
    /// For each server: whether it runs, its revision and transport, how many calls it got, and what is wrong with it.
    Status(status::Args),
    /// Show the logs of the running dateline's servers.
    ///
    /// A log has the lines that the server wrote to standard error, and what dateline reports about it.
    Logs(logs::Args),
    /// Start a server of the running dateline again.
    Restart(restart::Args),
    /// Check a configuration, and show which servers would be served.
    CheckConfig(check_config::Args),
    /// Find the servers that other clients on this machine have, and add them to the configuration.
    ///
    /// The clients are Claude Desktop, Claude Code, VS Code, Cursor, Windsurf, Codex, Gemini, opencode and Zed. Without --apply,
    /// the servers are only shown.
    Import(import::Args),
    /// Add a server to the configuration: a URL, or a command after `--`.
    Add(add::Args),
    /// Remove a server from the configuration.
    Remove(remove::Args),
    /// Print a new random key, for --key-file or --admin-token-file.
    Key,
    /// Show what exists in which revision of the protocol, and what differs between revisions.
    #[command(after_help = revisions::help())]
    Revisions(revisions::Args),
    /// Ends the servers of a dateline that was killed; dateline starts this by itself.
    #[command(hide = true)]
    Guard,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}
