//! What a server offers of one kind: in a fixed order, found by name, changed while it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::build_error::BuildError;

/// Things with names, in the order in which they were put here.
///
/// Each has a place that it keeps, so that whoever walks through goes on behind the last one it saw, whatever was
/// added or taken away meanwhile.
pub(crate) struct Registry<T> {
    things: BTreeMap<u64, (String, Arc<T>)>,
    places: HashMap<String, u64>,
    next: u64,
}

impl<T> Default for Registry<T> {
    fn default() -> Registry<T> {
        Registry { things: BTreeMap::new(), places: HashMap::new(), next: 1 }
    }
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Registry<T> {
        Registry { things: self.things.clone(), places: self.places.clone(), next: self.next }
    }
}

impl<T> Registry<T> {
    /// Puts a thing at the end; an error where the name is taken. `kind` is what to call it.
    pub(crate) fn put(&mut self, name: &str, thing: T, kind: &'static str) -> Result<(), BuildError> {
        if self.places.contains_key(name) {
            return Err(BuildError::Duplicate { kind, name: name.to_owned() });
        }
        self.places.insert(name.to_owned(), self.next);
        self.things.insert(self.next, (name.to_owned(), Arc::new(thing)));
        self.next += 1;
        Ok(())
    }

    /// Takes a thing away; says whether it was there.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        self.places.remove(name).is_some_and(|place| self.things.remove(&place).is_some())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.things.get(self.places.get(name)?).map(|(_, thing)| thing)
    }

    /// All of them, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.things.iter().map(|(place, (_, thing))| (*place, &**thing))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.things.values().map(|(_, thing)| thing)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }
}
