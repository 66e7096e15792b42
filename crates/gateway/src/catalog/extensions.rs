//! The extensions that servers declare, and which servers may have a method that the tables do not list.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use proto::{Capabilities, Object, Raw, clipped, without_tasks};
use spec::{Revision, fields};

use crate::upstream::Upstream;

/// How many characters of an extension's identifier a warning shows.
const SHOWN: usize = 80;

/// The extensions of all servers.
#[derive(Default)]
pub(crate) struct Extensions {
    /// What clients are told: each extension with the settings of the first server that declares it.
    pub(crate) declared: Capabilities,
    /// The servers that declare extensions, in the order of the configuration, each with what it declares.
    servers: Vec<(Arc<Upstream>, Capabilities)>,
    /// The extensions that a server before this one declares too.
    repeated: Vec<Repeated>,
}

/// An extension that two servers declare.
#[derive(Clone, PartialEq, Eq)]
struct Repeated {
    id: ByteString,
    server: String,
    first: String,
}

impl Extensions {
    /// Merges what servers declare. A server that does not run is used for routing only.
    pub(crate) fn merge(upstreams: &[Arc<Upstream>]) -> Extensions {
        let declared = |upstream: &Arc<Upstream>| {
            let mut declared = upstream.capabilities();
            declared.extensions = without_tasks(std::mem::take(&mut declared.extensions));
            declared.has_extensions().then(|| (Arc::clone(upstream), declared))
        };
        let servers: Vec<_> = upstreams.iter().filter_map(declared).collect();
        let mut merged = Extensions::default();
        merged.declared.extensions = merged.merge_maps(&servers, |declared| &declared.extensions);
        merged.declared.experimental = merged.merge_maps(&servers, |declared| &declared.experimental);
        Extensions { servers, ..merged }
    }

    fn merge_maps(
        &mut self,
        servers: &[(Arc<Upstream>, Capabilities)],
        map: impl Fn(&Capabilities) -> &Object,
    ) -> Object {
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut merged: Vec<(ByteString, Raw)> = Vec::new();
        for (upstream, declared) in servers.iter().filter(|(upstream, _)| upstream.is_offered()) {
            let server = upstream.options.name.as_str();
            for (id, settings) in map(declared).iter() {
                let owner = *first.entry(id).or_insert(server);
                if owner == server {
                    merged.push((id.clone(), settings.clone()));
                } else {
                    let (server, first) = (server.to_owned(), owner.to_owned());
                    self.repeated.push(Repeated { id: id.clone(), server, first });
                }
            }
        }
        merged.into_iter().collect()
    }

    /// Warns of extensions that two servers declare, where that is new since the catalog before.
    pub(crate) fn warn(&self, before: &Extensions) {
        for (upstream, _) in &self.servers {
            let server = &upstream.options.name;
            let new = self.repeated.iter().filter(|r| r.server == *server && !before.repeated.contains(r));
            for Repeated { id, first, .. } in new {
                let text = format!(
                    "dateline: the server {first} declares the extension {:?} too; clients are shown its settings, \
                     and it is asked first",
                    clipped(id, SHOWN)
                );
                upstream.logs.warn(server, &text);
            }
        }
    }

    /// Returns whether any server declares an extension.
    pub(crate) fn any(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Returns the servers that may have a method, for a client of this revision: those that declare an extension in a
    /// form that the revision knows. Servers whose extension has the method's first part in its identifier come first.
    pub(crate) fn candidates(&self, method: &str, revision: Revision) -> Vec<Arc<Upstream>> {
        let part = method.split('/').next().unwrap_or_default();
        let names = |id: &ByteString| id.split('/').any(|of_id| of_id == part);
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (upstream, declared) in &self.servers {
            let ids = || ids(declared, revision);
            if ids().any(names) {
                named.push(Arc::clone(upstream));
            } else if ids().next().is_some() {
                others.push(Arc::clone(upstream));
            }
        }
        named.append(&mut others);
        named
    }
}

/// Iterates over the identifiers that a server declares in a form that the revision knows.
fn ids(declared: &Capabilities, revision: Revision) -> impl Iterator<Item = &ByteString> {
    let maps = [("extensions", &declared.extensions), ("experimental", &declared.experimental)];
    let known = move |name: &str| {
        fields::SERVER_CAPABILITIES.field(name).is_some_and(|field| field.exists.contains(revision))
    };
    maps.into_iter().filter(move |(name, _)| known(name)).flat_map(|(_, map)| map.iter().map(|(id, _)| id))
}
