//! How a server answers: each request by what is offered under its name, run by its handler.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use proto::{
    Answer, BoxFuture, CacheHint, Description, Filter, HeaderParam, InputRequired, InputResponses, Listening,
    Object, Peer, Raw, Rejection, Request, Service, required_string,
};
use seal::{STATE_TTL, purpose};
use spec::{Capability, InvalidInput, Method};

use crate::content::ToolResult;
use crate::context::{Context, Earlier, Kept};
use crate::error::{Error, Kind, Result};
use crate::guard::guarded;
use crate::offer::Offer;
use crate::params::{arguments, clipped};
use crate::resource::Readable;
use crate::schema::{Validator, value_of};
use crate::server::Server;
use crate::variables::Variables;

impl Server {
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
            Method::Extension(_) => self.extension(request).await,
            other => Err(Rejection::UnknownMethod(other.wire().to_owned())),
        }
    }

    fn page<'a>(
        &self,
        request: &Request,
        entries: impl Iterator<Item = (u64, &'a Raw)>,
    ) -> Result<Answer, Rejection> {
        let public = CacheHint::public(Duration::ZERO);
        let hint = self.0.hints.get(&request.method).copied().unwrap_or(public);
        self.0.pages.of_core(request, entries, hint).map(Answer::Complete)
    }

    async fn call_tool(&self, offer: &Offer, request: Request) -> Result<Answer, Rejection> {
        let name = required_string(&request.params, "name")?;
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
        let (cx, request) = self.context(request, arguments, Variables::default())?;
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
        let name = required_string(&request.params, "name")?;
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
        let (cx, request) = self.context(request, prompt.typed.typed(&values)?, Variables::default())?;
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
        let uri = required_string(&request.params, "uri")?;
        url::Url::parse(&uri).map_err(|e| {
            Rejection::Params(format!(
                "\"uri\" must be a URI with a scheme; {:?} is none: {e}",
                clipped(&uri)
            ))
        })?;
        let unknown = || Rejection::NoSuchResource { uri: uri.clone() };
        let matching = || offer.templates.values().find_map(|t| Some((t, t.template.find(&uri)?)));
        let (readable, vars, arguments): (&Readable, _, _) = match offer.resources.get(&uri) {
            Some(resource) => (resource, Variables::new(&uri, Vec::new()), Raw::literal("{}")),
            None => {
                let (template, values) = matching().ok_or_else(unknown)?;
                let vars = Variables::new(&uri, values);
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
                let mut result = Object::new().with("contents", proto::Raw::list(&contents));
                proto::project::hint(&mut result, readable.hint);
                Ok(Answer::Complete(result))
            }
            Err(Error(Kind::Asked)) => self.interim(&cx, &request),
            // Nor does one that its type does not hold.
            Err(Error(Kind::Unfit(_))) => Err(unknown()),
            Err(Error(kind)) => Err(kind.rejection()),
        }
    }

    async fn extension(&self, request: Request) -> Result<Answer, Rejection> {
        let wire = request.method.wire();
        let unknown = || Rejection::UnknownMethod(wire.to_owned());
        let handler = self.0.methods.get(wire).ok_or_else(unknown)?;
        let mut params = Object::clone(&request.params);
        params.take(spec::meta::META);
        let (cx, _) = self.context(request, Raw::from(params), Variables::default())?;
        guarded(&cx, handler).await.map(Answer::Complete).map_err(|Error(kind)| kind.rejection())
    }

    /// The context of a request, with the answers of all rounds.
    fn context(
        &self,
        mut request: Request,
        arguments: Raw,
        variables: Variables,
    ) -> Result<(Context, Request), Rejection> {
        let earlier = self.earlier(&mut request)?;
        let context = Context::new(
            Arc::clone(&self.0.notifier),
            self.0.pages.clone(),
            request.clone(),
            arguments,
            variables,
            earlier,
            Arc::clone(&self.0.states),
        );
        Ok((context, request))
    }

    /// Takes the answers that came with a request, and opens its request state.
    fn earlier(&self, request: &mut Request) -> Result<Earlier, Rejection> {
        let Some(answers) = request.answers.take() else { return Ok(Earlier::default()) };
        let InputResponses { responses: mut answers, state } = Arc::unwrap_or_clone(answers);
        let Some(state) = state.as_ref().and_then(Raw::string) else {
            return Ok(Earlier { answers, done: Vec::new() });
        };
        let kept: Kept = self
            .0
            .pages
            .sealer
            .open(&purpose(request), &request.peer.principal, &state)
            .map_err(|e| Rejection::Params(format!("requestState is not valid: {e}")))?;
        // The client decided how many there are, in this round and in earlier ones.
        let again: HashSet<ByteString> = answers.iter().map(|(key, _)| key.clone()).collect();
        let before = kept.answers.into_iter().filter(|(key, _)| !again.contains(key.as_str()));
        answers.extend(before.map(|(key, value)| (key.into(), Ok(Raw::of(&value)))));
        Ok(Earlier { answers, done: kept.done })
    }

    /// What has to be asked, with the answers so far in a sealed state.
    fn interim(&self, cx: &Context, request: &Request) -> Result<Answer, Rejection> {
        let questions = cx.asked();
        if questions.is_empty() {
            return Err(Kind::Asked.rejection());
        }
        let sealed = self
            .0
            .pages
            .sealer
            .seal(&purpose(request), &request.peer.principal, STATE_TTL, &cx.kept())
            .map_err(|_| Rejection::Internal("no request state could be made".into()))?;
        Ok(Answer::InputRequired(InputRequired { questions, state: Some(Raw::from(sealed.as_str())) }))
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
        let changes = self.0.notifier.watchers().watch(filter.clone());
        Box::pin(std::future::ready(Ok(Listening { honoured: filter, changes })))
    }

    /// Nothing waits here: what a handler asked is in the state that its client keeps.
    fn abandon(&self, _: Request) {}

    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
        self.offer()
            .tools
            .get(tool)
            .map_or_else(|| Arc::new([]) as Arc<[HeaderParam]>, |t| Arc::clone(&t.mirrors))
    }
}

/// A result that does not fit its own schema is the server's fault.
fn fits(name: &str, result: &ToolResult, output: &Validator) -> Result<(), Rejection> {
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
