//! `dateline check-config`.

use std::path::PathBuf;

use gateway::{ServerOptions, Target};
use serde_json::json;

use crate::config;
use crate::config_commands::count_servers;
use crate::escape;
use crate::exit::Failure;
use crate::options::ConfigOptions;
use crate::terminal::print;

#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  dateline check-config ~/mcp.json")]
pub(crate) struct Args {
    /// The configuration file. Default: $DATELINE_CONFIG, else dateline/config.json in the user's configuration directory.
    pub(crate) file: Option<PathBuf>,
}

/// `dateline check-config`.
pub(crate) fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let configured = ConfigOptions { config: args.file };
    let Some((path, named)) = config::locate(&configured) else {
        return Err(Failure::Usage(
            "no configuration can be found, since $HOME is not set; name a file".into(),
        ));
    };
    if !named && !path.exists() {
        return Err(Failure::Usage(format!(
            "there is no configuration at {}; `dateline add` or `dateline import` makes one",
            path.display()
        )));
    }
    let config = config::load_file(&path).map_err(Failure::Usage)?;
    let servers = &config.options.servers;
    let verdict = match config.unusable.len() {
        0 => Ok(()),
        count => Err(Failure::Usage(format!(
            "{} in {} cannot be used; the others can",
            count_servers(count),
            path.display()
        ))),
    };
    if as_json {
        let warnings: Vec<_> =
            config.warnings.iter().map(|w| json!({"line": w.line, "what": w.what})).collect();
        let unusable: Vec<_> = config
            .unusable
            .iter()
            .map(|server| json!({"name": server.name, "line": server.problem.line, "what": server.problem.what}))
            .collect();
        let servers: Vec<_> = usable(servers)
            .map(|s| json!({"name": s.name, "target": target(s), "doubts": config::doubts(s)}))
            .collect();
        let shown = json!({"file": path, "servers": servers, "unusable": unusable, "warnings": warnings});
        print(&escape::json(&shown))?;
        return verdict;
    }
    let count = usable(servers).count();
    let mut shown = match &verdict {
        Ok(()) => format!("{} is valid, with {}\n", path.display(), count_servers(count)),
        Err(_) => format!("{} has {} that can be used\n", path.display(), count_servers(count)),
    };
    for server in usable(servers) {
        shown += &format!("  {}  {}\n", escape::line(&server.name), escape::line(&target(server)));
        for doubt in config::doubts(server) {
            shown += &format!("    warning: {}\n", escape::line(&doubt));
        }
    }
    for problem in config.problems() {
        shown += &format!("warning: {}\n", escape::line(&problem));
    }
    print(&shown)?;
    verdict
}

/// The servers that can be used.
fn usable(servers: &[ServerOptions]) -> impl Iterator<Item = &ServerOptions> {
    servers.iter().filter(|server| !matches!(server.target, Target::Unusable(_)))
}

/// The command line or the URL of a server, for people. Parts of a URL that may be secret are left out.
fn target(server: &ServerOptions) -> String {
    match &server.target {
        Target::Program(program) => {
            [std::slice::from_ref(&program.command), &program.args].concat().join(" ")
        }
        Target::Remote(remote) => transport::shown_url(&remote.url),
        Target::Local(_) | Target::Unusable(_) => String::new(),
    }
}
