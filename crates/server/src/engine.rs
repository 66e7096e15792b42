//! The server: a registry of tools, resources and prompts, and the service that answers from it.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytestring::ByteString;
use futures_util::FutureExt as _;
use proto::{
    Answer, Answers, BoxFuture, CacheHint, Capabilities, Change, Description, Filter, Interim, Listening,
    Mirror, Object, Peer, Raw, Rejection, Request, Service, Watchers,
};
use serde_json::Value;
use spec::{Capability, InvalidInput, Method};

use crate::complete::{self, Completer, Typed};
use crate::content::ToolResult;
use crate::context::Cx;
use crate::error::{Error, Kind, Result};
use crate::extension::{Extension, Part};
use crate::handler::Run;
use crate::list;
use crate::prompt::{self, Prompt};
use crate::rate::{Limiter, Rate};
use crate::resource::{self, Resource, ResourceTemplate, Vars};
use crate::schema::value_of;
use crate::seal::{Keys, ProcessKey, Sealer, SystemClock, purpose};
use crate::shelf::Shelf;
use crate::tool::{self, Tool};

/// How long a client may take to answer a question.
const STATE_TTL: Duration = Duration::from_secs(3600);
/// The methods that list.
const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];
/// How often a client may have arguments completed, where nothing else is said: faster than one types.
const COMPLETIONS: Rate = Rate::per_second(100);

/// A server under construction.
pub struct Builder {
    identity: Object,
    instructions: Option<String>,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    extensions: Vec<Extension>,
    grows: bool,
    keys: Option<Arc<dyn Keys>>,
    page: usize,
    hints: HashMap<Method, CacheHint>,
    completions: Rate,
    calls: Option<Rate>,
    gate: Option<Gate>,
}

/// Decides who may call a tool.
type Gate = Arc<dyn Fn(&Peer, &str) -> Result<(), String> + Send + Sync>;

/// A server. Clones are handles to the same one.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    description: Arc<Description>,
    /// Replaced as a whole; a request keeps the one that it began with.
    offer: RwLock<Arc<Offer>>,
    methods: HashMap<&'static str, Run<Object>>,
    watchers: Watchers,
    sealer: Sealer,
    page: usize,
    hints: HashMap<Method, CacheHint>,
    completions: Limiter,
    calls: Option<Limiter>,
    gate: Option<Gate>,
}

/// What a server offers.
#[derive(Clone, Default)]
struct Offer {
    tools: Shelf<tool::Ready>,
    resources: Shelf<resource::Readable>,
    templates: Shelf<resource::Ready>,
    prompts: Shelf<prompt::Ready>,
}

impl Offer {
    fn put_tool(&mut self, tool: Tool) -> std::result::Result<(), String> {
        let name = tool.name.clone();
        self.tools.put(&name, tool.ready()?, "tool")
    }

    fn put_prompt(&mut self, prompt: Prompt) -> std::result::Result<(), String> {
        let name = prompt.name.clone();
        self.prompts.put(&name, prompt.ready()?, "prompt")
    }

    fn put_resource(&mut self, resource: Resource) -> std::result::Result<(), String> {
        let uri = resource.uri.clone();
        self.resources.put(&uri, resource.ready()?, "resource")
    }

    fn put_template(&mut self, template: ResourceTemplate) -> std::result::Result<(), String> {
        let source = template.source.clone();
        self.templates.put(&source, template.ready()?, "resource template")
    }
}

/// What is kept in a request state: the answers of earlier rounds.
type Kept = Vec<(String, Value)>;

impl Builder {
    /// The same with a title for people.
    #[must_use]
    pub fn title(self, title: &str) -> Builder {
        self.identity("title", title)
    }

    /// The same with any member of the server's `Implementation` object.
    #[must_use]
    pub fn identity(mut self, member: &'static str, value: impl Into<Value>) -> Builder {
        self.identity.set(member, Raw::of(&value.into()));
        self
    }

