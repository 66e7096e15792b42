//! The context of a request, through which a handler reports and asks.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use bytestring::ByteString;
use http::request::Parts;
use proto::{BoxFuture, Event, InputRequest, Level, Object, Peer, Principal, Raw, Rejection, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spec::Question;
use tokio_util::sync::CancellationToken;

use crate::elicit::{ElicitForm, ElicitUrl};
use crate::error::{Error, Kind, Result};
use crate::notifier::Notifier;
use crate::pages::Pages;
use crate::sampling::{CreateMessageResult, Root};
use crate::schema::{Validator, with_integers};
use crate::states::States;
use crate::variables::Variables;

/// The request that a handler works on: its arguments, the client that sent it, and ways to report and to ask.
///
/// A question makes the handler run again. At the first question without an answer, [`Context::elicit`],
/// [`Context::sample`] and [`Context::list_roots`] do not return, and the handler's future is dropped. When the client
/// has answered, the handler starts again and gets the answer at the same place. So what stands before a question runs
/// once per round; what must not be repeated goes into [`Context::once`] or behind the last question. This is the same
/// for every revision.
///
/// A question that was asked decides the round, whatever the handler makes of it. One that is asked elsewhere, in a
/// task that the handler started, ends there with an error and is asked when the handler returns.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    notifier: Arc<Notifier>,
    pages: Pages,
    request: Request,
    arguments: Raw,
    variables: Variables,
    answers: Vec<(ByteString, Result<Raw, Raw>)>,
    states: Arc<States>,
    cancelled: CancellationToken,
    round: Mutex<Round>,
}

/// What a request state keeps between rounds.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The answers of earlier rounds, by the keys of their questions.
    pub(crate) answers: Vec<(String, Value)>,
    /// What [`Context::once`] did, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) done: Vec<(String, Value)>,
}

/// What earlier rounds of a request left, with the answers that came with it.
#[derive(Default)]
pub(crate) struct Earlier {
    pub(crate) answers: Vec<(ByteString, Result<Raw, Raw>)>,
    pub(crate) done: Vec<(String, Value)>,
}

/// What happens while the handler runs one time.
#[derive(Default)]
struct Round {
    /// What was done once, in this round or an earlier one.
    done: Vec<(String, Value)>,
    questions: Vec<(ByteString, InputRequest)>,
    /// What wakes the task that runs the handler, while it does.
    waker: Option<Waker>,
    /// The handler waits for an answer that only another round has.
    stopped: bool,
}

impl Context {
    pub(crate) fn new(
        notifier: Arc<Notifier>,
        pages: Pages,
        request: Request,
        arguments: Raw,
        variables: Variables,
        earlier: Earlier,
        states: Arc<States>,
    ) -> Context {
        let Earlier { answers, done } = earlier;
        let cancelled = CancellationToken::new();
        Context(Arc::new(Inner {
            notifier,
            pages,
            request,
            arguments,
            variables,
            answers,
            cancelled,
            states,
            round: Mutex::new(Round { done, ..Round::default() }),
        }))
    }

    pub(crate) fn variables(&self) -> &Variables {
        &self.0.variables
    }

