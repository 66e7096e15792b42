//! Routes each request to the server that it is for, and its answer back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytestring::ByteString;
use proto::{
    Answer, BoxFuture, CacheHint, Description, Event, Filter, HeaderParam, InputRequired, Level, Listening,
    Object, Peer, Principal, Raw, Rejection, Request, Service, repair, required_string,
};
use seal::{PAGE_SIZE, STATE_TTL, purpose};
use serde::{Deserialize, Serialize};
use spec::{Code, Method};

use crate::catalog::{Catalog, NamedEntries, Route};
use crate::gateway::Gateway;
use crate::upstream::Upstream;
use crate::upstream::connection::Lease;
use crate::upstream::state::State;

/// What the gateway seals in a request state: the server that asks, the connection that the call waits on, and the server's
/// own state, as it was sent.
#[derive(Serialize, Deserialize)]
struct HeldState {
    upstream: String,
    connection: u64,
    state: Option<String>,
}

impl Gateway {
    /// Answers a request. Waits for servers that are still starting only when the request may be for one of them.
    async fn answer(&self, mut request: Request) -> Result<Answer, Rejection> {
        if !self.knows(&request) {
            Box::pin(self.settled()).await;
        }
        // What is not called often is boxed, so that a call does not carry the room that it needs.
        match request.method {
            Method::ToolsCall => {
                let route = self.named(&request.params, |catalog| &catalog.tools, "tool")?;
                Arc::make_mut(&mut request.params).set("name", &*route.name);
                self.forward(&route.upstream, &request).await
            }
            Method::PromptsGet => {
                let route = self.named(&request.params, |catalog| &catalog.prompts, "prompt")?;
                Arc::make_mut(&mut request.params).set("name", &*route.name);
                self.forward(&route.upstream, &request).await
            }
            Method::ResourcesRead => {
                let uri = required_string(&request.params, "uri")?;
                Box::pin(self.read(uri, request)).await
            }
            Method::CompletionComplete => Box::pin(self.complete(request)).await,
            Method::Extension(_) => Box::pin(self.call_extension(request)).await,
            _ if request.method.row().lists.is_some() => Box::pin(self.list(&request)).await,
            _ => Err(Rejection::UnknownMethod(request.method.wire().to_owned())),
        }
    }

    /// Whether it is known already which server a request is for.
    fn knows(&self, request: &Request) -> bool {
        let catalog = self.catalog();
        let named = |name: &str| request.params.string(name);
        match request.method {
            Method::ToolsCall => named("name").is_some_and(|name| catalog.tools.route(&name).is_some()),
            Method::PromptsGet => named("name").is_some_and(|name| catalog.prompts.route(&name).is_some()),
            Method::ResourcesRead => named("uri").is_some_and(|uri| catalog.owner(&uri).is_some()),
            _ => false,
        }
    }

    /// Reads a resource from the server that has it. When no server is known to have it, asks each that may, in turn.
    async fn read(&self, uri: ByteString, request: Request) -> Result<Answer, Rejection> {
        // A request that brings answers is for the server that asked.
        let candidates = match &request.answers {
            Some(answers) if answers.state.is_some() => self.held_by(&request).into_iter().collect(),
            _ => self.catalog().candidates(&uri),
        };
        for candidate in &candidates {
            match self.forward(candidate, &request).await {
                Err(Rejection::NoSuchResource { .. }) => {}
                Err(Rejection::Passed { code, .. }) if candidates.len() > 1 && says_none(code) => {}
                other => return other,
            }
        }
        Err(Rejection::NoSuchResource { uri })
    }

    /// Calls a method that the tables do not list. The servers that may have it are asked in turn, until one does not say
    /// that it has no such method.
    async fn call_extension(&self, request: Request) -> Result<Answer, Rejection> {
        let unknown = || Rejection::UnknownMethod(request.method.wire().to_owned());
        let names_resource = request.params.string("uri").is_some();
        let mut refusal = None;
        for candidate in self.catalog().for_extension(&request) {
            match self.forward(&candidate, &request).await {
                Err(Rejection::UnknownMethod(_)) => {}
                Err(Rejection::Passed { code, .. }) if code == Code::MethodNotFound.number() => {}
                // Another server may have the resource.
                Err(why @ Rejection::NoSuchResource { .. }) => refusal = refusal.or(Some(why)),
                Err(why @ Rejection::Passed { code, .. }) if names_resource && says_none(code) => {
                    refusal = refusal.or(Some(why));
                }
                other => return other,
            }
        }
        Err(refusal.unwrap_or_else(unknown))
    }

