//! Names that never collide: an upstream's own name where it is the only one, with the upstream's in front where
//! it is not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use crate::options::Prefix;

/// Models refuse longer names.
const LONGEST: usize = 64;

/// Something with a name: the server's, its own, and whether it is offered now or only known from before.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) server: &'a str,
    pub(crate) name: &'a str,
}

/// The names under which candidates are offered, in the same order; `None` for one that is not.
///
/// `absent` are names of servers that are not there now: they collide all the same, so that a server that comes or
/// goes does not rename the tools of another.
pub(crate) fn exposed(
    candidates: &[Candidate<'_>],
    absent: &[(String, String)],
    prefix: Prefix,
) -> Vec<Option<String>> {
    let mut servers: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for Candidate { server, name } in candidates {
        servers.entry(name).or_default().insert(server);
    }
    for (server, name) in absent {
        servers.entry(name).or_default().insert(server);
    }
    let collides = |name: &str| servers.get(name).is_some_and(|owners| owners.len() > 1);
    let bare = |c: &Candidate<'_>| match prefix {
        Prefix::Always => false,
        Prefix::Collision => !collides(c.name),
        Prefix::None => true,
    };
    let mut taken: HashSet<String> = HashSet::new();
    // Names that stay as they are go first: no other may take one.
    let mut given: Vec<Option<String>> = candidates
        .iter()
        .map(|c| (bare(c) && is_legal(c.name) && taken.insert(c.name.to_owned())).then(|| c.name.to_owned()))
        .collect();
    for (c, given) in candidates.iter().zip(&mut given).filter(|(_, given)| given.is_none()) {
        if bare(c) && is_legal(c.name) {
            // Without prefixes the first server's is shown; a server that has a name twice means one thing.
            continue;
        }
        let wanted = if bare(c) { legal(c.name) } else { legal(&format!("{}_{}", c.server, c.name)) };
        let mut name = clip(&wanted, LONGEST);
        let mut next = 2;
        while !taken.insert(name.clone()) {
            let suffix = format!("_{next}");
            name = clip(&wanted, LONGEST - suffix.len()) + &suffix;
            next += 1;
        }
        *given = Some(name);
    }
    given
}

fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && legal(name) == name
}

fn legal(name: &str) -> String {
    let legal: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
    if legal.is_empty() { "_".to_owned() } else { legal }
}

fn clip(name: &str, length: usize) -> String {
    name.chars().take(length).collect()
}

/// The names that servers had when they were last there: per list and server. Kept in a file, they make names the
/// same at every start, whichever server is up first.
#[derive(Debug, Default)]
pub(crate) struct Known {
    path: Option<PathBuf>,
    names: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Known {
    /// Reads what was kept; a file that cannot be read is as good as none.
    pub(crate) fn load(path: Option<PathBuf>) -> Known {
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let names = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Known { path, names }
    }

    /// Notes the names of a server that is there.
    pub(crate) fn note(&mut self, list: &str, server: &str, names: Vec<String>) -> bool {
        let of_list = self.names.entry(list.to_owned()).or_default();
        if of_list.get(server) == Some(&names) {
            return false;
        }
        of_list.insert(server.to_owned(), names);
        true
    }

    /// The names of configured servers that are not there.
    pub(crate) fn absent(&self, list: &str, absent: &[&str]) -> Vec<(String, String)> {
        let Some(servers) = self.names.get(list) else { return Vec::new() };
        let of = |server: &&str| {
            let names = servers.get(*server).into_iter().flatten();
            names.map(|name| ((*server).to_owned(), name.clone())).collect::<Vec<_>>()
        };
        absent.iter().flat_map(of).collect()
    }

    /// Writes the file.
    pub(crate) fn save(&self) {
        let Some(path) = &self.path else { return };
        let text = serde_json::to_string_pretty(&self.names).unwrap_or_default();
        if let Err(error) = crate::replace_file(path, text.as_bytes()) {
            tracing::debug!(%error, "the names of tools cannot be remembered for the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pairs: &[(&str, &str)], absent: &[(&str, &str)], prefix: Prefix) -> Vec<Option<String>> {
        let candidates: Vec<_> = pairs.iter().map(|(server, name)| Candidate { server, name }).collect();
        let absent: Vec<_> = absent.iter().map(|(s, n)| ((*s).to_owned(), (*n).to_owned())).collect();
        exposed(&candidates, &absent, prefix)
    }

    fn shown(names: &[&str]) -> Vec<Option<String>> {
        names.iter().map(|name| Some((*name).to_owned())).collect()
    }

    #[test]
    fn a_name_is_changed_only_where_it_collides_or_is_not_legal() {
        let collision = |pairs: &[(&str, &str)]| names(pairs, &[], Prefix::Collision);
        assert_eq!(collision(&[("a", "echo"), ("b", "add")]), shown(&["echo", "add"]));
        assert_eq!(
            collision(&[("a", "echo"), ("b", "echo"), ("b", "add")]),
            shown(&["a_echo", "b_echo", "add"])
        );
        assert_eq!(collision(&[("a", "x/y z")]), shown(&["x_y_z"]));
    }

    #[test]
    fn a_server_that_is_not_there_keeps_its_names_apart() {
        let there = names(&[("a", "echo")], &[("b", "echo")], Prefix::Collision);
        assert_eq!(there, shown(&["a_echo"]));
    }

    #[test]
    fn prefixes_can_be_had_always_or_never() {
        let pairs = [("a", "echo"), ("b", "echo"), ("b", "add")];
        assert_eq!(names(&pairs, &[], Prefix::Always), shown(&["a_echo", "b_echo", "b_add"]));
        let never = names(&pairs, &[], Prefix::None);
        assert_eq!(never, [Some("echo".to_owned()), None, Some("add".to_owned())]);
    }

    #[test]
    fn no_two_are_ever_the_same_and_none_is_too_long() {
        let long = "n".repeat(100);
        let longer = format!("{long}x");
        let pairs = [
            ("a", "b_c"),
            ("a_b", "c"),
            ("z", "b_c"),
            ("z", "c"),
            ("s", "a_b_c"),
            ("l", long.as_str()),
            ("m", longer.as_str()),
            ("p", "x y"),
            ("q", "x/y"),
        ];
        for prefix in [Prefix::Always, Prefix::Collision] {
            let names: Vec<String> = names(&pairs, &[], prefix).into_iter().flatten().collect();
            let distinct: HashSet<_> = names.iter().collect();
            assert_eq!((distinct.len(), names.len()), (pairs.len(), pairs.len()), "{names:?}");
            assert!(names.iter().all(|name| is_legal(name)), "{names:?}");
        }
    }

    #[test]
    fn names_are_remembered_from_one_start_to_the_next() {
        let path = std::env::temp_dir().join(format!("dateline-names-{}.json", std::process::id()));
        let mut known = Known::load(Some(path.clone()));
        assert!(known.note("tools", "a", vec!["echo".into()]));
        assert!(!known.note("tools", "a", vec!["echo".into()]), "nothing new");
        known.save();
        let again = Known::load(Some(path.clone()));
        assert_eq!(again.absent("tools", &["a", "b"]), [("a".to_owned(), "echo".to_owned())]);
        std::fs::remove_file(path).unwrap();
    }
}