    /// The same with words on how a model should use it.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Builder {
        self.instructions = Some(text.into());
        self
    }

    /// The same with a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// The same with a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Builder {
        self.resources.push(resource);
        self
    }

    /// The same with a resource template.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Builder {
        self.templates.push(template);
        self
    }

    /// The same with a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Builder {
        self.prompts.push(prompt);
        self
    }

    /// The same with keys that other processes have too, so that each can go on where another left off.
    #[must_use]
    pub fn keys(mut self, keys: impl Keys) -> Builder {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// The same with at most so many entries a page; 250 where nothing is said.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Builder {
        self.page = entries.max(1);
        self
    }

    /// The same with an extension.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Builder {
        self.extensions.push(extension);
        self
    }

    /// The same with what a part defines.
    #[must_use]
    pub fn part(self, part: impl Part) -> Builder {
        part.add(self)
    }

    /// The same for a server whose tools, prompts and resources may come while it runs: it declares all three, also
    /// where it begins with none.
    #[must_use]
    pub fn grows(mut self) -> Builder {
        self.grows = true;
        self
    }

    /// The same with a time for which clients may keep lists without asking again, the same for every caller; none
    /// where nothing is said.
    #[must_use]
    pub fn lists_fresh_for(mut self, ttl: Duration) -> Builder {
        for list in LISTS.into_iter().chain([Method::Discover]) {
            self.hints.insert(list, CacheHint { ttl, public: true });
        }
        self
    }

    /// The same with how long one of the lists, or what the server says of itself, may be kept, and for whom.
    #[must_use]
    pub fn fresh_for(mut self, list: Method, ttl: Duration, public: bool) -> Builder {
        self.hints.insert(list, CacheHint { ttl, public });
        self
    }

    /// The same with a limit to how often a client may call tools.
    #[must_use]
    pub fn calls_rate(mut self, rate: Rate) -> Builder {
        self.calls = Some(rate);
        self
    }

    /// The same with a function that decides who may call which tool; what it says goes to whom it refuses.
    #[must_use]
    pub fn allow_calls(
        mut self,
        gate: impl Fn(&Peer, &str) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Builder {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// The same with a limit to how often a client may have arguments completed; 100 times a second where nothing is
    /// said.
    #[must_use]
    pub fn completions_rate(mut self, rate: Rate) -> Builder {
        self.completions = rate;
        self
    }

    /// Checks everything and makes the server.
    ///
    /// # Errors
    /// Says which definition is wrong and why.
    pub fn build(self) -> std::result::Result<Server, String> {
        let mut offer = Offer::default();
        self.tools.into_iter().try_for_each(|tool| offer.put_tool(tool))?;
        self.prompts.into_iter().try_for_each(|prompt| offer.put_prompt(prompt))?;
        self.resources.into_iter().try_for_each(|resource| offer.put_resource(resource))?;
        self.templates.into_iter().try_for_each(|template| offer.put_template(template))?;
        let mut capabilities = capabilities(&offer, self.grows);
        let (mut methods, mut added) = (HashMap::new(), Vec::new());
        for extension in self.extensions {
            let extension = extension.ready()?;
            capabilities.extensions.set(extension.id, extension.settings);
            for (method, handler) in extension.methods {
                if methods.insert(method.wire, handler).is_some() {
                    return Err(format!("two extensions have the method {:?}", method.wire));
                }
                added.push(method);
            }
        }
        let public = CacheHint { ttl: Duration::ZERO, public: true };
        let description = Description {
            identity: self.identity,
            capabilities,
            instructions: self.instructions,
            hint: self.hints.get(&Method::Discover).copied().unwrap_or(public),
            methods: added,
        };
        let keys = match self.keys {
            Some(keys) => keys,
            None => Arc::new(ProcessKey::new().map_err(|e| format!("no key could be made: {e}"))?),
        };
        Ok(Server(Arc::new(Inner {
            description: Arc::new(description),
            offer: RwLock::new(Arc::new(offer)),
            methods,
            watchers: Watchers::default(),
            sealer: Sealer::new(Shared(keys), SystemClock),
            page: self.page,
            hints: self.hints,
            completions: Limiter::new(self.completions),
            calls: self.calls.map(Limiter::new),
            gate: self.gate,
        })))
    }
}

/// What a server with this offer can do.
fn capabilities(offer: &Offer, grows: bool) -> Capabilities {
    let mut capabilities = Capabilities::none().with(Capability::Logging);
    if grows || !offer.tools.is_empty() {
        capabilities = capabilities.with(Capability::Tools).with(Capability::ToolsListChanged);
    }
    if grows || !offer.resources.is_empty() || !offer.templates.is_empty() {
        capabilities = capabilities
            .with(Capability::Resources)
            .with(Capability::ResourcesListChanged)
            .with(Capability::ResourcesSubscribe);
    }
    if grows || !offer.prompts.is_empty() {
        capabilities = capabilities.with(Capability::Prompts).with(Capability::PromptsListChanged);
    }
    let completes = offer.prompts.values().any(|p| p.arguments.iter().any(|a| a.complete.is_some()))
        || offer.templates.values().any(|t| !t.completers.is_empty());
    if grows || completes {
        capabilities = capabilities.with(Capability::Completions);
    }
    capabilities
}

struct Shared(Arc<dyn Keys>);

impl Keys for Shared {
    fn keys(&self) -> Vec<crate::seal::Key> {
        self.0.keys()
    }
}

impl Server {
    /// Starts to describe a server.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(name: &str, version: &str) -> Builder {
        Builder {
            identity: Object::new().with("name", name).with("version", version),
            instructions: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            extensions: Vec::new(),
            grows: false,
            keys: None,
            page: 250,
            hints: HashMap::new(),
            completions: COMPLETIONS,
            calls: None,
            gate: None,
        }
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.0.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what is offered, and tells clients where that succeeded.
    fn change<T, E>(
        &self,
        change: &Change,
        with: impl FnOnce(&mut Offer) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let changed = {
            let mut offer = self.0.offer.write().unwrap_or_else(PoisonError::into_inner);
            let mut new = (**offer).clone();
            let changed = with(&mut new);
            if changed.is_ok() {
                *offer = Arc::new(new);
            }
            changed
        };
        if changed.is_ok() {
            self.0.watchers.tell(change);
        }
        changed
    }

    /// Offers one more tool from now on, and tells clients. What was not declared at the start (see
    /// [`Builder::grows`]) older sessions may not look for.
    ///
    /// # Errors
    /// When there is one of that name, or its definition is wrong.
    pub fn add_tool(&self, tool: Tool) -> std::result::Result<(), String> {
        self.change(&Change::Tools, |offer| offer.put_tool(tool))
    }

    /// No longer offers a tool, and tells clients; says whether there was one. Calls under way go on.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(&Change::Tools, |offer| offer.tools.take(name).then_some(()).ok_or(())).is_ok()
    }

    /// Offers one more prompt from now on, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_prompt(&self, prompt: Prompt) -> std::result::Result<(), String> {
        self.change(&Change::Prompts, |offer| offer.put_prompt(prompt))
    }

    /// No longer offers a prompt, and tells clients; says whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(&Change::Prompts, |offer| offer.prompts.take(name).then_some(()).ok_or(())).is_ok()
    }

    /// Offers one more resource from now on, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_resource(&self, resource: Resource) -> std::result::Result<(), String> {
        self.change(&Change::Resources, |offer| offer.put_resource(resource))
    }

    /// No longer offers a resource, and tells clients; says whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(&Change::Resources, |offer| offer.resources.take(uri).then_some(()).ok_or(())).is_ok()
    }

    /// Offers one more resource template from now on, and tells clients.
    ///
    /// # Errors
    /// As [`Server::add_tool`].
    pub fn add_template(&self, template: ResourceTemplate) -> std::result::Result<(), String> {
        self.change(&Change::Resources, |offer| offer.put_template(template))
    }

    /// No longer offers a resource template, and tells clients; says whether there was one.
    pub fn remove_template(&self, template: &str) -> bool {
        self.change(&Change::Resources, |offer| offer.templates.take(template).then_some(()).ok_or(()))
            .is_ok()
    }

    /// Tells clients that the list of tools changed.
    pub fn tools_changed(&self) {
        self.0.watchers.tell(&Change::Tools);
    }

    /// Tells clients that the list of prompts changed.
    pub fn prompts_changed(&self) {
        self.0.watchers.tell(&Change::Prompts);
    }

    /// Tells clients that the list of resources changed.
    pub fn resources_changed(&self) {
        self.0.watchers.tell(&Change::Resources);
    }

    /// Tells clients that watch it that a resource changed.
    pub fn resource_updated(&self, uri: &str) {
        self.0.watchers.tell(&Change::Resource(uri.into()));
    }

    /// How many listens are running.
    pub fn listeners(&self) -> usize {
        self.0.watchers.count()
    }

    async fn answer(&self, request: Request) -> Result<Answer, Rejection> {
        let offer = self.offer();
        match request.method {
            Method::ToolsList => self.page(&request, offer.tools.iter().map(|(at, t)| (at, &t.definition))),
            Method::PromptsList => {
                self.page(&request, offer.prompts.iter().map(|(at, p)| (at, &p.definition)))
            }
            Method::ResourcesList => {
                let listed = offer.resources.iter().filter(|(_, r)| r.listed);
                self.page(&request, listed.map(|(at, r)| (at, &r.definition)))
            }
            Method::ResourcesTemplatesList => {
                self.page(&request, offer.templates.iter().map(|(at, t)| (at, &t.readable.definition)))
            }
            Method::CompletionComplete => self.complete(&offer, &request).await.map(Answer::Complete),
            Method::ToolsCall => self.call_tool(&offer, request).await,
            Method::PromptsGet => self.get_prompt(&offer, request).await,
            Method::ResourcesRead => self.read_resource(&offer, request).await,
            Method::Extension(wire) => self.extension(wire, request).await,
            other => Err(Rejection::UnknownMethod(other.wire().to_owned())),
        }
    }

    /// One page of a list of an extension's own.
    pub(crate) fn page_of<'a>(
        &self,
        request: &Request,
        member: &'static str,
        entries: impl Iterator<Item = (u64, &'a Raw)>,
    ) -> Result<Object, Rejection> {
        let mut asked = request.clone();
        asked.params.take("cursor");
        list::paged(member, &purpose(&asked), entries, request, self.0.page, &self.0.sealer)
    }

    fn page<'a>(
        &self,
        request: &Request,
        entries: impl Iterator<Item = (u64, &'a Raw)>,
    ) -> Result<Answer, Rejection> {
        let public = CacheHint { ttl: Duration::ZERO, public: true };
        let hint = self.0.hints.get(&request.method).copied().unwrap_or(public);
        list::page(entries, request, self.0.page, hint, &self.0.sealer).map(Answer::Complete)
    }

    async fn call_tool(&self, offer: &Offer, request: Request) -> Result<Answer, Rejection> {
        let name = named(&request.params, "name")?;
        let tool = offer.tools.get(&name).ok_or_else(|| {
            Rejection::Params(format!(
                "there is no tool {:?}; tools/list names those that exist",
                clipped(&name)
            ))
        })?;
        if let Some(limiter) = &self.0.calls {
            limiter.check(&request.peer.principal)?;
        }
        if let Some(gate) = &self.0.gate {
            gate(&request.peer, &name).map_err(Rejection::Invalid)?;
        }
        let arguments = arguments(&request.params)?;
        let value = value_of(&arguments).map_err(|e| Rejection::Params(format!("arguments: {e}")))?;
        if let Err(why) = tool.input.check(&value) {
            let why = format!("the arguments of {name} do not fit its schema: {why}");
            return match request.peer.revision.rules().invalid_input {
                InvalidInput::Protocol => Err(Rejection::Params(why)),
                InvalidInput::Result => Ok(Answer::Complete(ToolResult::error(why).object())),
            };
        }
        let (cx, request) = self.context(request, arguments, Vars::default())?;
        let result = match guarded(&cx, &tool.handler).await {
            Ok(result) => {
                if let Some(output) = &tool.output {
                    fits(&name, &result, output)?;
                }
                result
            }
            Err(Error(Kind::Failed(text))) => ToolResult::error(text),
            Err(Error(Kind::Asked)) => return self.interim(&cx, &request),
            Err(Error(kind)) => return Err(kind.rejection()),
        };
        Ok(Answer::Complete(result.object()))
    }

    async fn get_prompt(&self, offer: &Offer, request: Request) -> Result<Answer, Rejection> {
        let name = named(&request.params, "name")?;
        let prompt = offer.prompts.get(&name).ok_or_else(|| {
            Rejection::Params(format!(
                "there is no prompt {:?}; prompts/list names those that exist",
                clipped(&name)
            ))
        })?;
        let sent = arguments(&request.params)?;
        let values: HashMap<String, String> = sent
            .read()
            .map_err(|e| Rejection::Params(format!("the arguments of a prompt must be strings: {e}")))?;
        if let Some(missing) = prompt.arguments.iter().find(|a| a.required && !values.contains_key(&a.name)) {
            return Err(Rejection::Params(format!(
                "the prompt {name} needs the argument {:?}",
                missing.name
            )));
        }
        let (cx, request) = self.context(request, prompt.typed.typed(&values)?, Vars::default())?;
        match guarded(&cx, &prompt.handler).await {
            Ok(messages) => {
                let mut result = Object::new();
                if let Some(description) = &prompt.description {
                    result.set("description", description.clone());
                }
                Ok(Answer::Complete(result.with("messages", messages.raw())))
            }
            Err(Error(Kind::Asked)) => self.interim(&cx, &request),
            Err(Error(kind)) => Err(kind.rejection()),
        }
    }

    async fn read_resource(&self, offer: &Offer, request: Request) -> Result<Answer, Rejection> {
        let uri = named(&request.params, "uri")?;
        url::Url::parse(&uri).map_err(|e| {
            Rejection::Params(format!(
                "\"uri\" must be a URI with a scheme; {:?} is none: {e}",
                clipped(&uri)
            ))
        })?;
        let unknown = || Rejection::NoSuchResource { uri: uri.clone() };
        let matching = || offer.templates.values().find_map(|t| Some((t, t.template.find(&uri)?)));
        let (readable, vars, arguments): (&resource::Readable, _, _) = match offer.resources.get(&uri) {
            Some(resource) => (resource, Vars::new(&uri, Vec::new()), Raw::literal("{}")),
            None => {
                let (template, values) = matching().ok_or_else(unknown)?;
                let vars = Vars::new(&uri, values);
                // A value that is not of its type names no resource.
                let arguments = template.typed.typed(vars.values()).map_err(|_| unknown())?;
                (&template.readable, vars, arguments)
            }
        };
        let (cx, request) = self.context(request, arguments, vars)?;
        match guarded(&cx, &readable.handler).await {
            Ok(contents) => {
                let contents = contents.of(&uri, readable.mime_type.as_deref());
                if contents.is_empty() {
                    return Err(unknown());
                }
                let contents: Vec<Raw> = contents.into_iter().map(|c| Raw::from(c.0)).collect();
                let mut result = Object::new().with("contents", proto::project::list(&contents));
                proto::project::hint(&mut result, readable.hint);
                Ok(Answer::Complete(result))
            }
            Err(Error(Kind::Asked)) => self.interim(&cx, &request),
            // Nor does one that its type does not hold.
            Err(Error(Kind::Unfit(_))) => Err(unknown()),
            Err(Error(kind)) => Err(kind.rejection()),
        }
    }

    async fn extension(&self, wire: &str, request: Request) -> Result<Answer, Rejection> {
        let unknown = || Rejection::UnknownMethod(wire.to_owned());
        let handler = self.0.methods.get(wire).ok_or_else(unknown)?;
        let mut params = request.params.clone();
        params.take(spec::meta::META);
        let (cx, _) = self.context(request, Raw::from(params), Vars::default())?;
        guarded(&cx, handler).await.map(Answer::Complete).map_err(|Error(kind)| kind.rejection())
    }

    /// The context of a request, with the answers of all rounds.
    fn context(&self, mut request: Request, arguments: Raw, vars: Vars) -> Result<(Cx, Request), Rejection> {
        let mut answers: Vec<(ByteString, Result<Raw, Raw>)> = Vec::new();
        if let Some(Answers { responses, state }) = request.answers.take() {
            answers = responses;
            if let Some(state) = state.as_ref().and_then(Raw::string) {
                let purpose = purpose(&request);
                let kept: Kept = self
                    .0
                    .sealer
                    .open(&purpose, &request.peer.principal, &state)
                    .map_err(|e| Rejection::Params(format!("requestState is not valid: {e}")))?;
                // The client decided how many there are, in this round and in earlier ones.
                let again: HashSet<ByteString> = answers.iter().map(|(key, _)| key.clone()).collect();
                let kept = kept.into_iter().filter(|(key, _)| !again.contains(key.as_str()));
                answers.extend(kept.map(|(key, value)| (key.into(), Ok(Raw::of(&value)))));
            }
        }
        Ok((Cx::new(self.clone(), request.clone(), arguments, vars, answers), request))
    }

    /// What has to be asked, with the answers so far in a sealed state.
    fn interim(&self, cx: &Cx, request: &Request) -> Result<Answer, Rejection> {
        let questions = cx.asked();
        if questions.is_empty() {
            return Err(Kind::Asked.rejection());
        }
        let kept: Kept = cx
            .answers()
            .iter()
            .filter_map(|(key, answer)| Some((key.to_string(), answer.as_ref().ok()?.read().ok()?)))
            .collect();
        let sealed = self
            .0
            .sealer
            .seal(&purpose(request), &request.peer.principal, STATE_TTL, &kept)
            .map_err(|_| Rejection::Internal("no request state could be made".into()))?;
        Ok(Answer::InputRequired(Interim { questions, state: Some(Raw::from(sealed.as_str())) }))
    }

    async fn complete(&self, offer: &Offer, request: &Request) -> Result<Object, Rejection> {
        self.0.completions.check(&request.peer.principal)?;
        let (completer, typed) = completer(offer, request)?;
        let mut values = match completer {
            Some(completer) => caught(async move { Ok(completer(typed).await) })
                .await
                .map_err(|Error(kind)| kind.rejection())?,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(complete::MOST);
        let completion =
            serde_json::json!({"values": values, "total": total, "hasMore": total > complete::MOST});
        Ok(Object::new().with("completion", Raw::of(&completion)))
    }
}

