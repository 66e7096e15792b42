//! Looks up who wants to be told of a change. The work does not grow with the number of watched URIs.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytestring::ByteString;

use crate::model::listen::{Change, Filter};

/// The URIs that are watched, each with those who watch it.
#[derive(Clone, Debug)]
pub(crate) struct Watched<T>(BTreeMap<ByteString, T>);

impl<T> Default for Watched<T> {
    fn default() -> Watched<T> {
        Watched(BTreeMap::new())
    }
}

impl<T> Watched<T> {
    /// Returns who watches a URI. It adds the URI where it is new.
    pub(crate) fn entry(&mut self, uri: &ByteString) -> &mut T
    where
        T: Default,
    {
        self.0.entry(uri.clone()).or_default()
    }

    /// Lets `over` change who watches a URI. Where it returns true, nobody watches the URI any longer.
    pub(crate) fn leave(&mut self, uri: &ByteString, over: impl FnOnce(&mut T) -> bool) {
        if self.0.get_mut(uri).is_some_and(over) {
            self.0.remove(uri);
        }
    }

    /// Iterates over those who watch the URI, or a URI that it lies below.
    ///
    /// A watched URI that begins this one comes before it in order. Each step looks for a shorter beginning, so there
    /// are about as many lookups as there are watched URIs that begin like this one.
    pub(crate) fn of<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = &'a T> {
        let mut rest = Some(Bound::Included(uri));
        std::iter::from_fn(move || {
            loop {
                let (watched, who) = self.0.range::<str, _>((Bound::Unbounded, rest?)).next_back()?;
                let common = common(watched, uri);
                if common < watched.len() {
                    // No watched URI that is longer than the common part begins this one.
                    rest = Some(Bound::Included(&uri[..common]));
                    continue;
                }
                rest = Some(Bound::Excluded(&uri[..common]));
                if is_below(uri, watched) {
                    return Some(who);
                }
            }
        })
    }
}

/// Returns how many bytes the longest common beginning of two texts has. It ends between characters.
fn common(a: &str, b: &str) -> usize {
    let bytes = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=bytes).rev().find(|at| a.is_char_boundary(*at)).unwrap_or_default()
}

/// Returns whether a URI that begins with a watched one is the same, or lies below it.
fn is_below(uri: &str, watched: &str) -> bool {
    let rest = &uri[watched.len()..];
    rest.is_empty() || rest.starts_with('/') || watched.ends_with('/')
}

/// A filter, prepared to be compared with many changes.
#[derive(Clone, Debug)]
pub struct PreparedFilter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Watched<()>,
}

impl PreparedFilter {
    /// Prepares a filter.
    pub fn of(filter: &Filter) -> PreparedFilter {
        let mut uris = Watched::default();
        filter.uris.iter().for_each(|uri| *uris.entry(uri) = ());
        PreparedFilter { tools: filter.tools, prompts: filter.prompts, resources: filter.resources, uris }
    }

    /// Returns whether the filter asks for a change. Updates of resources below a watched URI count.
    pub fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Behind => true,
            Change::Resource(uri) => self.uris.of(uri).next().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the URI with each watched one, as the rule is written.
    fn slowly(watched: &[&str], uri: &str) -> bool {
        let folder =
            |watched: &str| if watched.ends_with('/') { watched.into() } else { format!("{watched}/") };
        watched.iter().any(|watched| uri == *watched || uri.starts_with(&folder(watched)))
    }

    #[test]
    fn what_is_watched_or_lies_below_it_is_wanted_and_nothing_else() {
        let all = [
            "x:/", "x:/a", "x:/a/", "x:/a/b", "x:/ab", "x:/a/b/c", "x:/é", "x:/è/b", "x:/a-", "x:", "",
            "y:/a", "x:/a/z",
        ];
        for chosen in 0..1u32 << all.len() {
            let watched: Vec<&str> =
                all.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, uri)| *uri).collect();
            let filter =
                Filter { uris: watched.iter().map(|uri| (*uri).into()).collect(), ..Filter::default() };
            let wanted = PreparedFilter::of(&filter);
            for uri in all.iter().chain(&["x:/a/b/d", "x:/b", "x:/ê", "x:/è/b/c", "z"]) {
                let change = Change::Resource((*uri).into());
                assert_eq!(wanted.wants(&change), slowly(&watched, uri), "{uri} by {watched:?}");
            }
        }
    }
}
