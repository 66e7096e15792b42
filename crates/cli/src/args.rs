//! What can be typed.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dateline::HttpOptions;

/// One endpoint for all your MCP servers, for clients of every protocol revision.
#[derive(Parser, Debug)]
#[command(
    name = "dateline",
    version,
    about = "One endpoint for all your MCP servers, for clients of every protocol revision",
    after_help = "Examples:
  dateline serve                                      serve what is configured (or a demo) at http://127.0.0.1:4400/mcp
  dateline serve --config ~/mcp.json                  serve the servers of a client's configuration
  dateline list http://127.0.0.1:4400/mcp             list what a server offers
  dateline import                                     see what the clients on this machine have configured
  dateline add time -- uvx mcp-server-time            configure one more server
  dateline status                                     how the running servers are
  dateline restart time                               start one of them again
  dateline call http://127.0.0.1:4400/mcp add a=40 b=2
  dateline revisions tools/call                       what of the protocol is in which revision
  dateline call echo message=hi -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 done; 1 the server answered with an error; 2 wrong usage or configuration;
3 a server cannot be started or reached; 4 the address cannot be listened on."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// What to log on stderr: error, warn, info, debug, trace, or a filter such as `gateway=debug`.
    #[arg(long, global = true, value_name = "LEVEL", env = "DATELINE_LOG", default_value = "warn")]
    pub(crate) log_level: String,

    /// How to log: lines for people, or a JSON object a line.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve all configured servers, merged, over HTTP.
    Serve(Serve),
    /// Serve all configured servers, merged, over standard input and output: for clients that launch a command.
    Stdio(StdioArgs),
    /// List the tools, resources and prompts of a server.
    List(Target),
    /// Call a tool of a server.
    Call(Call),
    /// Serve a demonstration of every feature.
    Demo(Demo),
    /// Show how the servers of the running dateline are.
    Status(Status),
    /// Show what servers say on stderr and what happens to them.
    Logs(Logs),
    /// Start a server of the running dateline again at once, whether it runs or not.
    Restart(Restart),
    /// Check a configuration and say what would be served.
    CheckConfig {
        /// The file; the user's own where none is named.
        file: Option<PathBuf>,
    },
    /// Find the servers that clients on this machine have configured (Claude Desktop and Code, VS Code, Cursor,
    /// Windsurf, Codex, Gemini, Zed) and show what would be added.
    Import(Import),
    /// Add a server to the configuration: a URL, or a command behind `--`.
    Add(Add),
    /// Remove a server from the configuration.
    Remove(Remove),
    /// Print a new key, for a file of them that several processes share (--key-file).
    Key,
    /// Show what exists in which revision of the protocol, and what differs between revisions.
    #[command(after_help = crate::revisions::help())]
    Revisions(Revisions),
    /// Ends process groups whose starter was killed; dateline starts it by itself.
    #[command(hide = true)]
    Guard,
}

#[derive(Args, Debug)]
pub(crate) struct Admin {
    /// The socket of the admin API. Default: dateline/admin.sock in $XDG_RUNTIME_DIR, else in the user's state
    /// directory.
    #[arg(long, value_name = "PATH", env = "DATELINE_ADMIN_SOCKET")]
    pub(crate) admin_socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) admin: Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// One server; all where none is named.
    pub(crate) server: Option<String>,
    /// Go on as more is said.
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Restart {
    /// The server's name.
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// Add what is shown.
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) configured: Configured,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Add {
    /// What the server is called.
    pub(crate) name: String,
    /// Its URL, where it is a remote one.
    #[arg(required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// A variable of its environment; can be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of every request to it, NAME=VALUE or 'NAME: VALUE'; can be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) configured: Configured,
    #[command(flatten)]
    pub(crate) admin: Admin,
    /// Its command, behind `--`.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Remove {
    /// The server's name.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) configured: Configured,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Configured {
    /// Configuration in the form that clients use: {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url",
    /// "headers"}}}. Comments are allowed. Default: $DATELINE_CONFIG, else dateline/config.json in the user's configuration
    /// directory, else a demo.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) configured: Configured,
    #[command(flatten)]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) admin: Admin,
    /// Serve the admin API under /v1 beside /mcp too: for whoever reaches the address, where that is this machine alone;
    /// else only for who has a token (--admin-token-file).
    #[arg(long)]
    pub(crate) admin_http: bool,
    /// Serve the admin API over HTTP to those only who send `Authorization: Bearer TOKEN` with a token of this file: one a
    /// line, as `dateline key` prints them. Read again when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "admin_http")]
    pub(crate) admin_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
}