    /// The server whose question a request answers, by its request state.
    fn held_by(&self, request: &Request) -> Option<Arc<Upstream>> {
        let sealed = request.answers.as_ref()?.state.as_ref()?.string()?;
        let held: HeldState = self.0.sealer.open(&purpose(request), &request.peer.principal, &sealed).ok()?;
        self.upstreams().iter().find(|upstream| upstream.options.name == held.upstream).map(Arc::clone)
    }

    async fn list(&self, request: &Request) -> Result<Answer, Rejection> {
        let (method, upstreams) = (&request.method, self.upstreams());
        let refreshed = futures_util::future::join_all(upstreams.iter().map(|u| u.refresh(method))).await;
        if refreshed.contains(&true) {
            self.merged().await;
        }
        for upstream in upstreams.iter() {
            self.miss(upstream, request).await;
        }
        let catalog = self.catalog();
        let entries = match method {
            Method::ToolsList => &catalog.tools.listed,
            Method::PromptsList => &catalog.prompts.listed,
            Method::ResourcesList => &catalog.resources,
            _ => &catalog.templates,
        };
        let hint = CacheHint::public(Duration::ZERO);
        let placed = (1..).zip(entries.iter());
        seal::page(placed, request, PAGE_SIZE, hint, &self.0.sealer).map(Answer::Complete)
    }

    /// Sends the client a log message when a server's entries are missing from a list.
    async fn miss(&self, upstream: &Upstream, request: &Request) {
        let why = match upstream.state() {
            State::Starting => "it is still starting".to_owned(),
            // Only the user of this machine is told why: others could learn from it how to attack.
            State::Down(why) if request.peer.principal == Principal::local() => why,
            State::Down(_) => "it is not running".to_owned(),
            State::Up | State::Idle => return,
        };
        let said =
            format!("{} of the server {} are missing: {why}", request.method.wire(), upstream.options.name);
        let params = Object::new()
            .with("level", Level::Warning.as_str())
            .with("logger", "dateline")
            .with("data", said.as_str());
        request.events.send(Event::Log(Level::Warning, params)).await;
    }

    /// Finds the server of a tool or prompt by the name that it is shown under.
    fn named(
        &self,
        params: &Object,
        of: impl Fn(&Catalog) -> &NamedEntries,
        what: &str,
    ) -> Result<Route, Rejection> {
        let name = required_string(params, "name")?;
        of(&self.catalog()).route(&name).cloned().ok_or_else(|| {
            let name: String = name.chars().take(80).collect();
            Rejection::Params(format!("there is no {what} {name:?}{}", self.absent()))
        })
    }

    /// The servers that do not run, as the end of a sentence: what was not found may be theirs.
    fn absent(&self) -> String {
        let absent = |upstream: &Arc<Upstream>| match upstream.state() {
            State::Up | State::Idle => None,
            State::Starting => Some(format!("{} is still starting", upstream.options.name)),
            State::Down(_) => Some(format!("{} is not running", upstream.options.name)),
        };
        let absent: Vec<_> = self.upstreams().iter().filter_map(absent).collect();
        if absent.is_empty() {
            String::new()
        } else {
            format!(" (the server {})", absent.join("; the server "))
        }
    }

