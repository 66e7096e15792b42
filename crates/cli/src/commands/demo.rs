//! `dateline demo`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueEnum;
use dateline::Revisions;

use crate::exit::Failure;
use crate::keys::Keyring;
use crate::listeners::{Listeners, limits};
use crate::options::{KeyOptions, ListenOptions};
use crate::signals::on_signal;

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  dateline demo\n  dateline demo --stdio")]
pub(crate) struct Args {
    /// Serve over standard input and output instead of HTTP.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) listen: ListenOptions,
    /// Serve clients of one era only. Default: both.
    #[arg(long, value_enum)]
    pub(crate) era: Option<EraOption>,
    /// How many entries a page of a list has at most. Default: 250.
    #[arg(long, value_name = "ENTRIES")]
    pub(crate) page_size: Option<NonZeroUsize>,
    /// Serve the skills in this folder instead of the demo's own. Each skill is a folder with a SKILL.md.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) skills: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyOptions,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum EraOption {
    /// Revisions that begin with initialize.
    Legacy,
    /// Revisions in which each request stands alone.
    Modern,
}

/// `dateline demo`.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let shutdown = on_signal()?;
    let keys = Keyring::open(args.keys.key_file, &shutdown)?;
    let skills = match args.skills {
        None => demo::skills().map_err(|e| Failure::Other(e.to_string()))?,
        Some(folder) => dateline::Skills::from_folder(folder).map_err(|e| Failure::Usage(e.to_string()))?,
    };
    let server = demo::server(Some(skills), |demo| {
        let demo = demo.keys(keys);
        match args.page_size {
            Some(entries) => demo.page_size(entries.get()),
            None => demo,
        }
    });
    let server = server.map_err(|e| Failure::Other(e.to_string()))?;
    let revisions = match args.era {
        None => Revisions::ALL,
        Some(EraOption::Legacy) => Revisions::LEGACY,
        Some(EraOption::Modern) => Revisions::MODERN,
    };
    let limits = limits(&args.listen);
    if args.stdio {
        let served = dateline::stdio_until(server, revisions, limits, shutdown).await;
        return served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")));
    }
    Listeners::new(server, revisions, &args.listen, &shutdown, "the demo").await?.serve(None).await
}
