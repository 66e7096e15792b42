//! The server: a registry of tools, resources and prompts, and the service that answers from it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
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
use crate::content::{ResourceContents, ToolResult};
use crate::context::Cx;
use crate::error::{Error, Kind, Result};
use crate::list;
use crate::prompt::Prompt;
use crate::rate::{Limiter, Rate};
use crate::resource::{self, Resource, ResourceTemplate, Vars};
use crate::schema::value_of;
use crate::seal::{Keys, ProcessKey, Sealer, SystemClock, purpose};
use crate::tool::{self, Tool};

/// How long a client may take to answer a question.
const STATE_TTL: Duration = Duration::from_secs(3600);
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
    keys: Option<Arc<dyn Keys>>,
    page: usize,
    lists: CacheHint,
    completions: Rate,
}

/// A server. Clones are handles to the same one.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    description: Arc<Description>,
    tools: Vec<(String, tool::Ready)>,
    tool_names: HashMap<String, usize>,
    resources: Vec<(Resource, Raw)>,
    resource_uris: HashMap<String, usize>,
    templates: Vec<resource::Ready>,
    prompts: Vec<(Prompt, Raw)>,
    watchers: Watchers,
    sealer: Sealer,
    page: usize,
    lists: CacheHint,
    completions: Limiter,
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

    /// The same with a time for which clients may keep lists without asking again; none where nothing is said.
    #[must_use]
    pub fn lists_fresh_for(mut self, ttl: Duration) -> Builder {
        self.lists.ttl = ttl;
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
        let mut capabilities = Capabilities::none().with(Capability::Logging);
        if !self.tools.is_empty() {
            capabilities = capabilities.with(Capability::Tools).with(Capability::ToolsListChanged);
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            capabilities = capabilities
                .with(Capability::Resources)
                .with(Capability::ResourcesListChanged)
                .with(Capability::ResourcesSubscribe);
        }
        if !self.prompts.is_empty() {
            capabilities = capabilities.with(Capability::Prompts).with(Capability::PromptsListChanged);
        }
        let completes = self.prompts.iter().any(|p| p.arguments.iter().any(|a| a.complete.is_some()))
            || self.templates.iter().any(|t| !t.completers.is_empty());
        if completes {
            capabilities = capabilities.with(Capability::Completions);
        }
        let description = Description {
            identity: self.identity,
            capabilities,
            instructions: self.instructions,
            hint: CacheHint { ttl: self.lists.ttl, public: true },
        };
        let mut tools = Vec::with_capacity(self.tools.len());
        for tool in self.tools {
            tools.push((tool.name.clone(), tool.ready()?));
        }
        for resource in &self.resources {
            url::Url::parse(&resource.uri)
                .map_err(|e| format!("resource {:?}: no URI: {e}", resource.uri))?;
        }
        let templates = self.templates.into_iter().map(ResourceTemplate::ready).collect::<Result<_, _>>()?;
        let keys = match self.keys {
            Some(keys) => keys,
            None => Arc::new(ProcessKey::new().map_err(|e| format!("no key could be made: {e}"))?),
        };
        Ok(Server(Arc::new(Inner {
            description: Arc::new(description),
            tool_names: index(tools.iter().map(|(name, _)| name), "tool")?,
            tools,
            resource_uris: index(self.resources.iter().map(|r| &r.uri), "resource")?,
            resources: self
                .resources
                .into_iter()
                .map(|r| {
                    let raw = Raw::from(r.definition.clone());
                    (r, raw)
                })
                .collect(),
            templates,
            prompts: {
                index(self.prompts.iter().map(|p| &p.name), "prompt")?;
                self.prompts
                    .into_iter()
                    .map(|p| {
                        let raw = p.listed();
                        (p, raw)
                    })
                    .collect()
            },
            watchers: Watchers::default(),
            sealer: Sealer::new(Shared(keys), SystemClock),
            page: self.page,
            lists: self.lists,
            completions: Limiter::new(self.completions),
        })))
    }
}

struct Shared(Arc<dyn Keys>);

impl Keys for Shared {
    fn keys(&self) -> Vec<crate::seal::Key> {
        self.0.keys()
    }
}

