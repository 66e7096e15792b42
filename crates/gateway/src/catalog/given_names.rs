//! Remembers the names that were given to tools and prompts, across restarts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The names of one list: by server and by the server's own name, the name that was given, if one was.
pub(crate) type GivenNames = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// How many names of a server are remembered that are not in its list. A server may invent new names each time it is
/// asked, so there has to be a limit.
const FORMER: usize = 1000;

/// The names that servers have, and those that were given to them. Kept in a file, they make names the same at every
/// start, whichever server is up first.
#[derive(Debug, Default)]
pub(crate) struct NameStore {
    path: Option<PathBuf>,
    stored: StoredNames,
    changed: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct StoredNames {
    /// The naming rules by which the names were given. Under other rules other names are given.
    rules: String,
    names: BTreeMap<String, GivenNames>,
}

impl NameStore {
    /// Reads the file. A file that cannot be read counts as empty: the names are given anew.
    pub(crate) fn load(path: Option<PathBuf>) -> NameStore {
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        NameStore { path, stored: serde_json::from_str(&text).unwrap_or_default(), changed: false }
    }

    /// Sets the naming rules. Names that were given under other rules are forgotten.
    pub(crate) fn rule(&mut self, rules: &str) {
        if self.stored.rules != rules {
            rules.clone_into(&mut self.stored.rules);
            let given = self.stored.names.values_mut().flat_map(BTreeMap::values_mut);
            given.flat_map(BTreeMap::values_mut).for_each(|name| *name = None);
            self.changed = true;
        }
    }

    /// Remembers the names that a server lists.
    pub(crate) fn note<'a>(&mut self, list: &str, server: &str, own: impl Iterator<Item = &'a str> + Clone) {
        let of_list = self.stored.names.entry(list.to_owned()).or_default();
        let names = of_list.entry(server.to_owned()).or_default();
        for own in own.clone().filter(|own| !own.is_empty()) {
            if !names.contains_key(own) {
                names.insert(own.to_owned(), None);
                self.changed = true;
            }
        }
        let many = own.clone().count();
        if names.len() > many + FORMER {
            let there: std::collections::HashSet<&str> = own.collect();
            names.retain(|own, _| there.contains(own.as_str()));
            self.changed = true;
        }
    }

    /// Remembers the name that was given to an entry.
    pub(crate) fn give(&mut self, list: &str, server: &str, own: &str, name: &str) {
        let known =
            self.stored.names.get_mut(list).and_then(|of| of.get_mut(server)).and_then(|of| of.get_mut(own));
        if let Some(known) = known
            && known.as_deref() != Some(name)
        {
            *known = Some(name.to_owned());
            self.changed = true;
        }
    }

    /// The names of a list that are remembered.
    pub(crate) fn given(&self, list: &str) -> Option<&GivenNames> {
        self.stored.names.get(list)
    }

    /// Writes the file if anything changed.
    pub(crate) fn save(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| std::mem::take(&mut self.changed)) else { return };
        let text = serde_json::to_string_pretty(&self.stored).unwrap_or_default();
        if let Err(error) = crate::replace_file::replace_file(path, text.as_bytes()) {
            tracing::debug!(%error, "the names of tools cannot be remembered for the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_remembered_from_one_start_to_the_next() {
        let path = std::env::temp_dir().join(format!("dateline-names-{}.json", std::process::id()));
        let mut known = NameStore::load(Some(path.clone()));
        known.rule("collision");
        known.note("tools", "a", ["echo", "add"].into_iter());
        known.give("tools", "a", "echo", "a_echo");
        known.save();
        let mut again = NameStore::load(Some(path.clone()));
        assert_eq!(again.stored, known.stored);
        let given = again.given("tools").unwrap();
        assert_eq!((given["a"]["echo"].as_deref(), given["a"]["add"].as_deref()), (Some("a_echo"), None));
        again.rule("always");
        assert_eq!(again.given("tools").unwrap()["a"]["echo"], None, "other rules give other names");
        // What an earlier program wrote says nothing of who was given what, and is as good as nothing.
        std::fs::write(&path, r#"{"tools": {"a": ["echo"]}}"#).unwrap();
        assert_eq!(NameStore::load(Some(path.clone())).given("tools"), None);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_server_that_invents_names_is_remembered_within_bounds() {
        let mut known = NameStore::default();
        for round in 0..50 {
            let names: Vec<String> = (0..100).map(|n| format!("t{round}_{n}")).collect();
            known.note("tools", "a", names.iter().map(String::as_str));
            assert!(known.given("tools").unwrap()["a"].len() <= FORMER + 200);
        }
        assert!(known.given("tools").unwrap()["a"].contains_key("t49_7"));
    }
}