#[derive(Args, Debug)]
pub(crate) struct StdioArgs {
    #[command(flatten)]
    pub(crate) configured: Configured,
}

#[derive(Args, Debug)]
pub(crate) struct Listen {
    /// Where to listen; can be repeated. ADDR:PORT serves HTTP (port 0 takes a free one), PORT alone is one on
    /// 127.0.0.1; unix:PATH and tcp:ADDR:PORT serve the framing of standard streams, a message a line.
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:4400", value_parser = place)]
    pub(crate) listen: Vec<String>,
    /// Listen on an address that other machines reach, although nobody has to log in.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// A host, such as gateway.example, under which this is reached, beside localhost and the addresses listened on; can be
    /// repeated.
    #[arg(long = "allow-host", value_name = "HOST", value_parser = transport::http::host)]
    pub(crate) allow_hosts: Vec<String>,
    /// An origin, such as https://app.example, whose pages may call from a browser beside this address's own; can be
    /// repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = transport::http::origin)]
    pub(crate) allow_origins: Vec<String>,
    /// Largest message that is taken, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_message: usize,
    #[command(flatten)]
    pub(crate) crowd: Crowd,
}

/// What the clients of one address of HTTP together may hold.
#[derive(Args, Debug)]
pub(crate) struct Crowd {
    /// How many connections an address of HTTP has; at most three quarters of the files that may be open. For one more,
    /// the one that has waited for its client for the longest is closed.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().connections)]
    pub(crate) max_connections: usize,
    /// How many sessions of older revisions are open. For one more, the longest unused ends.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().sessions)]
    pub(crate) max_sessions: usize,
    /// How many event streams without an end, listens and streams of sessions, are open.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().listens)]
    pub(crate) max_listens: usize,
    /// How many bytes of requests all clients together may have in memory, as many of answers that they have not read,
    /// and a quarter of that of answers that are kept for clients that come back.
    #[arg(long, value_name = "BYTES", default_value_t = HttpOptions::default().arriving)]
    pub(crate) max_held: usize,
    /// How much of each of these one address may use up, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = HttpOptions::default().share,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) share: u8,
    /// An address that stands for many clients, such as that of a proxy on another machine; can be repeated. No share
    /// holds for it, nor for 127.0.0.1 and ::1.
    #[arg(long = "shared-address", value_name = "ADDRESS")]
    pub(crate) shared_addresses: Vec<IpAddr>,
}

