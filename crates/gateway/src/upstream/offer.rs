//! The entries of one list of one server, checked and made ready to be shown.

use std::collections::HashMap;

use bytestring::ByteString;
use proto::{HeaderParam, Object, Raw, Template, header, repair};
use spec::Method;

use crate::options::ServerOptions;

/// How count entries that are left out are named.
const NAMED: usize = 20;
/// The longest name, URI or template by which something is asked for, in bytes: what is longer names nothing that a
/// client could use.
const LONGEST: usize = 4096;

/// The entries of a list that can be shown.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) entries: Vec<ListEntry>,
    /// What cannot, with the reason.
    pub(crate) left_out: EntryNotes,
}

/// An entry of a list.
#[derive(Debug)]
pub(crate) struct ListEntry {
    /// The name, URI or template that it is asked for by.
    pub(crate) key: ByteString,
    pub(crate) raw: Raw,
    pub(crate) mirrors: Vec<HeaderParam>,
    pub(crate) template: Option<Template>,
}

/// Notes about entries of a list: the first of them in words, and how many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryNotes {
    /// The first of them, by name, and why.
    pub(crate) named: Vec<(String, String)>,
    /// How count there are in all.
    pub(crate) count: usize,
}

impl EntryNotes {
    fn note(&mut self, name: &str, why: String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((name.chars().take(80).collect(), why));
        }
    }
}

/// The field that identifies an entry of a list.
fn key(method: &Method) -> &'static str {
    match method {
        Method::ResourcesList => "uri",
        Method::ResourcesTemplatesList => "uriTemplate",
        _ => "name",
    }
}

/// The word for an entry of a list in a sentence.
pub(crate) fn thing(method: &Method) -> &'static str {
    match method {
        Method::ToolsList => "tool",
        Method::PromptsList => "prompt",
        Method::ResourcesList => "resource",
        _ => "resource template",
    }
}

impl Offer {
    /// Makes a list ready. Leaves out entries that are not valid, and tools that the configuration hides.
    pub(crate) fn new(method: &Method, sent: &[Raw], options: &ServerOptions) -> Offer {
        let mut offer = Offer::default();
        let (Some(shape), key) = (repair::entries(method.row()), key(method)) else { return offer };
        for (at, sent) in sent.iter().enumerate() {
            let mut raw = sent.clone();
            let named = || {
                let name = sent.object().ok().and_then(|object| object.string(key));
                name.map_or_else(|| format!("number {}", at + 1), |name| name.to_string())
            };
            match repair::entry(&mut raw, shape) {
                Err(why) => offer.left_out.note(&named(), format!("it is left out: {why}")),
                Ok(lost) => {
                    if !lost.is_empty() {
                        offer.left_out.note(&named(), format!("of it is left out: {}", lost.join("; ")));
                    }
                    if let Err(why) = offer.add(method, key, raw, options) {
                        offer.left_out.note(&named(), format!("it is left out: {why}"));
                    }
                }
            }
        }
        offer
    }

