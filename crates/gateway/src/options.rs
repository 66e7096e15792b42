//! What is served, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::Service;
use spec::Era;
use transport::client::{Program, Remote};

/// Everything that a gateway is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The servers, in the order of lists.
    pub servers: Vec<ServerOptions>,
    /// When a server's name is put in front of the names of its tools and prompts.
    pub prefix: Prefix,
    /// Of what characters names are.
    pub names: Names,
    /// The file that says so, where there is one: it is shown beside the status.
    pub source: Option<PathBuf>,
}

/// Of what characters the names of tools and prompts are. Others become `_`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Names {
    /// `A-Z a-z 0-9 _ - .`, as the protocol has them.
    #[default]
    Protocol,
    /// `A-Z a-z 0-9 _ -`, as the interfaces of models have them.
    Strict,
}

impl Names {
    /// Whether a name may have this character.
    pub(crate) fn has(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.' && self == Names::Protocol
    }
}

/// When a server's name is put in front of the names of its tools and prompts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// Always.
    Always,
    /// Where two servers have the same name.
    #[default]
    Collision,
    /// Never; of two with one name the first server's is shown.
    None,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOptions {
    /// Its name, unique among all.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// Which of its tools are shown; all where nothing is said.
    pub allow: Vec<Pattern>,
    /// Which of its tools are not shown, whatever is allowed.
    pub deny: Vec<Pattern>,
    /// What is said of its tools in place of its own words, by their own names.
    pub overrides: BTreeMap<String, Override>,
    /// How many processes or connections there are.
    pub pool: Pool,
    /// How long a call may take.
    pub call_timeout: Option<Duration>,
    /// The era it is spoken to in; it is asked where nothing is said.
    pub era: Option<Era>,
}

/// Where a server is.
#[derive(Clone)]
pub enum Target {
    /// A program that is started and spoken to over its standard streams.
    Program(Program),
    /// A URL of Streamable HTTP.
    Remote(Remote),
    /// A service in this process.
    Local(Arc<dyn Service>),
    /// Nowhere: what was said of it cannot be used, and why. It is shown as down until something else is said.
    Unusable(String),
}

impl fmt::Debug for Target {
    /// Without values that may be secret.
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

/// What is said of a tool in place of its server's words.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Override {
    /// Its name, as it is: no server's is put in front of it.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
}

/// How many processes or connections of one server there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// How many are kept; with 0 the server is started on first use.
    pub min: usize,
    /// How many there may be; a call gets one that is free, where there is one.
    pub max: usize,
    /// How long one above the minimum may be unused.
    pub idle: Duration,
}

impl Default for Pool {
    /// One, that is always there.
    fn default() -> Pool {
        Pool { min: 1, max: 1, idle: Duration::from_secs(300) }
    }
}

/// A name with `*` for any characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

impl Pattern {
    /// Reads a pattern; every text is one.
    pub fn new(pattern: &str) -> Pattern {
        Pattern(pattern.to_owned())
    }

    /// Whether the whole name fits.
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
    /// A server with nothing else said.
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

    /// Whether a tool of this name is shown.
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
