//! The capabilities that clients and servers declare.

use bytestring::ByteString;
use spec::{Capability, Question, Revision};

use crate::json::{Object, Raw};
use crate::model::input::InputRequest;

/// The capabilities of a client. A modern client declares them in each request, a legacy client in its handshake.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#clientcapabilities>
#[derive(Clone, Debug, Default)]
pub struct ClientCapabilities {
    sent: Object,
    roots: bool,
    sampling: bool,
    sampling_tools: bool,
    sampling_context: bool,
    elicitation_form: bool,
    elicitation_url: bool,
    extensions: Object,
}

impl ClientCapabilities {
    /// Reads what a client declared. A capability that the revision does not have is ignored.
    pub fn read(sent: Object, revision: Revision) -> ClientCapabilities {
        let rules = revision.rules();
        let part = |name: &str| sent.get(name).and_then(|raw| raw.object().ok());
        let sampling = part("sampling");
        let elicitation = part("elicitation").filter(|_| Question::Elicit.exists().contains(revision));
        let has = |part: &Option<Object>, name: &str| {
            part.as_ref().is_some_and(|p| p.get(name).is_some_and(|part| !part.is_null()))
        };
        // An object without modes means forms; so does every object in a revision without modes.
        let form = elicitation.as_ref().is_some_and(|_| {
            has(&elicitation, "form") || !has(&elicitation, "url") || !rules.url_elicitation
        });
        ClientCapabilities {
            roots: sent.get("roots").is_some_and(|r| r.starts_with('{')),
            sampling: sampling.is_some(),
            sampling_tools: rules.sampling_tools && has(&sampling, "tools"),
            sampling_context: !rules.sampling_tools && sampling.is_some() || has(&sampling, "context"),
            elicitation_form: form,
            elicitation_url: rules.url_elicitation && has(&elicitation, "url"),
            extensions: part("extensions").unwrap_or_default(),
            sent,
        }
    }

    /// Returns the object as the client sent it.
    pub fn sent(&self) -> &Object {
        &self.sent
    }

    /// Returns whether the client answers `roots/list`.
    pub fn roots(&self) -> bool {
        self.roots
    }

    /// Returns whether the client answers `sampling/createMessage`.
    pub fn sampling(&self) -> bool {
        self.sampling
    }

    /// Returns whether the client can ask its user to fill in a form.
    pub fn elicitation_form(&self) -> bool {
        self.elicitation_form
    }

    /// Returns whether the client can ask its user to open a URL.
    pub fn elicitation_url(&self) -> bool {
        self.elicitation_url
    }

    /// Returns the settings of an extension that the client declared.
    pub fn extension(&self, id: &str) -> Option<&Raw> {
        self.extensions.get(id)
    }

    /// Returns the capability that the client would have to declare to be asked this question, as a
    /// `ClientCapabilities` object; `None` where the client may be asked.
    pub fn lacks(&self, ask: &InputRequest) -> Option<Object> {
        let missing = |name: &str, part: Option<&str>| {
            let inner =
                part.map_or_else(Object::new, |p| Object::new().with(p.to_owned(), Raw::literal("{}")));
            Some(Object::new().with(name.to_owned(), Raw::from(inner)))
        };
        match ask.question {
            Question::ListRoots if !self.roots => missing("roots", None),
            Question::Sample if !self.sampling => missing("sampling", None),
            Question::Sample
                if !self.sampling_tools
                    && (ask.params.get("tools").is_some() || ask.params.get("toolChoice").is_some()) =>
            {
                missing("sampling", Some("tools"))
            }
            Question::Sample
                if !self.sampling_context
                    && ask.params.string("includeContext").is_some_and(|context| context != "none") =>
            {
                missing("sampling", Some("context"))
            }
            Question::Elicit => {
                let url = ask.params.string("mode").is_some_and(|mode| mode == "url");
                match url {
                    true if !self.elicitation_url => missing("elicitation", Some("url")),
                    false if !self.elicitation_form => missing("elicitation", Some("form")),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Returns the extensions that a gateway can pass on. The tasks extension is none of them: a request about a task is for
/// the server that made the task, and no row of the tables says which server that is.
pub fn without_tasks(mut extensions: Object) -> Object {
    extensions.retain(|id, _| id != spec::tasks::ID);
    extensions
}

/// The capabilities that a server declares.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#servercapabilities>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    set: u16,
    /// The settings of extensions, by the identifier of each.
    pub extensions: Object,
    /// The settings of capabilities that no specification has, by the name of each.
    pub experimental: Object,
}

impl Capabilities {
    /// Returns no capabilities.
    pub fn none() -> Capabilities {
        Capabilities::default()
    }

    /// Adds a capability.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Capabilities {
        self.set |= 1 << capability as u16;
        self
    }

    /// Returns whether the server declares a capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.set & (1 << capability as u16) != 0
    }

    /// Returns whether the server declares what a row of the tables needs. Some rows need nothing.
    pub fn satisfies(&self, needs: Option<Capability>) -> bool {
        needs.is_none_or(|needed| self.has(needed))
    }

    /// Returns whether the server declares anything that the core does not have.
    pub fn has_extensions(&self) -> bool {
        !self.extensions.is_empty() || !self.experimental.is_empty()
    }

    /// Reads what a server declared.
    pub fn read(sent: &Object) -> Capabilities {
        let mut read = Capabilities::default();
        for capability in Capability::ALL {
            let (name, flag) = capability.path();
            let part = sent.get(name).and_then(|raw| raw.object().ok());
            let declared =
                part.is_some_and(|part| flag.is_none_or(|f| part.get(f).is_some_and(Raw::is_true)));
            if declared {
                read = read.with(capability);
            }
        }
        let named = |name: &str| sent.get(name).and_then(|raw| raw.object().ok()).unwrap_or_default();
        (read.extensions, read.experimental) = (named("extensions"), named("experimental"));
        read
    }

    /// Writes the `ServerCapabilities` object of the newest revision.
    pub fn object(&self) -> Object {
        let mut object = Object::new();
        for capability in Capability::ALL.into_iter().filter(|c| self.has(*c)) {
            let (name, flag) = capability.path();
            let mut part = object.get(name).and_then(|raw| raw.object().ok()).unwrap_or_default();
            if let Some(flag) = flag {
                part.set(ByteString::from_static(flag), Raw::literal("true"));
            }
            object.set(ByteString::from_static(name), Raw::from(part));
        }
        for (name, declared) in [("extensions", &self.extensions), ("experimental", &self.experimental)] {
            if !declared.is_empty() {
                object.set(name, Raw::from(declared.clone()));
            }
        }
        object
    }
}
