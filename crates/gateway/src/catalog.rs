//! What all upstreams offer together, under names that tell them apart.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use proto::{Mirror, Raw, header};
use server::Template;
use spec::Method;

use crate::name;
use crate::upstream::Upstream;

/// The merged lists, in the order of the upstreams and of their own lists. It is made as a whole and never
/// changed.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Named,
    pub(crate) prompts: Named,
    pub(crate) resources: Vec<Raw>,
    pub(crate) templates: Vec<Raw>,
    owners: HashMap<ByteString, usize>,
    patterns: Vec<(Template, usize)>,
    mirrors: HashMap<String, Arc<[Mirror]>>,
}

/// Things that have a name.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) listed: Vec<Raw>,
    routes: HashMap<String, Route>,
}

/// Whose something is, and what it is called there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) upstream: usize,
    pub(crate) name: ByteString,
}

impl Named {
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.routes.get(name)
    }

    fn merge(
        upstreams: &[Arc<Upstream>],
        method: Method,
        fits: impl Fn(&Upstream, &str, &Raw) -> bool,
    ) -> Named {
        let mut found = Vec::new();
        for (at, upstream) in upstreams.iter().enumerate() {
            for entry in upstream.listed(method).iter() {
                let Ok(object) = entry.object() else { continue };
                let Some(own) = object.string("name") else { continue };
                if fits(upstream, &own, entry) {
                    found.push((at, own, object, entry.clone()));
                }
            }
        }
        let pairs: Vec<(&str, &str)> =
            found.iter().map(|(at, own, ..)| (upstreams[*at].name.as_str(), &**own)).collect();
        let exposed = name::exposed(&pairs);
        let mut named = Named::default();
        for ((at, own, mut object, entry), name) in found.into_iter().zip(exposed) {
            // What keeps its name is passed on as it came.
            if *own == *name {
                named.listed.push(entry);
            } else {
                object.set("name", name.as_str());
                named.listed.push(object.into());
            }
            named.routes.insert(name, Route { upstream: at, name: own });
        }
        named
    }
}

impl Catalog {
    /// Merges what the upstreams list.
    pub(crate) fn merge(upstreams: &[Arc<Upstream>]) -> Catalog {
        let sound = |upstream: &Upstream, tool: &str, entry: &Raw| match annotations(entry) {
            Ok(_) => true,
            Err(why) => {
                tracing::warn!(server = upstream.name, tool, %why, "a tool is left out");
                false
            }
        };
        let tools = Named::merge(upstreams, Method::ToolsList, sound);
        let mut mirrors = HashMap::new();
        for entry in &tools.listed {
            let name = entry.object().ok().and_then(|object| object.string("name"));
            if let (Some(name), Ok(found)) = (name, annotations(entry))
                && !found.is_empty()
            {
                mirrors.insert(name.to_string(), found.into());
            }
        }
        let mut catalog = Catalog {
            tools,
            mirrors,
            prompts: Named::merge(upstreams, Method::PromptsList, |_, _, _| true),
            ..Catalog::default()
        };
        for (at, upstream) in upstreams.iter().enumerate() {
            for entry in upstream.listed(Method::ResourcesList).iter() {
                let Some(uri) = entry.object().ok().and_then(|object| object.string("uri")) else { continue };
                // Of two servers with one URI the first one is asked.
                if catalog.owners.contains_key(&uri) {
                    tracing::debug!(
                        server = upstream.name,
                        uri = &*uri,
                        "another server has this resource too"
                    );
                    continue;
                }
                catalog.owners.insert(uri, at);
                catalog.resources.push(entry.clone());
            }
            for entry in upstream.listed(Method::ResourcesTemplatesList).iter() {
                let Some(source) = entry.object().ok().and_then(|object| object.string("uriTemplate")) else {
                    continue;
                };
                match Template::new(&source) {
                    Ok(template) => catalog.patterns.push((template, at)),
                    Err(why) => {
                        tracing::debug!(server = upstream.name, %why, "a template is listed, but not matched")
                    }
                }
                catalog.templates.push(entry.clone());
            }
        }
        catalog
    }

    /// Whose resource a URI is: the server that lists it, else the first whose template fits.
    pub(crate) fn owner(&self, uri: &str) -> Option<usize> {
        self.owners.get(uri).copied().or_else(|| {
            self.patterns.iter().find(|(template, _)| template.matches(uri).is_some()).map(|(_, at)| *at)
        })
    }

    /// Whose template this is.
    pub(crate) fn template_owner(&self, source: &str) -> Option<usize> {
        self.patterns.iter().find(|(template, _)| template.as_str() == source).map(|(_, at)| *at)
    }

    pub(crate) fn mirrors(&self, tool: &str) -> Arc<[Mirror]> {
        self.mirrors.get(tool).cloned().unwrap_or_else(|| Arc::new([]))
    }
}

fn annotations(tool: &Raw) -> Result<Vec<Mirror>, String> {
    let schema = tool.object().ok().and_then(|object| object.get("inputSchema").cloned());
    schema.map_or_else(|| Ok(Vec::new()), |schema| header::mirrors(&schema))
}
