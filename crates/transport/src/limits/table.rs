//! Things that clients hold, in the order of their last use.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use hashlink::{LinkedHashMap, LinkedHashSet};

use super::Owner;

/// Things by key, each of somebody. The longest unused comes first, of all and of each one's own. Whom no share holds
/// for has no list of its own.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    all: LinkedHashMap<K, (Owner, V)>,
    of: HashMap<Owner, LinkedHashSet<K>>,
}

impl<K: Eq + Hash + Clone, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { all: LinkedHashMap::new(), of: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone, V> Table<K, V> {
    /// Puts a thing in, as one that was used just now.
    pub(crate) fn insert(&mut self, key: K, owner: Owner, value: V) {
        self.remove(&key);
        if owner != Owner::Shared {
            self.of.entry(owner).or_default().insert(key.clone());
        }
        self.all.insert(key, (owner, value));
    }

    /// A thing, which is used by that.
    pub(crate) fn touch<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (owner, value) = self.all.to_back(key)?;
        if let Some(own) = self.of.get_mut(owner) {
            own.to_back(key);
        }
        Some(value)
    }

    /// A thing, which is not used by that.
    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.all.get_mut(key).map(|(_, value)| value)
    }

    /// Takes a thing out.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (owner, value) = self.all.remove(key)?;
        if owner != Owner::Shared
            && let Some(own) = self.of.get_mut(&owner)
        {
            own.remove(key);
            if own.is_empty() {
                self.of.remove(&owner);
            }
        }
        // The room of a peak is given back.
        if self.all.capacity() > 256 && self.all.len() < self.all.capacity() / 8 {
            self.all.shrink_to_fit();
            self.of.shrink_to_fit();
        }
        Some(value)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many there are of one whom a share holds for.
    pub(crate) fn len_of(&self, owner: Owner) -> usize {
        self.of.get(&owner).map_or(0, LinkedHashSet::len)
    }

    /// All of them, or those of one; the longest unused first.
    pub(crate) fn oldest(&self, of: Option<Owner>) -> impl Iterator<Item = (&K, &V)> {
        let all = of.is_none().then(|| self.all.iter().map(|(key, (_, value))| (key, value)));
        let own = of.and_then(|owner| self.of.get(&owner)).map(|own| {
            own.iter().filter_map(|key| self.all.get_key_value(key).map(|(key, (_, value))| (key, value)))
        });
        all.into_iter().flatten().chain(own.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_comes_first_of_all_and_of_each() {
        let [a, b] = [Owner::read([10, 0, 0, 1].into()), Owner::read([10, 0, 0, 2].into())];
        let mut table = Table::default();
        for (key, owner) in [(1, a), (2, b), (3, a), (4, b)] {
            table.insert(key, owner, key * 10);
        }
        assert_eq!(table.touch(&1), Some(&mut 10));
        let keys = |of| table.oldest(of).map(|(key, _)| *key).collect::<Vec<_>>();
        assert_eq!((keys(None), keys(Some(a)), keys(Some(b))), (vec![2, 3, 4, 1], vec![3, 1], vec![2, 4]));
        assert_eq!((table.len(), table.len_of(a)), (4, 2));
        for key in [3, 1] {
            assert_eq!(table.remove(&key), Some(key * 10));
        }
        assert_eq!((table.remove(&3), table.len(), table.len_of(a), table.of.len()), (None, 2, 0, 1));
    }
}
