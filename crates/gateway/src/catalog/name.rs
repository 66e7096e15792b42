//! Names that never collide: an upstream's own name where it is the only one, with the upstream's in front where
//! it is not. A name that was given stays with its owner.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use crate::catalog::given_names::GivenNames;
use crate::options::{Names, Prefix};

/// Models refuse longer names.
pub const MAX_NAME_LENGTH: usize = 64;
/// How many hexadecimal digits tell names apart that would be the same: of 10,000 names two have the same by chance
/// in one catalog of twenty, and those get others.
const DIGITS: usize = 6;
/// How much of a server's name is left at least where a tool's is long.
const SERVER: usize = 8;

/// Something with a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Whose it is.
    pub(crate) server: &'a str,
    /// What it is called there.
    pub(crate) own: &'a str,
    /// What it is to be called, where the configuration says so.
    pub(crate) wanted: Option<&'a str>,
}

/// How names are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamingRules<'a> {
    pub(crate) prefix: Prefix,
    pub(crate) names: Names,
    /// All servers that are configured, whether they are there or not.
    pub(crate) servers: &'a [&'a str],
}

/// The names under which candidates are offered, in the same order; `None` for one that is not.
///
/// `given` are the names that were given before, and all that servers are known to have: the names of a server that is
/// not there collide all the same, so that a server that comes or goes does not rename the tools of another. The work is
/// proportional to the names, whatever they are.
pub(crate) fn exposed(
    candidates: &[Candidate<'_>],
    given: &GivenNames,
    rules: NamingRules<'_>,
) -> Vec<Option<String>> {
    let mut naming = NameAllocator::new(candidates, given, rules);
    let mut names: Vec<Option<String>> = vec![None; candidates.len()];
    let mut seen = HashSet::new();
    // A server that has a name twice means one thing.
    let once: Vec<bool> = candidates.iter().map(|c| seen.insert((c.server, c.own))).collect();
    let each = || candidates.iter().enumerate().filter(|(at, _)| once[*at]);
    // What the configuration says goes first, then what was given before, then names that stay as they are.
    for (at, c) in each() {
        names[at] = c.wanted.filter(|wanted| naming.take(wanted)).map(str::to_owned);
    }
    naming.keep_for_those_who_are_away(&seen, given);
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
        // Without prefixes the first server's is shown.
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
    /// How many servers have a name.
    shared: HashMap<&'a str, usize>,
    /// Whose a beginning is.
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

    /// What was given to somebody who does not have it now is nobody else's.
    fn keep_for_those_who_are_away(&mut self, there: &HashSet<(&str, &str)>, given: &GivenNames) {
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

    /// Whether a name may be shown as it is.
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

    /// Whether a name does not begin as the names of another server do. Of several beginnings the longest counts.
    fn is_free(&self, server: &str, name: &str) -> bool {
        let ends = name.match_indices('_').map(|(at, _)| &name[..at]);
        ends.filter_map(|beginning| self.prefixes.get(beginning))
            .next_back()
            .is_none_or(|owner| *owner == server)
    }

    /// A name that is made of the server's and its own. Where that says too little, is too long, or is another's, digits
    /// follow that depend on nothing else.
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

/// Digits that are the same at every start, and that nobody can choose.
fn digits(server: &str, own: &str, round: u64) -> String {
    let mut hash = Sha256::new();
    for part in [server.as_bytes(), own.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(round.to_be_bytes());
    clip(&format!("{:x}", hash.finalize()), DIGITS).to_owned()
}

/// Whether a name can be shown as it is.
pub fn is_legal(name: &str, names: Names) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_LENGTH && name.chars().all(|c| names.has(c))
}

/// The name in characters that it may have, and whether that says less than the name did.
fn legal(name: &str, names: Names) -> (String, bool) {
    let legal: String = name.chars().map(|c| if names.has(c) { c } else { '_' }).collect();
    let unlike = name.chars().any(|c| !names.has(c) && c.is_alphanumeric());
    match legal.bytes().any(|b| b.is_ascii_alphanumeric()) {
        true => (legal, unlike),
        // Nothing that could be read is left.
        false => ("named".to_owned(), true),
    }
}

fn clip(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name)
}

#[cfg(test)]
mod tests;