/// What completes the argument that is asked about, and what is known of it.
fn completer(offer: &Offer, request: &Request) -> Result<(Option<Completer>, Typed), Rejection> {
    let params = &request.params;
    let wrong = |why: String| Rejection::Params(why);
    let part = |name: &str| {
        let object = params.get(name).and_then(|raw| raw.object().ok());
        object.ok_or_else(|| wrong(format!("{name:?} is required, and must be an object")))
    };
    let (reference, argument) = (part("ref")?, part("argument")?);
    let (name, typed) = (named(&argument, "name")?, named(&argument, "value")?);
    let completer = match reference.string("type").as_deref() {
        Some("ref/prompt") => {
            let prompt = named(&reference, "name")?;
            let found = offer.prompts.get(&prompt);
            let found = found.ok_or_else(|| wrong(format!("there is no prompt {:?}", clipped(&prompt))))?;
            let argument = found.arguments.iter().find(|a| a.name == *name);
            let unknown = || wrong(format!("{prompt} has no argument {:?}", clipped(&name)));
            argument.ok_or_else(unknown)?.complete.clone()
        }
        Some("ref/resource") => {
            let uri = named(&reference, "uri")?;
            let found = offer.templates.get(&uri);
            let found =
                found.ok_or_else(|| wrong(format!("there is no resource template {:?}", clipped(&uri))))?;
            if !found.template.variables().any(|v| v == &*name) {
                return Err(wrong(format!("{uri} has no variable {:?}", clipped(&name))));
            }
            found.completers.get(&*name).cloned()
        }
        _ => return Err(wrong("\"ref\" must have the type ref/prompt or ref/resource".into())),
    };
    // Where the revision has no such field it is one that nobody knows.
    let field = request.method.row().params.field("context");
    let exists = field.is_some_and(|field| field.exists.contains(request.peer.revision));
    let arguments = match params.get("context").filter(|_| exists) {
        None => HashMap::new(),
        Some(context) => {
            let arguments = context.object().ok().map(|context| context.get("arguments").cloned());
            let arguments = arguments.ok_or_else(|| wrong("\"context\" must be an object".into()))?;
            let read = arguments.map(|raw| raw.read()).transpose();
            let not = |_| wrong("\"context.arguments\" must be an object of strings".into());
            read.map_err(not)?.unwrap_or_default()
        }
    };
    Ok((completer, Typed { value: typed.to_string(), arguments }))
}

