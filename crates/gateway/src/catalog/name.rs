//! Gives tools and prompts names that never collide. An entry keeps its own name where no other server uses that name;
//! otherwise the server's name is put in front. An entry that was given a name once keeps it.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use crate::catalog::given_names::GivenNames;
use crate::options::{Names, Prefix};

/// The longest name that the interfaces of models accept, in bytes.
pub const MAX_NAME_LENGTH: usize = 64;
/// How many hexadecimal digits end a name that would otherwise be another entry's. There are 16 million such endings:
/// among 1,000 names, two get the same one in about one catalog of thirty, and the second of them gets other digits.
const DIGITS: usize = 6;
/// How many bytes of a server's name stay at least where a tool's name is long: enough to recognize the server.
const SERVER: usize = 8;

/// A tool or prompt that needs a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// The server that has it.
    pub(crate) server: &'a str,
    /// The name that the server uses.
    pub(crate) own: &'a str,
    /// The name that the configuration sets, if it sets one.
    pub(crate) wanted: Option<&'a str>,
}

/// The rules by which names are given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamingRules<'a> {
    pub(crate) prefix: Prefix,
    pub(crate) names: Names,
    /// The names of all servers of the configuration, also of those that do not run.
    pub(crate) servers: &'a [&'a str],
}

/// Returns the name that clients see for each candidate, in the same order; `None` for a candidate that they do not see.
///
/// `given` has the names that were given before, and the names that servers are known to use. The names of a server that
/// does not run count too: so a server that starts or ends does not rename the tools of another server. The work grows
/// with the number of names only, whatever the names are.
pub(crate) fn exposed(
    candidates: &[Candidate<'_>],
    given: &GivenNames,
    rules: NamingRules<'_>,
) -> Vec<Option<String>> {
    let mut naming = NameAllocator::new(candidates, given, rules);
    let mut names: Vec<Option<String>> = vec![None; candidates.len()];
    let mut seen = HashSet::new();
    // A server that lists a name twice means one entry.
    let once: Vec<bool> = candidates.iter().map(|c| seen.insert((c.server, c.own))).collect();
    let each = || candidates.iter().enumerate().filter(|(at, _)| once[*at]);
    // Names that the configuration sets go first, then names that were given before, then names that need no change.
    for (at, c) in each() {
        names[at] = c.wanted.filter(|wanted| naming.take(wanted)).map(str::to_owned);
    }
    naming.keep_given(&seen, given);
    for (at, c) in each() {
        if names[at].is_none() && c.wanted.is_none() {
            let before = given.get(c.server).and_then(|names| names.get(c.own)?.as_deref());
            names[at] = before.filter(|name| naming.is_legal(name) && naming.take(name)).map(str::to_owned);
        }
    }
    for (at, c) in each() {
        let name = c.wanted.unwrap_or(c.own);
        if names[at].is_none() && naming.stays(c.server, name) && naming.take(name) {
            names[at] = Some(name.to_owned());
        }
    }
    for (at, c) in each() {
        let name = c.wanted.unwrap_or(c.own);
        // Without prefixes, clients see the entry of the first server only.
        let hidden = rules.prefix == Prefix::None && naming.is_legal(name);
        if names[at].is_none() && !hidden {
            names[at] = Some(naming.made(c));
        }
    }
    names
}

struct NameAllocator<'a> {
    rules: NamingRules<'a>,
    taken: HashSet<String>,
    /// How many servers use each name.
    shared: HashMap<&'a str, usize>,
    /// The server whose name is put in front of others, by the form in which it is put there.
    prefixes: HashMap<String, &'a str>,
}

