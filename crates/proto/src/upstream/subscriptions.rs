//! Which resources a legacy server watches for us, and for which listens.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use bytestring::ByteString;

use crate::model::listen::Filter;
use crate::rpc::wire::CallKey;

/// The resources that a server watches, or was asked to watch, for the listens of all clients.
#[derive(Default)]
pub(super) struct Subscriptions {
    resources: HashMap<ByteString, Resource>,
    listens: HashMap<CallKey, Listen>,
    /// The resources that the server has not answered for, by the keys of the requests.
    requests: HashMap<CallKey, ByteString>,
}

struct Resource {
    listens: HashSet<CallKey>,
    /// The request that the server has not answered.
    request: Option<CallKey>,
}

struct Listen {
    filter: Filter,
    /// How many of its resources the server has not answered for.
    open: usize,
}

impl Subscriptions {
    /// Adds a listen. `request` gives the key of each request that is due; with it comes the resource to subscribe to.
    pub(super) fn add(
        &mut self,
        listen: CallKey,
        mut filter: Filter,
        mut request: impl FnMut() -> CallKey,
    ) -> Vec<(CallKey, ByteString)> {
        let mut due = Vec::new();
        let mut open = 0;
        filter.uris.retain(|uri| {
            let resource = match self.resources.entry(uri.clone()) {
                Entry::Occupied(resource) => resource.into_mut(),
                Entry::Vacant(vacant) => {
                    let key = request();
                    self.requests.insert(key, uri.clone());
                    due.push((key, uri.clone()));
                    vacant.insert(Resource { listens: HashSet::new(), request: Some(key) })
                }
            };
            let is_new = resource.listens.insert(listen);
            open += usize::from(is_new && resource.request.is_some());
            is_new
        });
        self.listens.insert(listen, Listen { filter, open });
        due
    }

    /// What a listen hears of, once the server has answered for each of its resources: those that it watches.
    pub(super) fn honoured(&mut self, listen: CallKey) -> Option<Filter> {
        let Listen { filter, open: 0 } = self.listens.get_mut(&listen)? else { return None };
        let watched = |uri: &ByteString| self.resources.get(uri).is_some_and(|r| r.listens.contains(&listen));
        filter.uris.retain(watched);
        Some(filter.clone())
    }

    /// The server answered a request to watch a resource; gives the listens that waited for nothing else. `None` where
    /// the request is none of these.
    pub(super) fn answered(&mut self, request: CallKey, watches: bool) -> Option<Vec<CallKey>> {
        let uri = self.requests.remove(&request)?;
        let listens = match watches {
            true => {
                let resource = self.resources.get_mut(&uri)?;
                resource.request = None;
                resource.listens.clone()
            }
            false => self.resources.remove(&uri)?.listens,
        };
        let ready = |listen: &CallKey| {
            let Some(waiting) = self.listens.get_mut(listen) else { return false };
            waiting.open -= 1;
            waiting.open == 0
        };
        Some(listens.into_iter().filter(ready).collect())
    }

    /// Removes a listen; gives the resources that nobody listens to any more, also those that the server has not answered
    /// for. `None` where there is no such listen.
    pub(super) fn remove(&mut self, listen: CallKey) -> Option<Vec<ByteString>> {
        let removed = self.listens.remove(&listen)?;
        let mut unwatched = Vec::new();
        for uri in removed.filter.uris {
            let Entry::Occupied(mut resource) = self.resources.entry(uri.clone()) else { continue };
            // A resource that was refused may since be watched for other listens.
            if resource.get_mut().listens.remove(&listen) && resource.get().listens.is_empty() {
                if let Some(request) = resource.remove().request {
                    self.requests.remove(&request);
                }
                unwatched.push(uri);
            }
        }
        Some(unwatched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(uris: &[&str]) -> Filter {
        Filter { uris: uris.iter().map(|uri| (*uri).into()).collect(), ..Filter::default() }
    }

    /// Adds a listen; gives the resources that are asked for, under keys that go up from `first`.
    fn add(of: &mut Subscriptions, listen: CallKey, uris: &[&str], first: CallKey) -> Vec<CallKey> {
        let mut next = first;
        let due = of.add(listen, filter(uris), || {
            next += 1;
            next - 1
        });
        due.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_listen_runs_when_each_of_its_resources_was_answered_for() {
        let mut all = Subscriptions::default();
        assert_eq!(add(&mut all, 1, &["a", "b", "a"], 10), [10, 11]);
        // The second one waits for the same answer.
        assert_eq!(add(&mut all, 2, &["b"], 20), [0; 0]);
        assert_eq!((all.honoured(1), all.honoured(2)), (None, None));
        assert_eq!(all.answered(10, true), Some(vec![]));
        let mut ready = all.answered(11, false).unwrap();
        ready.sort_unstable();
        assert_eq!(ready, [1, 2]);
        assert_eq!((all.honoured(1), all.honoured(2)), (Some(filter(&["a"])), Some(filter(&[]))));
        // What was refused is asked for again; what is watched is not.
        assert_eq!(add(&mut all, 3, &["a", "b"], 30), [30]);
        assert_eq!(all.answered(30, true), Some(vec![3]));
        assert_eq!(all.answered(30, true), None);
    }

    #[test]
    fn what_nobody_listens_to_is_given_up_and_its_late_answer_means_nothing() {
        let mut all = Subscriptions::default();
        add(&mut all, 1, &["a", "b"], 10);
        add(&mut all, 2, &["a"], 20);
        assert_eq!(all.remove(1), Some(vec!["b".into()]));
        assert_eq!(all.answered(11, true), None);
        // Who asks for it now does not wait for the answer that does not come.
        assert_eq!(add(&mut all, 3, &["b"], 30), [30]);
        assert_eq!(all.answered(30, true), Some(vec![3]));
        assert_eq!(all.remove(2), Some(vec!["a".into()]));
        assert_eq!(all.remove(2), None);
    }
}