    async fn complete(&self, mut request: Request) -> Result<Answer, Rejection> {
        let reference = request.params.get("ref").and_then(|raw| raw.object().ok());
        let mut reference = reference
            .ok_or_else(|| Rejection::Params("\"ref\" is required, and must be an object".into()))?;
        let owner = match reference.string("type").as_deref() {
            Some("ref/prompt") => {
                let route = self.named(&reference, |catalog| &catalog.prompts, "prompt")?;
                reference.set("name", &*route.name);
                Arc::make_mut(&mut request.params).set("ref", Raw::from(reference));
                route.upstream
            }
            Some("ref/resource") => {
                let uri = required_string(&reference, "uri")?;
                let catalog = self.catalog();
                let owner = catalog.template_owner(&uri).or_else(|| catalog.owner(&uri));
                owner.ok_or_else(|| Rejection::Params(format!("there is no resource template {uri:?}")))?
            }
            _ => {
                return Err(Rejection::Params(
                    "\"ref\" must have the type ref/prompt or ref/resource".into(),
                ));
            }
        };
        let lease = match owner.lease().await {
            Err(Rejection::Gone(_)) => {
                owner.back().await;
                owner.lease().await?
            }
            lease => lease?,
        };
        if !lease.0.service.describe().capabilities.has(spec::Capability::Completions) {
            let none = r#"{"values":[],"total":0,"hasMore":false}"#;
            return Ok(Answer::Complete(Object::new().with("completion", Raw::literal(none))));
        }
        drop(lease);
        self.forward(&owner, &request).await
    }