impl<'a> NameAllocator<'a> {
    fn new(candidates: &[Candidate<'a>], given: &'a GivenNames, rules: NamingRules<'a>) -> NameAllocator<'a> {
        let mut owners: HashMap<&str, HashSet<&str>> = HashMap::new();
        for c in candidates {
            owners.entry(c.wanted.unwrap_or(c.own)).or_default().insert(c.server);
        }
        let there: HashSet<&str> = candidates.iter().map(|c| c.server).collect();
        for (server, names) in given.iter().filter(|(server, _)| !there.contains(server.as_str())) {
            if rules.servers.contains(&server.as_str()) {
                for name in names.keys() {
                    owners.entry(name).or_default().insert(server);
                }
            }
        }
        let mut prefixes = HashMap::new();
        for server in rules.servers {
            prefixes.entry(legal(server, rules.names).0).or_insert(*server);
        }
        let shared = owners.into_iter().map(|(name, servers)| (name, servers.len())).collect();
        NameAllocator { rules, taken: HashSet::new(), shared, prefixes }
    }

    fn take(&mut self, name: &str) -> bool {
        !self.taken.contains(name) && self.taken.insert(name.to_owned())
    }

    /// Keeps the names that were given to entries which their servers do not list at the moment.
    fn keep_given(&mut self, there: &HashSet<(&str, &str)>, given: &GivenNames) {
        let servers: HashSet<&str> = self.rules.servers.iter().copied().collect();
        for (server, names) in given.iter().filter(|(server, _)| servers.contains(server.as_str())) {
            for (own, name) in names {
                if let Some(name) = name.as_deref().filter(|_| !there.contains(&(server, own))) {
                    self.take(name);
                }
            }
        }
    }

    fn is_legal(&self, name: &str) -> bool {
        is_legal(name, self.rules.names)
    }

    /// Returns whether an entry may keep this name.
    fn stays(&self, server: &str, name: &str) -> bool {
        let alone = match self.rules.prefix {
            Prefix::Always => false,
            Prefix::Collision => {
                self.shared.get(name).is_none_or(|servers| *servers < 2) && self.is_free(server, name)
            }
            Prefix::None => true,
        };
        alone && self.is_legal(name)
    }

    /// Returns whether a name does not begin with the name of another server. Where it begins with the names of several
    /// servers, the longest of them counts.
    fn is_free(&self, server: &str, name: &str) -> bool {
        let ends = name.match_indices('_').map(|(at, _)| &name[..at]);
        ends.filter_map(|beginning| self.prefixes.get(beginning))
            .next_back()
            .is_none_or(|owner| *owner == server)
    }

    /// Makes a name of the server's name and the entry's own name. Where the result lost characters, is too long, or
    /// belongs to another entry, digits are added. They depend on these two names alone.
    fn made(&mut self, c: &Candidate<'_>) -> String {
        let (tool, unlike) = legal(c.wanted.unwrap_or(c.own), self.rules.names);
        let own = c.wanted.unwrap_or(c.own);
        let bare = match self.rules.prefix {
            Prefix::Always => false,
            Prefix::Collision => {
                let alone = self.shared.get(own).is_none_or(|servers| *servers < 2);
                alone && !self.is_legal(own) && self.is_free(c.server, &tool)
            }
            Prefix::None => true,
        };
        let (server, changed) = legal(c.server, self.rules.names);
        let whole = if bare { tool.clone() } else { format!("{server}_{tool}") };
        let says_all = !unlike && (bare || !changed) && whole.len() <= MAX_NAME_LENGTH;
        if says_all && self.is_free(c.server, &whole) && self.take(&whole) {
            return whole;
        }
        let room = MAX_NAME_LENGTH - DIGITS - 1;
        let body = match bare {
            true => clip(&tool, room).to_owned(),
            false => {
                let tool = clip(&tool, room - SERVER - 1);
                format!("{}_{tool}", clip(&server, room - tool.len() - 1))
            }
        };
        (0u64..)
            .map(|round| format!("{body}_{}", digits(c.server, c.own, round)))
            .find(|name| self.take(name))
            .unwrap_or(body)
    }
}

/// Returns digits that are the same at every start, and that a server cannot choose.
fn digits(server: &str, own: &str, round: u64) -> String {
    let mut hash = Sha256::new();
    for part in [server.as_bytes(), own.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(round.to_be_bytes());
    clip(&format!("{:x}", hash.finalize()), DIGITS).to_owned()
}

/// Returns whether a name has only characters that it may have, and is neither empty nor too long.
pub fn is_legal(name: &str, names: Names) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_LENGTH && name.chars().all(|c| names.has(c))
}

/// Replaces the characters that a name may not have. Returns also whether letters or digits were lost in that.
fn legal(name: &str, names: Names) -> (String, bool) {
    let legal: String = name.chars().map(|c| if names.has(c) { c } else { '_' }).collect();
    let unlike = name.chars().any(|c| !names.has(c) && c.is_alphanumeric());
    match legal.bytes().any(|b| b.is_ascii_alphanumeric()) {
        true => (legal, unlike),
        // No letter and no digit is left.
        false => ("named".to_owned(), true),
    }
}

fn clip(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name)
}

#[cfg(test)]
mod tests;
