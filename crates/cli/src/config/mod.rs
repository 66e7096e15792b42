//! Configuration as it is found: the files of desktop clients and editors, with a section of our own.

mod edit;
mod found;
mod read;

use std::path::{Path, PathBuf};

use gateway::Options;

use crate::args::Configured;
use crate::exit::Failure;

pub(crate) use edit::{Entry, add, remove};
pub(crate) use found::on_this_machine;
pub(crate) use read::{Warning, read};

/// A configuration that was read.
#[derive(Clone)]
pub(crate) struct Config {
    /// Where it stands.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) options: Options,
    /// What is odd about it.
    pub(crate) warnings: Vec<Warning>,
}

/// Where the configuration is: as named, as `$DATELINE_CONFIG` says, or the user's own. The last may be missing.
///
/// The working directory is never looked into: a repository that someone cloned must not start commands.
pub(crate) fn place(configured: &Configured) -> Option<(PathBuf, bool)> {
    let named = configured
        .config
        .clone()
        .or_else(|| std::env::var_os("DATELINE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    named.map(|path| (path, true)).or_else(|| home().map(|path| (path, false)))
}

/// Reads the configuration; `None` where there is none.
pub(crate) fn load(configured: &Configured) -> Result<Option<Config>, Failure> {
    let Some((path, must_exist)) = place(configured) else { return Ok(None) };
    if !must_exist && !path.exists() {
        return Ok(None);
    }
    from(&path).map(Some).map_err(Failure::Usage)
}

/// Reads a file.
pub(crate) fn from(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the configuration {}: {error}", path.display()))?;
    let env = |name: &str| std::env::var(name).ok();
    let (options, warnings) = read(&text, &env).map_err(|why| format!("{}:{why}", path.display()))?;
    Ok(Config { path: path.to_owned(), options, warnings })
}

/// The user's own configuration file.
pub(crate) fn home() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("dateline/config.json"))
}

/// Where names are remembered and the admin socket is.
pub(crate) fn state(file: &str) -> Option<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("dateline").join(file))
}

/// A folder of the user's, by the XDG base directory specification.
fn user_folder(variable: &str, default: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => Some(PathBuf::from(folder)),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(default)),
    }
}
