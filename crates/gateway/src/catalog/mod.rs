//! The merged lists of all servers, under names that tell their entries apart.

pub(crate) mod extensions;
pub(crate) mod given_names;
pub(crate) mod merge;
pub(crate) mod merge_requests;
pub(crate) mod name;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytestring::ByteString;
use proto::{Change, HeaderParam, Raw, Request, Template};
use spec::Method;

use crate::options::{Names, Options, Prefix};
use crate::upstream::Upstream;
use crate::upstream::offer::{ListEntry, Offer};
use extensions::Extensions;
use given_names::{GivenNames, NameStore};
use name::{Candidate, NamingRules};

/// How many steps are spent to match a URI against templates: a fraction of a second. Templates after that are compared by
/// their beginning only.
const STEPS: usize = 1 << 24;
/// How many servers are asked for a resource, or for a method of an extension, that no server is known to have. Each
/// costs the client a round trip.
const ASKED: usize = 8;

/// The merged lists of all servers, in the order of the servers and of their own lists. It is replaced as a whole.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tools: NamedEntries,
    pub(crate) prompts: NamedEntries,
    pub(crate) resources: Vec<Raw>,
    pub(crate) templates: Vec<Raw>,
    pub(crate) extensions: Extensions,
    owners: HashMap<ByteString, Arc<Upstream>>,
    patterns: Vec<TemplateRoute>,
    /// Which servers have resources of which scheme, each once.
    schemes: Vec<(String, Arc<Upstream>)>,
    mirrors: HashMap<String, Arc<[HeaderParam]>>,
    /// Whether each server was up or down once. Before that, which server has a resource depends on which came up first.
    settled: bool,
}

struct TemplateRoute {
    source: ByteString,
    template: Option<Template>,
    upstream: Arc<Upstream>,
}

/// The tools or prompts of all servers, by name.
#[derive(Default)]
pub(crate) struct NamedEntries {
    pub(crate) listed: Vec<Raw>,
    routes: HashMap<String, Route>,
}

/// The server of a tool or prompt, and the server's own name for it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) name: ByteString,
}

/// One list of one server, and whether it is shown. The list of a server that does not run is used for routing only.
struct SourceList {
    upstream: Arc<Upstream>,
    offer: Arc<Offer>,
    shown: bool,
}

impl SourceList {
    fn all(upstreams: &[Arc<Upstream>], method: &Method) -> Vec<SourceList> {
        let source = |upstream: &Arc<Upstream>| {
            let offer = upstream.offer(method)?;
            Some(SourceList { upstream: Arc::clone(upstream), offer, shown: upstream.is_offered() })
        };
        upstreams.iter().filter_map(source).collect()
    }

    fn name(&self) -> &str {
        &self.upstream.options.name
    }
}

impl NamedEntries {
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.routes.get(name)
    }

    /// Merges one list of all servers. Names are remembered once the servers are `settled`. Calls `also` with each entry that
    /// is shown, and its name.
    fn merge(
        sources: &[SourceList],
        method: &Method,
        rules: NamingRules<'_>,
        (store, settled): (&mut NameStore, bool),
        mut also: impl FnMut(&str, &ListEntry),
    ) -> NamedEntries {
        let list = method.row().lists.unwrap_or_default();
        for source in sources {
            store.note(list, source.name(), source.offer.entries.iter().map(|entry| &*entry.key));
        }
        let found = || sources.iter().flat_map(|s| s.offer.entries.iter().map(move |entry| (s, entry)));
        let candidates: Vec<_> = found()
            .map(|(source, entry)| {
                let said = source.upstream.options.overrides.get(&*entry.key);
                let wanted =
                    said.filter(|_| *method == Method::ToolsList).and_then(|said| said.name.as_deref());
                Candidate { server: source.name(), own: &entry.key, wanted }
            })
            .collect();
        let none = GivenNames::default();
        let exposed = name::exposed(&candidates, store.given(list).unwrap_or(&none), rules);
        let mut named = NamedEntries::default();
        for (((source, entry), c), name) in found().zip(&candidates).zip(exposed) {
            let Some(name) = name else { continue };
            if settled && c.wanted.is_none() {
                store.give(list, c.server, c.own, &name);
            }
            if source.shown {
                named.listed.push(match entry.raw.object() {
                    Ok(object) if *entry.key != *name => object.with("name", name.as_str()).into(),
                    // What nothing was changed of is passed on as it came.
                    _ => entry.raw.clone(),
                });
                also(&name, entry);
            }
            let route = Route { upstream: Arc::clone(&source.upstream), name: entry.key.clone() };
            named.routes.insert(name, route);
        }
        named
    }
}