    /// Sends a request to a server, and counts it. If the server was gone before it took the request, waits for the server
    /// and sends the request once more.
    async fn forward(&self, upstream: &Arc<Upstream>, request: &Request) -> Result<Answer, Rejection> {
        upstream.calls.fetch_add(1, Ordering::Relaxed);
        let was_up = upstream.is_up();
        let mut outcome = self.attempt(upstream, request).await;
        if was_up && matches!(outcome, Err(Rejection::Gone(_))) {
            Box::pin(upstream.back()).await;
            outcome = self.attempt(upstream, request).await;
        }
        if outcome.is_err() {
            upstream.errors.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Checks a server's answer, and repairs what has one meaning. An answer that cannot be repaired is an error that names
    /// the server.
    fn let_in(&self, upstream: &Upstream, request: &Request, answer: Answer) -> Result<Answer, Rejection> {
        let (server, method) = (&upstream.options.name, &request.method);
        let of = || {
            let named = ["name", "uri"].iter().find_map(|by| request.params.string(by));
            let short = |name: ByteString| name.chars().take(80).collect::<String>();
            named.map(|name| format!(" of {:?}", short(name))).unwrap_or_default()
        };
        let broken = |why: String| {
            let text = format!("the answer to {}{} is not valid: {why}", method.wire(), of());
            upstream.logs.warn(server, &format!("dateline: {text}"));
            Rejection::Internal(format!(
                "the server {server} gave no valid answer to {}: {why}",
                method.wire()
            ))
        };
        let (answer, lost) = match answer {
            Answer::Complete(mut result) => {
                let lost = repair::result(&mut result, method.row()).map_err(broken)?;
                (Answer::Complete(result), lost)
            }
            Answer::InputRequired(mut interim) => {
                let mut lost = Vec::new();
                for (name, ask) in &mut interim.questions {
                    let found =
                        repair::question(ask).map_err(|why| broken(format!("the question {name}: {why}")))?;
                    lost.extend(found);
                }
                (Answer::InputRequired(interim), lost)
            }
        };
        if !lost.is_empty() {
            let text = format!(
                "dateline: the answer to {}{} is not as it should be, and was put right: {}",
                method.wire(),
                of(),
                lost.join("; ")
            );
            upstream.logs.warn(server, &text);
        }
        Ok(answer)
    }

    /// Sends a request to a server once. Opens the request state that it brings, and seals the one that the answer has.
    async fn attempt(&self, upstream: &Arc<Upstream>, request: &Request) -> Result<Answer, Rejection> {
        let mut sent = request.clone();
        let lease = match &request.answers {
            Some(answers) if answers.state.is_some() => {
                let held = self.open(upstream, &mut sent)?;
                // A call that waits goes on where it waits; any other call may go on any connection.
                match upstream.connection(held.connection) {
                    Some(lease) => lease,
                    None => upstream.lease().await?,
                }
            }
            _ => upstream.lease().await?,
        };
        let Lease(connection) = &lease;
        let answer = connection.service.call(sent).await?;
        match self.let_in(upstream, request, answer)? {
            // The digest that a state is bound to costs more than all else here, and few answers have a state.
            Answer::InputRequired(asks) => {
                self.seal(upstream, connection.id, request, asks).map(Answer::InputRequired)
            }
            complete @ Answer::Complete(_) => Ok(complete),
        }
    }

    /// Seals the request state of an answer that asks something, for a retry of the request that was asked.
    fn seal(
        &self,
        upstream: &Upstream,
        connection: u64,
        asked: &Request,
        InputRequired { questions, state }: InputRequired,
    ) -> Result<InputRequired, Rejection> {
        let held = HeldState {
            upstream: upstream.options.name.clone(),
            connection,
            state: state.map(|raw| raw.as_str().to_owned()),
        };
        let sealed = self.0.sealer.seal(&purpose(asked), &asked.peer.principal, STATE_TTL, &held);
        let sealed = sealed.map_err(|_| Rejection::Internal("no request state could be made".into()))?;
        Ok(InputRequired { questions, state: Some(Raw::from(sealed.as_str())) })
    }

    /// Opens the request state that the gateway sealed, and puts the server's own state in its place.
    fn open(&self, upstream: &Upstream, request: &mut Request) -> Result<HeldState, Rejection> {
        let wrong =
            || Rejection::Params("requestState is not valid: it was not issued here, or has expired".into());
        let bound = purpose(request);
        let answers = request.answers.as_mut().ok_or_else(wrong)?;
        let sealed = answers.state.as_ref().and_then(Raw::string).ok_or_else(wrong)?;
        let held: HeldState =
            self.0.sealer.open(&bound, &request.peer.principal, &sealed).map_err(|_| wrong())?;
        if held.upstream != upstream.options.name {
            return Err(wrong());
        }
        let own = held.state.clone().map(|state| Raw::parse(state.into(), 1)).transpose();
        Arc::make_mut(answers).state = own.map_err(|_| wrong())?;
        Ok(held)
    }

    /// Replaces the name that a tool or prompt is shown under by the server's own name.
    fn rename(&self, request: &mut Request) {
        let catalog = self.catalog();
        let named = match request.method {
            Method::ToolsCall => &catalog.tools,
            Method::PromptsGet => &catalog.prompts,
            _ => return,
        };
        if let Some(route) = request.params.string("name").and_then(|name| named.route(&name).cloned()) {
            Arc::make_mut(&mut request.params).set("name", &*route.name);
        }
    }

    /// The server that a request is for, if its method is one that may be answered by a question.
    fn asker(&self, request: &Request) -> Option<Arc<Upstream>> {
        let catalog = self.catalog();
        let named = |by: &str| request.params.string(by);
        match request.method {
            Method::ToolsCall => {
                catalog.tools.route(&named("name")?).map(|route| Arc::clone(&route.upstream))
            }
            Method::PromptsGet => {
                catalog.prompts.route(&named("name")?).map(|route| Arc::clone(&route.upstream))
            }
            Method::ResourcesRead => catalog.owner(&named("uri")?),
            _ => None,
        }
    }
}

impl Service for Gateway {
    fn describe(&self) -> Arc<Description> {
        Arc::clone(&self.0.description.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        Box::pin(self.answer(request))
    }

    fn listen(&self, filter: Filter, peer: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        Box::pin(self.watch(filter, peer))
    }

    fn abandon(&self, mut request: Request) {
        let Some(upstream) = self.asker(&request) else { return };
        // The state is bound to the params as they are sent on, under the server's own name.
        self.rename(&mut request);
        if let Ok(held) = self.open(&upstream, &mut request)
            && let Some(lease) = upstream.connection(held.connection)
        {
            lease.0.service.abandon(request);
        }
    }

    fn header_params(&self, tool: &str) -> Arc<[HeaderParam]> {
        self.catalog().header_params(tool)
    }
}

/// Whether an error code may mean that there is no such resource. Older revisions and servers use both of these.
fn says_none(code: i64) -> bool {
    [Code::InvalidParams, Code::ResourceNotFound].iter().any(|none| none.number() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<F>(_: impl Fn(&'static Gateway, Request) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_call_carries_no_room_for_what_it_seldom_does() {
        // The future of a call is moved into its box, and connecting to a server takes many times this.
        let size = size(|gateway, request| gateway.answer(request));
        assert!(size <= 4096, "{size} bytes");
    }
}
