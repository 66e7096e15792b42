//! `dateline check-config`.

use std::path::PathBuf;

use gateway::{ServerOptions, Target};
use serde_json::json;

use crate::config;
use crate::configure::servers_of;
use crate::exit::Failure;
use crate::options::ConfigOptions;
use crate::terminal::print;
use crate::words;

#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  dateline check-config ~/mcp.json")]
pub(crate) struct Args {
    /// The configuration file. Default: $DATELINE_CONFIG, else dateline/config.json in the user's configuration directory.
    pub(crate) file: Option<PathBuf>,
}

/// `dateline check-config`.
pub(crate) fn run(args: Args, as_json: bool) -> Result<(), Failure> {
    let configured = ConfigOptions { config: args.file };
    let Some((path, named)) = config::place(&configured) else {
        return Err(Failure::Usage("there is no configuration; name a file".into()));
    };
    if !named && !path.exists() {
        return Err(Failure::Usage(format!(
            "there is no configuration at {}; `dateline add` or `dateline import` makes one",
            path.display()
        )));
    }
    let config = config::from(&path).map_err(Failure::Usage)?;
    let servers = &config.options.servers;
    let verdict = match config.broken.len() {
        0 => Ok(()),
        broken => Err(Failure::Usage(format!(
            "{} in {} cannot be used; the others are served all the same",
            servers_of(broken),
            path.display()
        ))),
    };
    if as_json {
        let warnings: Vec<_> =
            config.warnings.iter().map(|w| json!({"line": w.line, "what": w.what})).collect();
        let broken = config.broken.iter();
        let broken: Vec<_> =
            broken.map(|b| json!({"name": b.name, "line": b.wrong.line, "what": b.wrong.what})).collect();
        let servers: Vec<_> = fine(servers)
            .map(|s| json!({"name": s.name, "target": target(s), "doubts": config::doubts(s)}))
            .collect();
        let shown = json!({"file": path, "servers": servers, "unusable": broken, "warnings": warnings});
        print(&words::json(&shown))?;
        return verdict;
    }
    let count = fine(servers).count();
    let mut shown = match &verdict {
        Ok(()) => format!("{} is fine, with {}\n", path.display(), servers_of(count)),
        Err(_) => format!("{} has {} that can be used\n", path.display(), servers_of(count)),
    };
    for server in fine(servers) {
        shown += &format!("  {}  {}\n", words::line(&server.name), words::line(&target(server)));
        for doubt in config::doubts(server) {
            shown += &format!("    but {}\n", words::line(&doubt));
        }
    }
    for complaint in config.complaints() {
        shown += &format!("warning: {}\n", words::line(&complaint));
    }
    print(&shown)?;
    verdict
}

/// Those that can be used.
fn fine(servers: &[ServerOptions]) -> impl Iterator<Item = &ServerOptions> {
    servers.iter().filter(|server| !matches!(server.target, Target::Unusable(_)))
}

/// Where a server is, in words. Values that may be secret are not shown.
fn target(server: &ServerOptions) -> String {
    match &server.target {
        Target::Program(program) => {
            [std::slice::from_ref(&program.command), &program.args].concat().join(" ")
        }
        Target::Remote(remote) => transport::shown_url(&remote.url),
        Target::Local(_) | Target::Unusable(_) => String::new(),
    }
}