impl Catalog {
    /// Merges the lists of all servers. A resource stays with the server that had it before, while that server lists it.
    pub(crate) fn merge(
        before: &Catalog,
        upstreams: &[Arc<Upstream>],
        options: &Options,
        store: &mut NameStore,
    ) -> Catalog {
        let servers: Vec<&str> = upstreams.iter().map(|u| u.options.name.as_str()).collect();
        let Options { prefix, names, .. } = *options;
        let rules = NamingRules { prefix, names, servers: &servers };
        store.rule(said(prefix, names));
        let settled = upstreams.iter().all(|upstream| upstream.was_seen());
        let mut mirrors = HashMap::new();
        let tools = SourceList::all(upstreams, &Method::ToolsList);
        let tools =
            NamedEntries::merge(&tools, &Method::ToolsList, rules, (store, settled), |name, entry| {
                if !entry.mirrors.is_empty() {
                    mirrors.insert(name.to_owned(), entry.mirrors.clone().into());
                }
            });
        let prompts = SourceList::all(upstreams, &Method::PromptsList);
        let prompts = NamedEntries::merge(&prompts, &Method::PromptsList, rules, (store, settled), |_, _| {});
        store.save();
        let extensions = Extensions::merge(upstreams);
        extensions.warn(&before.extensions);
        let mut catalog = Catalog { tools, mirrors, prompts, settled, extensions, ..Catalog::default() };
        catalog.add_resources(before, upstreams);
        catalog
    }

    fn add_resources(&mut self, before: &Catalog, upstreams: &[Arc<Upstream>]) {
        let sources = SourceList::all(upstreams, &Method::ResourcesList);
        let mut listing: HashMap<&str, Vec<&SourceList>> = HashMap::new();
        for source in &sources {
            for entry in &source.offer.entries {
                listing.entry(&entry.key).or_default().push(source);
            }
        }
        for source in &sources {
            let schemes = source.offer.entries.iter().filter_map(|entry| entry.key.split_once(':'));
            let schemes: BTreeSet<&str> = schemes.map(|(scheme, _)| scheme).collect();
            self.schemes.extend(schemes.iter().map(|s| ((*s).to_owned(), Arc::clone(&source.upstream))));
            for entry in &source.offer.entries {
                // Of several servers with one URI, the one that had it before is asked, else the first.
                let owner = before.owners.get(&entry.key).filter(|_| before.settled);
                let owner = owner.map(|owner| owner.options.name.as_str());
                let all = listing.get(&*entry.key).map(Vec::as_slice).unwrap_or_default();
                let due = all.iter().find(|s| Some(s.name()) == owner).or(all.first());
                if due.is_some_and(|due| due.name() != source.name()) {
                    tracing::debug!(
                        server = source.name(),
                        uri = &*entry.key,
                        "another server has this resource"
                    );
                    continue;
                }
                if self.owners.insert(entry.key.clone(), Arc::clone(&source.upstream)).is_none()
                    && source.shown
                {
                    self.resources.push(entry.raw.clone());
                }
            }
        }
        for source in &SourceList::all(upstreams, &Method::ResourcesTemplatesList) {
            for entry in &source.offer.entries {
                let (source_text, template) = (entry.key.clone(), entry.template.clone());
                let upstream = Arc::clone(&source.upstream);
                self.patterns.push(TemplateRoute { source: source_text, template, upstream });
                if source.shown {
                    self.templates.push(entry.raw.clone());
                }
            }
        }
    }

    /// What changed since the catalog before.
    pub(crate) fn changes(&self, before: &Catalog) -> Vec<Change> {
        let changed = [
            (self.tools.listed != before.tools.listed, Change::Tools),
            (self.prompts.listed != before.prompts.listed, Change::Prompts),
            (self.resources != before.resources || self.templates != before.templates, Change::Resources),
        ];
        changed.into_iter().filter_map(|(changed, change)| changed.then_some(change)).collect()
    }