    /// Gives a token that is cancelled when the client cancels the request, and when the handler ends at a question.
    /// The handler's own future is dropped then; the token is for work that the handler started elsewhere, such as a
    /// task.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancelled
    }

    /// Gives the arguments as they were sent; `{}` where there are none.
    pub fn arguments(&self) -> &Raw {
        &self.0.arguments
    }

    /// Gives the id of the request as JSON text, for logs. Other clients may use the same id.
    pub fn id(&self) -> &str {
        self.0.request.id.as_str()
    }

    /// Gives the client that sent the request: its revision, capabilities and principal.
    pub fn peer(&self) -> &Peer {
        &self.0.request.peer
    }

    /// Gives on whose behalf the request came: a name, and what was said about it when it was authenticated.
    pub fn principal(&self) -> &Principal {
        &self.0.request.peer.principal
    }

    /// Gives the params of the request, with the client's `_meta`.
    pub fn params(&self) -> &Object {
        &self.0.request.params
    }

    /// Gives the handle that tells clients of changes.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// Makes a page of a list of an extension's own, as the member of a result: the entries behind the place that the
    /// request's `cursor` names, with `nextCursor` where there are more. A cursor is good for the same method and
    /// params of the same client.
    ///
    /// # Errors
    /// When the cursor was not issued for this, or has expired.
    pub fn page<'a>(
        &self,
        member: &'static str,
        entries: impl IntoIterator<Item = &'a Raw>,
    ) -> Result<Object> {
        let places = (1..).zip(entries);
        self.0.pages.of_extension(&self.0.request, member, places).map_err(Error::reject)
    }

    /// Reports progress, where the client asked for it. `progress` must grow from one report to the next.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress>
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.0.request.wants_progress {
            return;
        }
        let mut params = Object::new().with("progress", Raw::of(&progress));
        if let Some(total) = total {
            params.set("total", Raw::of(&total));
        }
        if let Some(message) = message {
            params.set("message", message);
        }
        self.0.request.events.send(Event::Progress(params)).await;
    }

    /// Closes the client's connection, so that a long call holds none; the client comes back for the result after this
    /// time. Where the revision or the transport has no way to come back, nothing happens.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server>
    pub async fn release(&self, after: Duration) {
        self.0.request.events.send(Event::Release(after)).await;
    }

    /// Sends a log message, where the client wants messages of this level. It must hold no secrets.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging>
    pub async fn log(&self, level: Level, logger: Option<&str>, data: impl Serialize) {
        if self.peer().log_level.is_none_or(|least| level < least) {
            return;
        }
        let mut params = Object::new().with("level", level.as_str());
        if let Some(logger) = logger {
            params.set("logger", logger);
        }
        params.set("data", Raw::of(&data));
        self.0.request.events.send(Event::Log(level, params)).await;
    }

    /// Asks the user to fill in a form. `key` names the question within this request.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>
    ///
    /// # Errors
    /// When the client cannot be asked (see [`Error::is_unsupported_by_client`]), or when its answer does not fit.
    /// While there is no answer this does not return; in a task of its own it is an error, to be passed on with `?`.
    pub async fn elicit<T: DeserializeOwned>(
        &self,
        key: &str,
        form: ElicitForm<T>,
    ) -> Result<ElicitResult<T>> {
        let params = form
            .params()
            .map_err(|why| Error::reject(Rejection::Internal(format!("the form {key:?}: {why}"))))?;
        let schema = params.get("requestedSchema").cloned().unwrap_or(Raw::literal("{}"));
        let answer = self.ask(key, Question::Elicit, params).await?;
        let refused = |why: String| refused(key, &why);
        match action(key, &answer)? {
            Action::Accept(content) => {
                let content = content.unwrap_or(Raw::literal("{}"));
                let value: Value = content.read().map_err(|e| refused(e.to_string()))?;
                let validator = Validator::new(&schema).map_err(Error::new)?;
                validator.check(&value).map_err(|why| refused(format!("does not fit the form: {why}")))?;
                let filled = serde_json::from_value(with_integers(value));
                filled.map(ElicitResult::Accepted).map_err(|e| refused(format!("does not fit the form: {e}")))
            }
            Action::Decline => Ok(ElicitResult::Declined),
            Action::Cancel => Ok(ElicitResult::Cancelled),
        }
    }

    /// Asks the user to open a URL. `Accepted` says that the user agreed, not that the user has finished there.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn elicit_url(&self, key: &str, url: ElicitUrl) -> Result<ElicitResult<()>> {
        let answer = self.ask(key, Question::Elicit, url.params()).await?;
        Ok(match action(key, &answer)? {
            Action::Accept(_) => ElicitResult::Accepted(()),
            Action::Decline => ElicitResult::Declined,
            Action::Cancel => ElicitResult::Cancelled,
        })
    }

    /// Asks several things at once: `cx.try_join((cx.elicit("a", …), cx.sample("b", …))).await?`.
    ///
    /// # Errors
    /// As [`Context::elicit`], for the first of them that fails.
    pub async fn try_join<T: TryJoin>(&self, questions: T) -> Result<T::Output> {
        questions.try_join().await
    }

    /// Asks the client's model for a completion
    /// (<https://modelcontextprotocol.io/specification/2026-07-28/client/sampling>). `key` names the question within
    /// this request. `params` is a [`CreateMessage`](crate::CreateMessage), or anything that serializes to the params
    /// of `sampling/createMessage`.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn sample(&self, key: &str, params: impl Serialize) -> Result<CreateMessageResult> {
        let params = Object::of(&params);
        let answer = self.ask(key, Question::Sample, params).await?;
        let answer: Value =
            answer.read().map_err(|e| refused(key, &format!("is no sampling result: {e}")))?;
        CreateMessageResult::read(answer).ok_or_else(|| {
            refused(key, "is no sampling result: it needs a \"role\", and \"content\" with a \"type\"")
        })
    }

    /// Asks for the directories and files that the client works in
    /// (<https://modelcontextprotocol.io/specification/2026-07-28/client/roots>). `key` names the question within this
    /// request.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Root>> {
        let answer = self.ask(key, Question::ListRoots, Object::new()).await?;
        let wrong = || refused(key, "needs an array \"roots\" of objects with a \"uri\"");
        let mut value: Value = answer.read().map_err(|_| wrong())?;
        let Some(Value::Array(roots)) = value.get_mut("roots").map(Value::take) else { return Err(wrong()) };
        roots.into_iter().map(Root::read).collect::<Option<Vec<Root>>>().ok_or_else(wrong)
    }

    /// Does a piece of work once, however often the handler runs for this request. `key` names the work within the
    /// request.
    ///
    /// A handler runs again from its start after each question. What was done here is remembered in the request state,
    /// which is sealed and kept by the client, so it is not done again when the handler runs with the answers, in this
    /// process or in another one that has the same keys. The value should be small. Work that fails is not remembered.
    ///
    /// ```
    /// # use server::{Context, ElicitForm, Result};
    /// # use serde_json::{Value, json};
    /// # async fn reserve() -> Result<String> { Ok("r1".into()) }
    /// async fn book(cx: Context) -> Result<String> {
    ///     let reservation = cx.once("reserve", reserve()).await?;
    ///     let form = ElicitForm::raw("Book it?", json!({"type": "object", "properties": {}}));
    ///     cx.elicit("sure", form).await?;
    ///     Ok(format!("booked {reservation}"))
    /// }
    /// ```
    ///
    /// # Errors
    /// When the work fails, or its value is not one that can be kept.
    pub async fn once<T, E>(&self, key: &str, work: impl Future<Output = Result<T, E>>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Error>,
    {
        let done = self.lock().done.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        if let Some(value) = done {
            return serde_json::from_value(value).map_err(Error::new);
        }
        let value = work.await.map_err(Into::into)?;
        let kept = serde_json::to_value(&value).map_err(Error::new)?;
        self.lock().done.push((key.to_owned(), kept));
        Ok(value)
    }

    /// The answer to a question; asks it where there is none yet.
    async fn ask(&self, key: &str, question: Question, params: Object) -> Result<Raw> {
        match self.0.answers.iter().find(|(k, _)| k == key) {
            Some((_, Ok(answer))) => Ok(answer.clone()),
            Some((_, Err(error))) => {
                let said = Rejection::passed(error);
                Err(Error::new(format_args!("the client could not answer {}: {said}", question.wire())))
            }
            None => {
                let ask = InputRequest { question, params };
                if let Some(missing) = self.peer().capabilities.lacks(&ask) {
                    return Err(Error::reject(Rejection::MissingCapability(missing)));
                }
                {
                    let mut asked = self.lock();
                    if !asked.questions.iter().any(|(k, _)| k == key) {
                        asked.questions.push((key.into(), ask));
                    }
                }
                poll_fn(|context| self.stop(context)).await;
                Err(Error(Kind::Asked))
            }
        }
    }

    /// Waits for ever where the handler's own task waits for this, which then drops the handler; what is polled by
    /// anything else, such as a task that the handler started or a thread that it blocks, must come to an end.
    fn stop(&self, context: &task::Context<'_>) -> Poll<()> {
        let mut asked = self.lock();
        if asked.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            asked.stopped = true;
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Runs a handler's future until its end, or to a question that stops it. All that it asks at once is asked.
    pub(crate) async fn run<T>(&self, mut handler: BoxFuture<'static, Result<T>>) -> Result<T> {
        let result = poll_fn(|context| {
            let waker = context.waker();
            {
                let mut asked = self.lock();
                if !asked.waker.as_ref().is_some_and(|last| last.will_wake(waker)) {
                    asked.waker = Some(waker.clone());
                }
            }
            match handler.as_mut().poll(context) {
                Poll::Pending if self.lock().stopped => Poll::Ready(Err(Error(Kind::Asked))),
                polled => polled,
            }
        });
        match result.await {
            // What it cannot do without something that this client lacks, no answer changes.
            Err(error) if error.is_unsupported_by_client() => Err(error),
            _ if !self.lock().questions.is_empty() => Err(Error(Kind::Asked)),
            result => result,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Round> {
        self.0.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked in this round.
    pub(crate) fn asked(&self) -> Vec<(ByteString, InputRequest)> {
        std::mem::take(&mut self.lock().questions)
    }

    /// What the next round has to know: all answers so far, and what was done once.
    pub(crate) fn kept(&self) -> Kept {
        let answers = self
            .0
            .answers
            .iter()
            .filter_map(|(key, answer)| Some((key.to_string(), answer.as_ref().ok()?.read().ok()?)))
            .collect();
        Kept { answers, done: self.lock().done.clone() }
    }

    /// The head of the HTTP request that carried the request.
    pub(crate) fn head(&self) -> Option<&Arc<Parts>> {
        self.0.request.head.as_ref()
    }

    pub(crate) fn states(&self) -> &States {
        &self.0.states
    }
}

/// An answer to a question that does not fit.
fn refused(key: &str, why: &str) -> Error {
    Error::reject(Rejection::Params(format!("the answer to {key:?} {why}")))
}

enum Action {
    Accept(Option<Raw>),
    Decline,
    Cancel,
}

/// What a user did.
fn action(key: &str, answer: &Raw) -> Result<Action> {
    let object = answer.object().map_err(|e| refused(key, &e.to_string()))?;
    match object.string("action").as_deref() {
        Some("decline") => Ok(Action::Decline),
        Some("cancel") => Ok(Action::Cancel),
        Some("accept") => Ok(Action::Accept(object.get("content").cloned())),
        _ => Err(refused(key, "needs an \"action\": accept, decline or cancel")),
    }
}

/// What a user did with a question. A refusal is an answer, not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitResult<T> {
    /// The user agreed. What was filled in fits the form.
    Accepted(T),
    /// The user said no.
    Declined,
    /// The user closed the question without a choice.
    Cancelled,
}

impl<T> ElicitResult<T> {
    /// Gives what was filled in; `None` where the user declined or cancelled.
    pub fn accepted(self) -> Option<T> {
        match self {
            ElicitResult::Accepted(content) => Some(content),
            ElicitResult::Declined | ElicitResult::Cancelled => None,
        }
    }
}

/// A tuple of two to four questions, for [`Context::try_join`].
pub trait TryJoin {
    /// The tuple of their answers.
    type Output;
    /// Asks all of them at once.
    fn try_join(self) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// All are asked before the round ends; one that cannot be asked fails at once.
macro_rules! try_join_tuple {
    ($(($question:ident, $answer:ident, $it:ident)),*) => {
        impl<$($question, $answer),*> TryJoin for ($($question,)*)
        where
            $($question: Future<Output = Result<$answer>> + Send, $answer: Send,)*
        {
            type Output = ($($answer,)*);

            async fn try_join(self) -> Result<Self::Output> {
                let ($($it,)*) = self;
                futures_util::try_join!($($it),*)
            }
        }
    };
}

try_join_tuple!((A, RA, a), (B, RB, b));
try_join_tuple!((A, RA, a), (B, RB, b), (C, RC, c));
try_join_tuple!((A, RA, a), (B, RB, b), (C, RC, c), (D, RD, d));