impl Crowd {
    /// As options of an endpoint.
    pub(crate) fn options(&self) -> HttpOptions {
        let defaults = HttpOptions::default();
        HttpOptions {
            connections: self.max_connections,
            sessions: self.max_sessions,
            listens: self.max_listens,
            arriving: self.max_held,
            leaving: self.max_held,
            kept: self.max_held / 4,
            share: self.share,
            shared: [&defaults.shared[..], &self.shared_addresses].concat(),
            ..defaults
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Serve standard input and output instead of HTTP.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) listen: Listen,
    /// Serve clients of one era only.
    #[arg(long, value_enum)]
    pub(crate) era: Option<EraArg>,
    /// How many entries a page of a list has at most; 250 where nothing is said.
    #[arg(long, value_name = "ENTRIES")]
    pub(crate) page_size: Option<NonZeroUsize>,
    /// Serve the skills of this folder, each a folder in it with a SKILL.md, instead of the demo's own.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) skills: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
}

#[derive(Args, Debug)]
pub(crate) struct KeysArg {
    /// Keys that several processes share, so that a client of 2026-07-28 can send each request to another one: its
    /// cursors and the state of its calls are sealed by the first key and opened by any. 32 bytes a line, in base64 or
    /// hex, as `dateline key` prints them; # begins a comment. Read again when it changes, and on SIGHUP. Default: a key
    /// that dies with the process.
    #[arg(long, value_name = "FILE", env = "DATELINE_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Revisions {
    /// What to show: whatever is called so. Everything where nothing is named.
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) names: Vec<String>,
    /// Show these revisions only; several with commas between them.
    #[arg(short, long, value_name = "DATE", value_delimiter = ',', value_parser = crate::revisions::revision)]
    pub(crate) revision: Vec<spec::Revision>,
    /// Show entries of these kinds only; several with commas between them.
    #[arg(short, long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kind: Vec<Kind>,
    /// Show only what is not the same in all revisions shown; with one of them, what it changed.
    #[arg(short, long)]
    pub(crate) changed: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Requests of a client.
    Methods,
    /// Requests of a server, or what it asks for in a result.
    Questions,
    /// Messages that are not answered.
    Notifications,
    /// What peers declare.
    Capabilities,
    /// Fields of the types that messages consist of.
    Fields,
    /// Kinds of content blocks.
    Content,
    /// Reserved keys of `_meta`.
    Meta,
    /// HTTP headers.
    Headers,
    /// Error codes.
    Codes,
    /// How a revision behaves.
    Behaviour,
}

impl Kind {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Methods => "methods",
            Kind::Questions => "questions",
            Kind::Notifications => "notifications",
            Kind::Capabilities => "capabilities",
            Kind::Fields => "fields",
            Kind::Content => "content",
            Kind::Meta => "meta",
            Kind::Headers => "headers",
            Kind::Codes => "codes",
            Kind::Behaviour => "behaviour",
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum EraArg {
    /// Those that open a session with initialize.
    Legacy,
    /// Those whose requests stand alone.
    Modern,
}

#[derive(Args, Debug)]
pub(crate) struct Target {
    /// A URL, or the name of a configured server.
    #[arg(value_name = "TARGET", required_unless_present = "command")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) configured: Configured,
    /// Where the server is one to be started: its command, behind `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Call {
    /// A URL or the name of a configured server, the tool, and its arguments: `key=value` (a value that is JSON
    /// is taken as such, anything else as text), or one JSON object. With `-- COMMAND ARGS` the server is
    /// started, and the tool comes first.
    #[arg(value_name = "TARGET TOOL [ARGS]", required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) configured: Configured,
    /// Where the server is one to be started: its command, behind `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where to listen. A port by itself is one that this machine reaches.
fn place(text: &str) -> Result<String, String> {
    let (prefix, address) = match text.split_once(':') {
        Some(("unix", "")) => return Err("unix: lacks the path of the socket".into()),
        Some(("unix", _)) => return Ok(text.to_owned()),
        Some(("tcp", address)) => ("tcp:", address),
        _ => ("", text),
    };
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    if port.parse::<u16>().is_err() {
        return Err(format!(
            "{text:?} names no port from 0 to 65535; write PORT, ADDR:PORT, unix:PATH or tcp:ADDR:PORT"
        ));
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(format!("{prefix}{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_port_by_itself_is_one_on_this_machine() {
        for (typed, read) in [
            ("4631", "127.0.0.1:4631"),
            (":4631", "127.0.0.1:4631"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:1", "localhost:1"),
            ("tcp:4631", "tcp:127.0.0.1:4631"),
            ("unix:/x:1", "unix:/x:1"),
        ] {
            assert_eq!(place(typed).as_deref(), Ok(read));
        }
        for typed in ["", "localhost", "65536", "127.0.0.1:", "http://127.0.0.1:80/mcp", "unix:", "tcp:x"] {
            assert!(place(typed).is_err(), "{typed}");
        }
    }
}