    /// The server of a resource: the one that lists it, else the first whose template matches.
    pub(crate) fn owner(&self, uri: &str) -> Option<Arc<Upstream>> {
        self.owners.get(uri).cloned().or_else(|| self.matching(uri).next().map(Arc::clone))
    }

    /// Who may have a resource: its owner alone, or, where there is none, the servers with templates that begin as the
    /// URI does, the longest beginning first, and then those that have others of its scheme. A template need not say all
    /// that its server takes.
    pub(crate) fn candidates(&self, uri: &str) -> Vec<Arc<Upstream>> {
        if let Some(owner) = self.owners.get(uri) {
            return vec![Arc::clone(owner)];
        }
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
        let of_scheme = |other: &str| other.split_once(':').is_some_and(|(other, _)| Some(other) == scheme);
        let mut begins: Vec<(usize, &Arc<Upstream>)> = Vec::new();
        for pattern in &self.patterns {
            let beginning = pattern.source.split('{').next().unwrap_or_default();
            if uri.starts_with(beginning) || of_scheme(beginning) {
                let shared = if uri.starts_with(beginning) { beginning.len() } else { 0 };
                begins.push((shared, &pattern.upstream));
            }
        }
        begins.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        let listing = self
            .schemes
            .iter()
            .filter(|(other, _)| Some(other.as_str()) == scheme)
            .map(|(_, upstream)| upstream);
        let mut found: Vec<Arc<Upstream>> = Vec::new();
        for upstream in self.matching(uri).chain(begins.into_iter().map(|(_, u)| u)).chain(listing) {
            if found.len() < ASKED && !found.iter().any(|known| Arc::ptr_eq(known, upstream)) {
                found.push(Arc::clone(upstream));
            }
        }
        found
    }

    /// The servers that may have a method that the tables do not list, in the order in which they are asked. Where the
    /// params name a resource, those that may have it come first.
    pub(crate) fn for_extension(&self, request: &Request) -> Vec<Arc<Upstream>> {
        let of_method = self.extensions.candidates(request.method.wire(), request.peer.revision);
        let of_uri = request.params.string("uri").map(|uri| self.candidates(&uri)).unwrap_or_default();
        let is_in = |all: &[Arc<Upstream>], one: &Arc<Upstream>| all.iter().any(|u| Arc::ptr_eq(u, one));
        let (mut first, others): (Vec<_>, Vec<_>) =
            of_method.iter().cloned().partition(|upstream| is_in(&of_uri, upstream));
        // The order among those that may have the resource is that of the resource.
        first.sort_by_key(|upstream| of_uri.iter().position(|other| Arc::ptr_eq(other, upstream)));
        first.extend(others);
        first.truncate(ASKED);
        first
    }

    /// The servers whose templates match a URI.
    fn matching<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = &'a Arc<Upstream>> {
        let mut left = STEPS;
        self.patterns.iter().filter_map(move |pattern| {
            let template = pattern.template.as_ref()?;
            let steps = template.as_str().len().saturating_mul(uri.len());
            left = left.checked_sub(steps)?;
            template.matches(uri).map(|_| &pattern.upstream)
        })
    }

    /// The server that lists a template.
    pub(crate) fn template_owner(&self, source: &str) -> Option<Arc<Upstream>> {
        self.patterns.iter().find(|pattern| pattern.source == source).map(|p| Arc::clone(&p.upstream))
    }

    pub(crate) fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
        self.mirrors.get(tool).cloned().unwrap_or_else(|| Arc::new([]))
    }
}

/// The naming rules as the file of names has them.
fn said(prefix: Prefix, names: Names) -> &'static str {
    match (prefix, names) {
        (Prefix::Always, Names::Protocol) => "always",
        (Prefix::Collision, Names::Protocol) => "collision",
        (Prefix::None, Names::Protocol) => "none",
        (Prefix::Always, Names::Strict) => "always, strict",
        (Prefix::Collision, Names::Strict) => "collision, strict",
        (Prefix::None, Names::Strict) => "none, strict",
    }
}