    fn add(&mut self, method: &Method, key: &str, raw: Raw, options: &ServerOptions) -> Result<(), String> {
        let mut object = raw.object().map_err(|why| why.to_string())?;
        let key = object.string(key).ok_or("it has no name")?;
        if key.len() > LONGEST {
            return Err(format!("its name is longer than {LONGEST} bytes"));
        }
        let mut entry = ListEntry { key, raw, mirrors: Vec::new(), template: None };
        match method {
            Method::ToolsList => {
                if !options.shows(&entry.key) {
                    return Ok(());
                }
                entry.mirrors =
                    object.get("inputSchema").map_or_else(|| Ok(Vec::new()), header::header_params)?;
                if overridden(&entry.key, &mut object, options) {
                    entry.raw = object.into();
                }
            }
            Method::ResourcesTemplatesList => match Template::new(&entry.key) {
                Ok(template) => entry.template = Some(template),
                // It is asked for by how it begins.
                Err(why) => {
                    tracing::debug!(server = options.name, %why, "a template is listed, but not matched")
                }
            },
            _ => {}
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The entries whose definition changed. A server may change a tool after its user approved it, so this is logged.
    pub(crate) fn changed_since(&self, before: &Offer) -> EntryNotes {
        let old: HashMap<&str, &Raw> = before.entries.iter().map(|entry| (&*entry.key, &entry.raw)).collect();
        let mut changed = EntryNotes::default();
        for entry in &self.entries {
            if let Some(old) = old.get(&*entry.key).filter(|old| **old != &entry.raw) {
                changed.note(&entry.key, differences(old, &entry.raw));
            }
        }
        changed
    }
}

/// The names of the fields in which two objects differ.
fn differences(old: &Raw, new: &Raw) -> String {
    let (old, new) = (old.object().unwrap_or_default(), new.object().unwrap_or_default());
    let names = old.iter().chain(new.iter()).map(|(name, _)| name);
    let mut changed: Vec<&str> = Vec::new();
    for name in names.filter(|name| old.get(name) != new.get(name)) {
        if !changed.contains(&&**name) && changed.len() < NAMED {
            changed.push(name);
        }
    }
    changed.join(", ")
}

/// Replaces the title and description of a tool by the configured ones; returns whether it changed the tool.
fn overridden(name: &str, tool: &mut Object, options: &ServerOptions) -> bool {
    let Some(said) = options.overrides.get(name) else { return false };
    for (member, text) in [("title", &said.title), ("description", &said.description)] {
        if let Some(text) = text {
            tool.set(member, text.as_str());
        }
    }
    said.title.is_some() || said.description.is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::{BoxFuture, Description, Filter, Listening, Peer, Rejection, Request, Service};

    use super::*;
    use crate::options::{Pattern, Target};

    struct Nobody;

    impl Service for Nobody {
        fn describe(&self) -> Arc<Description> {
            unreachable!()
        }
        fn call(&self, _: Request) -> BoxFuture<'_, Result<proto::Answer, Rejection>> {
            unreachable!()
        }
        fn listen(&self, _: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
            unreachable!()
        }

        fn abandon(&self, _: proto::Request) {}
        fn header_params(&self, _: &str) -> std::sync::Arc<[proto::HeaderParam]> {
            std::sync::Arc::new([])
        }
    }

    fn tool(name: &str, more: &str) -> Raw {
        Raw::of(&serde_json::from_str::<serde_json::Value>(&format!(r#"{{"name":"{name}"{more}}}"#)).unwrap())
    }

    #[test]
    fn what_is_left_out_is_counted_and_the_first_of_it_named() {
        let mut options = ServerOptions::new("s", Target::Local(Arc::new(Nobody)));
        options.deny = vec![Pattern::new("secret")];
        let broken: Vec<Raw> = (0..100).map(|n| tool(&format!("t{n}"), r#","inputSchema":7"#)).collect();
        let sent = [&broken[..], &[tool("fine", ""), tool("secret", "")]].concat();
        let offer = Offer::new(&Method::ToolsList, &sent, &options);
        assert_eq!(offer.entries.iter().map(|e| &*e.key).collect::<Vec<_>>(), ["fine"]);
        assert_eq!((offer.left_out.count, offer.left_out.named.len()), (100, NAMED));
        assert_eq!(offer.left_out.named[0].0, "t0");
    }

    #[test]
    fn a_definition_that_is_another_one_than_it_was_is_named() {
        let options = ServerOptions::new("s", Target::Local(Arc::new(Nobody)));
        let offer = |sent: &[Raw]| Offer::new(&Method::ToolsList, sent, &options);
        let before = offer(&[tool("a", r#","description":"adds""#), tool("b", "")]);
        let after = offer(&[
            tool("b", ""),
            tool("a", r#","description":"sends all your files away""#),
            tool("c", ""),
        ]);
        let changed = after.changed_since(&before);
        assert_eq!(changed.named, [("a".to_owned(), "description".to_owned())]);
        assert_eq!(before.changed_since(&before).count, 0);
    }
}
