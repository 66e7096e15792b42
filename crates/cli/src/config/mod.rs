//! The configuration: a file in the form that desktop clients and editors use, with a section for dateline itself.

mod clients;
mod edit;
mod lock;
mod read;
mod reader;
mod section;
mod server_entry;
mod values;

use std::path::{Path, PathBuf};

use gateway::{Options, ServerOptions, Target};

use crate::exit::Failure;
use crate::options::ConfigOptions;

pub(crate) use clients::{ClientServer, servers_of_clients};
pub(crate) use edit::{add, remove, text_of};
pub(crate) use read::read;
pub(crate) use reader::{Problem, UnusableServer};
pub(crate) use server_entry::ServerEntry;
pub(crate) use values::{suggested_path, suggested_url};

/// A configuration file that was read.
#[derive(Clone, PartialEq)]
pub(crate) struct Config {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The options for the gateway. Servers that cannot be used are in them, as such.
    pub(crate) options: Options,
    /// The servers that cannot be used.
    pub(crate) unusable: Vec<UnusableServer>,
    /// What is odd and is ignored.
    pub(crate) warnings: Vec<Problem>,
}

impl Config {
    /// Everything that is wrong with the file or odd about it, one line each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let unusable = self.unusable.iter().map(|server| self.describe(server));
        unusable
            .chain(self.warnings.iter().map(|warning| format!("{}:{warning}", self.path.display())))
            .collect()
    }

    /// Why a server cannot be used; `None` when it can.
    pub(crate) fn why_unusable(&self, server: &str) -> Option<String> {
        self.unusable.iter().find(|unusable| unusable.name == server).map(|unusable| self.describe(unusable))
    }

    /// How many servers can be used.
    pub(crate) fn usable(&self) -> usize {
        self.options.servers.iter().filter(|server| !matches!(server.target, Target::Unusable(_))).count()
    }

    fn describe(&self, UnusableServer { name, problem }: &UnusableServer) -> String {
        let Problem { line, what } = problem;
        format!("{}:{line}: the server {name:?} cannot be used: {what}", self.path.display())
    }
}

/// The path of the configuration, and whether the file must exist.
///
/// The path is that of `--config`, else that of `$DATELINE_CONFIG`, else that of the user's own configuration, which may
/// be missing. The working directory does not count: a cloned repository must not start commands.
pub(crate) fn locate(configured: &ConfigOptions) -> Option<(PathBuf, bool)> {
    let named = configured
        .config
        .clone()
        .or_else(|| std::env::var_os("DATELINE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    named.map(|path| (path, true)).or_else(|| user_config().map(|path| (path, false)))
}

/// Reads the configuration; `None` when there is none.
pub(crate) fn load(configured: &ConfigOptions) -> Result<Option<Config>, Failure> {
    let Some((path, must_exist)) = locate(configured) else { return Ok(None) };
    if !must_exist && !path.exists() {
        return Ok(None);
    }
    load_file(&path).map(Some).map_err(Failure::Usage)
}

/// Reads a configuration file.
///
/// # Errors
/// When the file cannot be read, or nothing of it can be used. The error names the file, and the line if there is one.
pub(crate) fn load_file(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the configuration {}: {error}", path.display()))?;
    let env = |name: &str| std::env::var(name).ok();
    let mut parsed = read(&text, &env).map_err(|why| format!("{}:{why}", path.display()))?;
    parsed.options.source = Some(absolute(path));
    Ok(Config {
        path: path.to_owned(),
        options: parsed.options,
        unusable: parsed.unusable,
        warnings: parsed.warnings,
    })
}

/// A path that means the same in every working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What may keep a server from running on this machine at this moment, although its entry is right.
pub(crate) fn doubts(server: &ServerOptions) -> Vec<String> {
    let mut doubts = Vec::new();
    match &server.target {
        Target::Program(program) => {
            let path = program.env.get("PATH").map(String::as_str);
            if values::find_program(&program.command, path).is_none() && !is_relative(&program.command) {
                doubts.push(format!("there is no program {:?} on this machine", program.command));
            }
            if let Some(folder) = program.cwd.as_ref().filter(|folder| !folder.is_dir()) {
                doubts.push(format!("\"cwd\" is {}, which is not a folder", folder.display()));
            }
        }
        Target::Remote(remote) => {
            let suggested = suggested_path(&remote.url);
            doubts.extend(suggested.map(|url| {
                format!("its URL has no path; most servers have one, so it may have to be {url}")
            }));
        }
        Target::Local(_) | Target::Unusable(_) => {}
    }
    doubts
}

/// Whether a command is a path from the folder that the program runs in.
fn is_relative(command: &str) -> bool {
    command.contains('/') && !command.starts_with('/')
}

/// The path of the user's own configuration.
fn user_config() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("dateline/config.json"))
}

/// The path of a file that dateline keeps for the user, such as the names that were given to tools.
pub(crate) fn state_file(file: &str) -> Option<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("dateline").join(file))
}

/// A folder of the user.
///
/// <https://specifications.freedesktop.org/basedir-spec/latest/>
fn user_folder(variable: &str, default: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => Some(PathBuf::from(folder)),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(default)),
    }
}
