//! Configuration as it is found: the files of desktop clients and editors, with a section of our own.

mod edit;
mod entry;
mod found;
mod lock;
mod read;
mod reader;
mod section;
mod values;

use std::path::{Path, PathBuf};

use gateway::{Options, ServerOptions, Target};

use crate::exit::Failure;
use crate::options::ConfigOptions;

pub(crate) use edit::{add, remove, text_of};
pub(crate) use entry::Entry;
pub(crate) use found::{Found, on_this_machine};
pub(crate) use read::read;
pub(crate) use reader::{Broken, Warning};
pub(crate) use values::{meant_url, without_path};

/// A configuration that was read.
#[derive(Clone, PartialEq)]
pub(crate) struct Config {
    /// Where it stands.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) options: Options,
    /// The servers of it that cannot be used.
    pub(crate) broken: Vec<Broken>,
    /// What is odd about it.
    pub(crate) warnings: Vec<Warning>,
}

impl Config {
    /// What its owner should know, a line each.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let broken = self.broken.iter().map(|broken| self.of(broken));
        broken
            .chain(self.warnings.iter().map(|warning| format!("{}:{warning}", self.path.display())))
            .collect()
    }

    /// Why a server cannot be used.
    pub(crate) fn complaint(&self, server: &str) -> Option<String> {
        self.broken.iter().find(|broken| broken.name == server).map(|broken| self.of(broken))
    }

    /// How many servers can be used.
    pub(crate) fn usable(&self) -> usize {
        self.options.servers.iter().filter(|server| !matches!(server.target, Target::Unusable(_))).count()
    }

    fn of(&self, Broken { name, wrong }: &Broken) -> String {
        let Warning { line, what } = wrong;
        format!("{}:{line}: the server {name:?} cannot be used: {what}", self.path.display())
    }
}

/// Where the configuration is: as named, as `$DATELINE_CONFIG` says, or the user's own. The last may be missing.
///
/// The working directory is never looked into: a repository that someone cloned must not start commands.
pub(crate) fn place(configured: &ConfigOptions) -> Option<(PathBuf, bool)> {
    let named = configured
        .config
        .clone()
        .or_else(|| std::env::var_os("DATELINE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    named.map(|path| (path, true)).or_else(|| home().map(|path| (path, false)))
}

/// Reads the configuration; `None` where there is none.
pub(crate) fn load(configured: &ConfigOptions) -> Result<Option<Config>, Failure> {
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
    let mut read = read(&text, &env).map_err(|why| format!("{}:{why}", path.display()))?;
    read.options.source = Some(absolute(path));
    Ok(Config { path: path.to_owned(), options: read.options, broken: read.broken, warnings: read.warnings })
}

/// A path that means the same in every working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What may be wrong with a server without being wrong in itself: it is looked for on this machine, now.
pub(crate) fn doubts(server: &ServerOptions) -> Vec<String> {
    let mut doubts = Vec::new();
    match &server.target {
        Target::Program(program) => {
            let path = program.env.get("PATH").map(String::as_str);
            if values::find(&program.command, path).is_none() && !is_relative(&program.command) {
                doubts.push(format!("there is no program {:?} on this machine", program.command));
            }
            if let Some(folder) = program.cwd.as_ref().filter(|folder| !folder.is_dir()) {
                doubts.push(format!("\"cwd\" is {}, which is no folder", folder.display()));
            }
        }
        Target::Remote(remote) => {
            let meant = without_path(&remote.url);
            doubts.extend(
                meant.map(|meant| format!("its URL names no path; most servers are at one, as in {meant}")),
            );
        }
        Target::Local(_) | Target::Unusable(_) => {}
    }
    doubts
}

/// Whether a program is named from the folder that it runs in.
fn is_relative(command: &str) -> bool {
    command.contains('/') && !command.starts_with('/')
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
