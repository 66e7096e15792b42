//! The options of a gateway: its servers, and how their tools and prompts are named.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::Service;
use spec::Era;
use transport::client::{Program, Remote};

/// The options of a gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The servers. Merged lists show their entries in this order.
    pub servers: Vec<ServerOptions>,
    /// When the gateway puts a server's name in front of the names of its tools and prompts.
    pub prefix: Prefix,
    /// Which characters the names of tools and prompts may have.
    pub names: Names,
    /// The configuration file that the options were read from, if there is one. `dateline status` shows it.
    pub source: Option<PathBuf>,
}

/// Which characters the names of tools and prompts may have. The gateway replaces every other character by `_`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Names {
    /// `A-Z a-z 0-9 _ - .`, which the protocol allows.
    #[default]
    Protocol,
    /// `A-Z a-z 0-9 _ -`, which the interfaces of models allow.
    Strict,
}

impl Names {
    /// Returns whether a name may have this character.
    pub(crate) fn has(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.' && self == Names::Protocol
    }
}

/// When the gateway puts a server's name in front of the names of its tools and prompts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// Always.
    Always,
    /// Where two servers use the same name.
    #[default]
    Collision,
    /// Never. Where two servers use the same name, the gateway shows the entry of the first server only.
    None,
}

/// The options of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOptions {
    /// The name of the server. No other server of the gateway has it.
    pub name: String,
    /// Where the server is.
    pub target: Target,
    /// The tools that clients are shown, by their own names. An empty list shows all of them.
    pub allow: Vec<Pattern>,
    /// The tools that clients are not shown, also where `allow` names them.
    pub deny: Vec<Pattern>,
    /// What clients are told of its tools instead of what the server says, by the own name of each tool.
    pub overrides: BTreeMap<String, Override>,
    /// How many processes or connections of the server the gateway keeps.
    pub pool: Pool,
    /// How long a call may take. Without a value, the limit of the gateway holds.
    pub call_timeout: Option<Duration>,
    /// The era in which the gateway speaks to the server. Without a value, the gateway finds it out.
    pub era: Option<Era>,
}

/// Where a server is, and how the gateway reaches it.
#[derive(Clone)]
pub enum Target {
    /// A program. The gateway starts it and speaks to it over its standard streams.
    Program(Program),
    /// A URL, for Streamable HTTP or HTTP+SSE.
    Remote(Remote),
    /// A service in this process.
    Local(Arc<dyn Service>),
    /// The configuration of the server cannot be used, for this reason. The server counts as down.
    Unusable(String),
}

impl fmt::Debug for Target {
    /// Leaves out values that may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Program(program) => write!(f, "Program({})", program.command),
            Target::Remote(remote) => write!(f, "Remote({})", remote.url),
            Target::Local(_) => f.write_str("Local"),
            Target::Unusable(_) => f.write_str("Unusable"),
        }
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Program(a), Target::Program(b)) => a == b,
            (Target::Remote(a), Target::Remote(b)) => a == b,
            (Target::Local(a), Target::Local(b)) => Arc::ptr_eq(a, b),
            (Target::Unusable(a), Target::Unusable(b)) => a == b,
            _ => false,
        }
    }
}

/// What clients are told of a tool instead of what its server says.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Override {
    /// The name that clients see. The gateway puts nothing in front of it.
    pub name: Option<String>,
    /// The title that clients see.
    pub title: Option<String>,
    /// The description that clients see.
    pub description: Option<String>,
}

/// How many processes or connections of one server the gateway keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// How many are always there. With 0, the gateway starts the server when it is first used.
    pub min: usize,
    /// How many there are at most. A call gets a free one if there is one.
    pub max: usize,
    /// How long one above `min` may be unused before the gateway closes it.
    pub idle: Duration,
}

impl Default for Pool {
    /// One, which is always there. More would be closed after 300 seconds without use.
    fn default() -> Pool {
        Pool { min: 1, max: 1, idle: Duration::from_secs(300) }
    }
}

/// A pattern for names, in which `*` stands for any number of any characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

impl Pattern {
    /// Makes a pattern. Every text is a valid one.
    pub fn new(pattern: &str) -> Pattern {
        Pattern(pattern.to_owned())
    }

    /// Returns whether the pattern fits the whole name.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl ServerOptions {
    /// Makes the options of a server. All others have their defaults.
    pub fn new(name: &str, target: Target) -> ServerOptions {
        ServerOptions {
            name: name.to_owned(),
            target,
            allow: Vec::new(),
            deny: Vec::new(),
            overrides: BTreeMap::new(),
            pool: Pool::default(),
            call_timeout: None,
            era: None,
        }
    }

    /// Returns whether clients are shown a tool of this name.
    pub(crate) fn shows(&self, tool: &str) -> bool {
        (self.allow.is_empty() || self.allow.iter().any(|p| p.matches(tool)))
            && !self.deny.iter().any(|p| p.matches(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, fits) in [
            ("read_file", "read_file", true),
            ("read_file", "read_file2", false),
            ("read_*", "read_file", true),
            ("*_file", "read_file", true),
            ("r*d*e", "read_file", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("", "x", false),
            ("*x*", "axb", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }
}
