//! What all servers offer together, under names that tell them apart.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use proto::{Mirror, Object, Raw, Template, header};
use spec::Method;

use crate::name::{self, Candidate, Known};
use crate::options::Prefix;
use crate::upstream::Upstream;

/// The merged lists, in the order of the servers and of their own lists. It is made as a whole and never changed.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Named,
    pub(crate) prompts: Named,
    pub(crate) resources: Vec<Raw>,
    pub(crate) templates: Vec<Raw>,
    owners: HashMap<ByteString, Arc<Upstream>>,
    patterns: Vec<(Template, Arc<Upstream>)>,
    mirrors: HashMap<String, Arc<[Mirror]>>,
}

/// Things that have a name.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) listed: Vec<Raw>,
    routes: HashMap<String, Route>,
}

/// Whose something is, and what it is called there.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) name: ByteString,
}

impl Named {
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.routes.get(name)
    }

    /// Merges one list of all servers. `change` may leave an entry out, or change it; it says whether it did.
    fn merge(
        upstreams: &[Arc<Upstream>],
        method: Method,
        prefix: Prefix,
        known: &mut Known,
        change: impl Fn(&Upstream, &str, &mut Object) -> Option<bool>,
    ) -> Named {
        let list = method.row().lists.unwrap_or_default();
        let mut found = Vec::new();
        let mut learnt = false;
        for upstream in upstreams.iter().filter(|upstream| upstream.is_offered()) {
            let from = found.len();
            for entry in upstream.listed(method).iter() {
                let Ok(mut object) = entry.object() else { continue };
                let Some(own) = object.string("name") else { continue };
                if let Some(changed) = change(upstream, &own, &mut object) {
                    found.push((upstream, own, object, (!changed).then(|| entry.clone())));
                }
            }
            let names = found[from..].iter().map(|(_, own, ..)| own.to_string()).collect();
            learnt |= known.note(list, &upstream.options.name, names);
        }
        if learnt {
            known.save();
        }
        let absent: Vec<_> =
            upstreams.iter().filter(|u| !u.is_offered()).map(|u| u.options.name.as_str()).collect();
        let candidates: Vec<_> =
            found.iter().map(|(u, own, ..)| Candidate { server: &u.options.name, name: own }).collect();
        let exposed = name::exposed(&candidates, &known.absent(list, &absent), prefix);
        let mut named = Named::default();
        for ((upstream, own, mut object, untouched), name) in found.into_iter().zip(exposed) {
            let Some(name) = name else { continue };
            named.listed.push(match untouched {
                // What nothing was changed of is passed on as it came.
                Some(entry) if *own == *name => entry,
                _ => {
                    object.set("name", name.as_str());
                    object.into()
                }
            });
            named.routes.insert(name, Route { upstream: Arc::clone(upstream), name: own });
        }
        named
    }
}

impl Catalog {
    /// Merges what the servers list.
    pub(crate) fn merge(upstreams: &[Arc<Upstream>], prefix: Prefix, known: &mut Known) -> Catalog {
        let tools = Named::merge(upstreams, Method::ToolsList, prefix, known, tool);
        let mut mirrors = HashMap::new();
        for entry in tools.listed.iter().filter_map(|entry| entry.object().ok()) {
            if let (Some(name), Ok(found)) = (entry.string("name"), annotations(&entry))
                && !found.is_empty()
            {
                mirrors.insert(name.to_string(), found.into());
            }
        }
        let prompts = Named::merge(upstreams, Method::PromptsList, prefix, known, |_, _, _| Some(false));
        let mut catalog = Catalog { tools, mirrors, prompts, ..Catalog::default() };
        for upstream in upstreams {
            let name = &upstream.options.name;
            for entry in upstream.listed(Method::ResourcesList).iter() {
                let Some(uri) = entry.object().ok().and_then(|object| object.string("uri")) else { continue };
                // Of two servers with one URI the first one is asked.
                if catalog.owners.contains_key(&uri) {
                    tracing::debug!(server = name, uri = &*uri, "another server has this resource too");
                    continue;
                }
                catalog.owners.insert(uri, Arc::clone(upstream));
                catalog.resources.push(entry.clone());
            }
            for entry in upstream.listed(Method::ResourcesTemplatesList).iter() {
                let Some(source) = entry.object().ok().and_then(|object| object.string("uriTemplate")) else {
                    continue;
                };
                match Template::new(&source) {
                    Ok(template) => catalog.patterns.push((template, Arc::clone(upstream))),
                    Err(why) => tracing::debug!(server = name, %why, "a template is listed, but not matched"),
                }
                catalog.templates.push(entry.clone());
            }
        }
        catalog
    }

    /// Whose resource a URI is: the server that lists it, else the first whose template fits.
    pub(crate) fn owner(&self, uri: &str) -> Option<Arc<Upstream>> {
        self.owners.get(uri).cloned().or_else(|| {
            self.patterns
                .iter()
                .find(|(template, _)| template.matches(uri).is_some())
                .map(|(_, u)| Arc::clone(u))
        })
    }

    /// Whose template this is.
    pub(crate) fn template_owner(&self, source: &str) -> Option<Arc<Upstream>> {
        self.patterns.iter().find(|(template, _)| template.as_str() == source).map(|(_, u)| Arc::clone(u))
    }

    pub(crate) fn mirrors(&self, tool: &str) -> Arc<[Mirror]> {
        self.mirrors.get(tool).cloned().unwrap_or_else(|| Arc::new([]))
    }
}

/// A tool as it is shown: not at all where it is not allowed or its annotations break the rules, and with other
/// words where it is told so.
fn tool(upstream: &Upstream, name: &str, tool: &mut Object) -> Option<bool> {
    if !upstream.options.shows(name) {
        return None;
    }
    if let Err(why) = annotations(tool) {
        tracing::warn!(server = upstream.options.name, tool = name, %why, "a tool is left out");
        return None;
    }
    let Some(said) = upstream.options.overrides.get(name) else { return Some(false) };
    for (member, text) in [("title", &said.title), ("description", &said.description)] {
        if let Some(text) = text {
            tool.set(member, text.as_str());
        }
    }
    Some(true)
}

fn annotations(tool: &Object) -> Result<Vec<Mirror>, String> {
    tool.get("inputSchema").map_or_else(|| Ok(Vec::new()), header::mirrors)
}