fn index<'a>(
    names: impl Iterator<Item = &'a String>,
    what: &str,
) -> std::result::Result<HashMap<String, usize>, String> {
    let mut index = HashMap::new();
    for (at, name) in names.enumerate() {
        if index.insert(name.clone(), at).is_some() {
            return Err(format!("there are two {what}s {name:?}"));
        }
    }
    Ok(index)
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
            keys: None,
            page: 250,
            lists: CacheHint { ttl: Duration::ZERO, public: true },
            completions: COMPLETIONS,
        }
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
        let inner = &self.0;
        let page = |entries: Box<dyn Iterator<Item = &Raw> + Send + '_>| {
            list::page(entries, &request, inner.page, inner.lists, &inner.sealer).map(Answer::Complete)
        };
        match request.method {
            Method::ToolsList => page(Box::new(inner.tools.iter().map(|(_, tool)| &tool.definition))),
            Method::PromptsList => page(Box::new(inner.prompts.iter().map(|(_, listed)| listed))),
            Method::ResourcesList => page(Box::new(inner.resources.iter().map(|(_, listed)| listed))),
            Method::ResourcesTemplatesList => page(Box::new(inner.templates.iter().map(|t| &t.definition))),
            Method::CompletionComplete => self.complete(&request).await.map(Answer::Complete),
            Method::ToolsCall => self.call_tool(request).await,
            Method::PromptsGet => self.get_prompt(request).await,
            Method::ResourcesRead => self.read_resource(request).await,
            other => Err(Rejection::UnknownMethod(other.wire().to_owned())),
        }
    }

    async fn call_tool(&self, request: Request) -> Result<Answer, Rejection> {
        let name = named(&request.params, "name")?;
        let tool = self.0.tool_names.get(&*name).map(|at| &self.0.tools[*at].1);
        let tool = tool.ok_or_else(|| {
            Rejection::Params(format!(
                "there is no tool {:?}; tools/list names those that exist",
                clipped(&name)
            ))
        })?;
        let arguments = arguments(&request.params)?;
        let value = value_of(&arguments).map_err(|e| Rejection::Params(format!("arguments: {e}")))?;
        if let Err(why) = tool.input.check(&value) {
            let why = format!("the arguments of {name} do not fit its schema: {why}");
            return match request.peer.revision.rules().invalid_input {
                InvalidInput::Protocol => Err(Rejection::Params(why)),
                InvalidInput::Result => Ok(Answer::Complete(ToolResult::error(why).object())),
            };
        }
        let (cx, request) = self.context(request, arguments)?;
        let result = match guarded((tool.handler)(cx.clone())).await {
            Ok(result) => {
                if let Some(output) = &tool.output {
                    fits(&name, &result, output)?;
                }
                result
            }
            Err(Error(Kind::Failed(text))) => ToolResult::error(text),
            Err(Error(Kind::Asked)) => return self.interim(&cx, &request),
            Err(Error(Kind::Rejected(rejection))) => return Err(rejection),
        };
        Ok(Answer::Complete(result.object()))
    }

    async fn get_prompt(&self, request: Request) -> Result<Answer, Rejection> {
        let name = named(&request.params, "name")?;
        let (prompt, _) = self.0.prompts.iter().find(|(p, _)| p.name == *name).ok_or_else(|| {
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
        let (cx, request) = self.context(request, sent)?;
        match guarded((prompt.handler)(values, cx.clone())).await {
            Ok(messages) => {
                let mut result = Object::new();
                if let Some(description) = prompt.definition.get("description") {
                    result.set("description", description.clone());
                }
                Ok(Answer::Complete(result.with("messages", messages.raw())))
            }
            Err(Error(Kind::Asked)) => self.interim(&cx, &request),
            Err(Error(kind)) => Err(kind.rejection()),
        }
    }

    async fn read_resource(&self, request: Request) -> Result<Answer, Rejection> {
        let uri = named(&request.params, "uri")?;
        url::Url::parse(&uri).map_err(|e| {
            Rejection::Params(format!(
                "\"uri\" must be a URI with a scheme; {:?} is none: {e}",
                clipped(&uri)
            ))
        })?;
        let (cx, request) = self.context(request, Raw::literal("{}"))?;
        let fixed = self.0.resource_uris.get(&*uri).map(|at| &self.0.resources[*at].0);
        let read: Result<Option<Vec<ResourceContents>>> = match fixed {
            Some(resource) => guarded((resource.handler)(cx.clone())).await.map(Some),
            None => {
                let matching = self.0.templates.iter().find_map(|t| Some((t, t.template.matches(&uri)?)));
                match matching {
                    Some((template, values)) => {
                        guarded((template.handler)(Vars::new(&uri, values), cx.clone())).await
                    }
                    None => Ok(None),
                }
            }
        };
        match read {
            Ok(Some(contents)) if !contents.is_empty() => {
                let contents: Vec<Raw> = contents.into_iter().map(|c| Raw::from(c.0)).collect();
                Ok(Answer::Complete(Object::new().with("contents", proto::project::list(&contents))))
            }
            Ok(_) => Err(Rejection::NoSuchResource { uri }),
            Err(Error(Kind::Asked)) => self.interim(&cx, &request),
            Err(Error(kind)) => Err(kind.rejection()),
        }
    }

    /// The context of a request, with the answers of all rounds.
    fn context(&self, mut request: Request, arguments: Raw) -> Result<(Cx, Request), Rejection> {
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
                for (key, value) in kept {
                    if !answers.iter().any(|(k, _)| *k == key) {
                        answers.push((key.into(), Ok(Raw::of(&value))));
                    }
                }
            }
        }
        Ok((Cx::new(self.clone(), request.clone(), arguments, answers), request))
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

    async fn complete(&self, request: &Request) -> Result<Object, Rejection> {
        self.0.completions.check(&request.peer.principal)?;
        let (completer, typed) = self.completer(request)?;
        let mut values = match completer {
            Some(completer) => guarded(async move { Ok(completer(typed).await) }.boxed())
                .await
                .map_err(|error| error.0.rejection())?,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(complete::MOST);
        let completion =
            serde_json::json!({"values": values, "total": total, "hasMore": total > complete::MOST});
        Ok(Object::new().with("completion", Raw::of(&completion)))
    }

    /// What completes the argument that is asked about, and what is known of it.
    fn completer(&self, request: &Request) -> Result<(Option<Completer>, Typed), Rejection> {
        let params = &request.params;
        let wrong = |why: String| Rejection::Params(why);
        let part = |name: &str| {
            let object = params.get(name).and_then(|raw| raw.object().ok());
            object.ok_or_else(|| wrong(format!("{name:?} is required, and must be an object")))
        };
        let (reference, argument) = (part("ref")?, part("argument")?);
        let (name, typed) = (named(&argument, "name")?, named(&argument, "value")?);
        let completer =
            match reference.string("type").as_deref() {
                Some("ref/prompt") => {
                    let prompt = named(&reference, "name")?;
                    let (found, _) = self
                        .0
                        .prompts
                        .iter()
                        .find(|(p, _)| p.name == *prompt)
                        .ok_or_else(|| wrong(format!("there is no prompt {:?}", clipped(&prompt))))?;
                    let argument = found.arguments.iter().find(|a| a.name == *name);
                    argument
                        .ok_or_else(|| wrong(format!("{prompt} has no argument {:?}", clipped(&name))))?
                        .complete
                        .clone()
                }
                Some("ref/resource") => {
                    let uri = named(&reference, "uri")?;
                    let template =
                        self.0.templates.iter().find(|t| t.template.as_str() == &*uri).ok_or_else(|| {
                            wrong(format!("there is no resource template {:?}", clipped(&uri)))
                        })?;
                    if !template.template.variables().any(|v| v == &*name) {
                        return Err(wrong(format!("{uri} has no variable {:?}", clipped(&name))));
                    }
                    template.completers.get(&*name).cloned()
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
        match self.0.tool_names.get(tool) {
            Some(at) => Arc::clone(&self.0.tools[*at].1.mirrors),
            None => Arc::new([]),
        }
    }
}

/// Runs a handler so that its panic ends this call and nothing else.
async fn guarded<T>(handler: BoxFuture<'static, Result<T>>) -> Result<T> {
    match AssertUnwindSafe(handler).catch_unwind().await {
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
    let value: Value = structured.read().map_err(|e| fault(e.to_string()))?;
    output.check(&value).map_err(fault)
}

fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}