impl Service for Server {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.0.description)
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        Box::pin(self.answer(request))
    }

    fn listen(&self, mut filter: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        let has = |capability| self.0.description.capabilities.has(capability);
        filter.tools &= has(Capability::ToolsListChanged);
        filter.prompts &= has(Capability::PromptsListChanged);
        filter.resources &= has(Capability::ResourcesListChanged);
        if !has(Capability::ResourcesSubscribe) {
            filter.uris.clear();
        }
        let changes = self.0.watchers.watch(filter.clone());
        Box::pin(std::future::ready(Ok(Listening { honoured: filter, changes })))
    }

    fn mirrors(&self, tool: &str) -> Arc<[Mirror]> {
        self.offer().tools.get(tool).map_or_else(|| Arc::new([]) as Arc<[Mirror]>, |t| Arc::clone(&t.mirrors))
    }
}

/// Runs a handler so that its panic ends this call and nothing else. Dropped before its end, it tells what the handler
/// started.
async fn guarded<T>(cx: &Cx, handler: &Run<T>) -> Result<T> {
    let unfinished = cx.cancellation().clone().drop_guard();
    let result = caught(handler(cx.clone())).await;
    unfinished.disarm();
    result
}

async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(_) => {
            tracing::error!("a handler panicked; its call ends with an error");
            Err(Error::reject(Rejection::Internal("the handler of this request failed".into())))
        }
    }
}

fn named(params: &Object, name: &str) -> Result<ByteString, Rejection> {
    params
        .string(name)
        .ok_or_else(|| Rejection::Params(format!("{name:?} is required, and must be a string")))
}

fn arguments(params: &Object) -> Result<Raw, Rejection> {
    match params.get("arguments") {
        None => Ok(Raw::literal("{}")),
        Some(raw) if raw.starts_with('{') => Ok(raw.clone()),
        Some(_) => Err(Rejection::Params("\"arguments\" must be an object".into())),
    }
}

/// A result that does not fit its own schema is the server's fault.
fn fits(name: &str, result: &ToolResult, output: &crate::schema::Validator) -> Result<(), Rejection> {
    if result.is_error() {
        return Ok(());
    }
    let fault = |why: String| {
        Rejection::Internal(format!("the result of {name} does not fit its output schema: {why}"))
    };
    let structured = result.structured_content().ok_or_else(|| fault("it is not structured".into()))?;
    let value = value_of(structured).map_err(fault)?;
    output.check(&value).map_err(fault)
}

fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}
