//! The calls that a server works on. [`Calls`] is the one place where a call goes from one state to the next.
//!
//! ```text
//!           ask            answer
//! Waiting ────────► Parked ────────► Ready
//!    │  ◄───────────────┘                │
//!    │       resume                      │
//!    │ answer                            │ resume
//!    ▼                                   ▼
//!  the caller has the answer, and the call is forgotten
//! ```

use std::collections::HashMap;

use bytestring::ByteString;
use proto::{
    Answer, CallKey, Event, EventSink, InputRequest, InputRequired, Principal, Raw, Rejection, Request,
};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// What a call's server has said, as far as its caller is concerned.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The call ended.
    Ended(Result<Answer, Rejection>),
    /// The call is parked: it goes on when a request comes with this request state and with answers.
    Parked(InputRequired),
}

/// A call's answer, however it ends.
type Ended = Result<Answer, Rejection>;

/// The calls that a server works on, by key.
#[derive(Default)]
pub(super) struct Calls(HashMap<CallKey, Call>);

struct Call {
    state: State,
    /// Where progress and log messages go.
    events: EventSink,
    /// Who made the call; nobody else goes on with it.
    principal: Principal,
    /// The task that reads the call's HTTP response. It runs also while the call is parked, when nobody waits.
    reader: Option<AbortHandle>,
}

enum State {
    /// A caller waits for the answer.
    Waiting(oneshot::Sender<Outcome>),
    /// The server has asked something, and waits for the client's answers. Nobody waits for the call.
    Parked { secret: String },
    /// The server gave its answer while the call was parked. It waits for the client to come back.
    Ready { secret: String, answer: Ended },
}

/// How a parked call goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    /// The server waits for the answers to its questions.
    Open(CallKey),
    /// The server has answered already, and the caller has that answer.
    Ended(CallKey),
}

impl Calls {
    /// How many calls are open.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a call that is waited for; gives where its outcome comes.
    pub(super) fn start(&mut self, key: CallKey, request: &Request) -> oneshot::Receiver<Outcome> {
        let (caller, outcome) = oneshot::channel();
        let call = Call {
            state: State::Waiting(caller),
            events: request.events.clone(),
            principal: request.peer.principal.clone(),
            reader: None,
        };
        self.0.insert(key, call);
        outcome
    }

    /// Notes the task that reads the call's response, and ends that task where the call has ended already.
    pub(super) fn set_reader(&mut self, key: CallKey, reader: AbortHandle) {
        match self.0.get_mut(&key) {
            Some(call) => call.reader = Some(reader),
            None => reader.abort(),
        }
    }

    /// Hands an event of the call to its caller. Events for which the caller has no room are lost.
    pub(super) fn event(&self, key: CallKey, event: Event) {
        if let Some(call) = self.0.get(&key)
            && !call.events.try_send(event)
        {
            tracing::debug!(key, "an event found no room in its queue");
        }
    }

    /// The server asks: the call is parked, and its caller gets the questions with the request state that names it.
    /// A call that cannot be parked fails.
    pub(super) fn ask(&mut self, key: CallKey, questions: Vec<(ByteString, InputRequest)>) {
        let Some(call) = self.0.get_mut(&key) else { return };
        let Ok(secret) = secret() else {
            let why = Rejection::Internal("the system gives no random bytes for a request state".into());
            return self.answer(key, Err(why));
        };
        let state = Some(Raw::from(format!("{key}.{secret}").as_str()));
        match std::mem::replace(&mut call.state, State::Parked { secret }) {
            // Where the caller is gone by now, its guard cancels the call.
            State::Waiting(caller) => drop(caller.send(Outcome::Parked(InputRequired { questions, state }))),
            // The edge asks the next questions when those before are answered.
            parked => call.state = parked,
        }
    }

    /// The server answers, or the call fails. Where the call is parked, the answer waits for the client; a later one
    /// replaces it.
    pub(super) fn answer(&mut self, key: CallKey, answer: Ended) {
        let Some(call) = self.0.remove(&key) else { return };
        match call.state {
            State::Waiting(caller) => drop(caller.send(Outcome::Ended(answer))),
            State::Parked { secret } | State::Ready { secret, .. } => {
                self.0.insert(key, Call { state: State::Ready { secret, answer }, ..call });
            }
        }
    }

    /// Goes on with the parked call that the state names; gives where its outcome comes. `None` where the principal
    /// has no such call.
    pub(super) fn resume(
        &mut self,
        state: &Raw,
        request: &Request,
    ) -> Option<(Resumed, oneshot::Receiver<Outcome>)> {
        let key = self.parked(state)?;
        let call = self.0.get_mut(&key).filter(|call| call.principal == request.peer.principal)?;
        let (caller, outcome) = oneshot::channel();
        call.events = request.events.clone();
        match std::mem::replace(&mut call.state, State::Waiting(caller)) {
            State::Ready { answer, .. } => {
                self.answer(key, answer);
                Some((Resumed::Ended(key), outcome))
            }
            State::Parked { .. } | State::Waiting(_) => Some((Resumed::Open(key), outcome)),
        }
    }

    /// Forgets the parked call that the state names, since its client does not come back; gives its key.
    pub(super) fn abandon(&mut self, state: &Raw) -> Option<CallKey> {
        let key = self.parked(state)?;
        self.remove(key);
        Some(key)
    }

    /// The parked call that a request state names, whether its answer has come or not.
    fn parked(&self, state: &Raw) -> Option<CallKey> {
        let state = state.string()?;
        let (key, named) = state.split_once('.')?;
        let key = key.parse().ok()?;
        match &self.0.get(&key)?.state {
            State::Parked { secret } | State::Ready { secret, .. } => (secret == named).then_some(key),
            State::Waiting(_) => None,
        }
    }

    /// Whether the server has yet to answer the call.
    pub(super) fn is_unanswered(&self, key: CallKey) -> bool {
        self.0.get(&key).is_some_and(|call| !matches!(call.state, State::Ready { .. }))
    }

    /// Forgets a call that its caller gave up, and ends the task that reads its response.
    pub(super) fn remove(&mut self, key: CallKey) {
        if let Some(Call { reader: Some(reader), .. }) = self.0.remove(&key) {
            reader.abort();
        }
    }

    /// Fails a call with what `why` makes of whether it is the local user's.
    pub(super) fn fail(&mut self, key: CallKey, why: impl FnOnce(bool) -> Rejection) {
        if let Some(Call { state: State::Waiting(caller), principal, .. }) = self.0.remove(&key) {
            let _ = caller.send(Outcome::Ended(Err(why(principal == Principal::local()))));
        }
    }

    /// Fails all calls.
    pub(super) fn fail_all(&mut self, why: impl Fn(bool) -> Rejection) {
        for key in self.0.keys().copied().collect::<Vec<_>>() {
            self.fail(key, &why);
        }
    }
}

/// 128 random bits in hexadecimal, so that no client can name the call of another.
fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::{InputResponses, Object};
    use spec::{Method, Question};

    const KEY: CallKey = 16;

    fn request(answers: Option<&Raw>) -> Request {
        let answers =
            answers.map(|state| InputResponses { state: Some(state.clone()), ..Default::default() });
        let mut request = Request::own(Method::ToolsCall, Object::new());
        request.answers = answers.map(std::sync::Arc::new);
        request
    }

    fn questions() -> Vec<(ByteString, InputRequest)> {
        vec![("q".into(), InputRequest { question: Question::ListRoots, params: Object::new() })]
    }

    fn complete(name: &'static str) -> Ended {
        Ok(Answer::Complete(Object::new().with(name, "")))
    }

    /// The member of the result with which a call ended.
    fn ended(mut outcome: oneshot::Receiver<Outcome>) -> String {
        match outcome.try_recv() {
            Ok(Outcome::Ended(Ok(Answer::Complete(result)))) => {
                result.into_iter().map(|(name, _)| name.to_string()).collect()
            }
            Ok(Outcome::Ended(Err(why))) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// The request state of a call that was parked.
    fn parked(mut outcome: oneshot::Receiver<Outcome>) -> Raw {
        match outcome.try_recv() {
            Ok(Outcome::Parked(asked)) => asked.state.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// A call that is parked, and the request state that names it.
    fn asked() -> (Calls, Raw) {
        let mut calls = Calls::default();
        let outcome = calls.start(KEY, &request(None));
        calls.ask(KEY, questions());
        (calls, parked(outcome))
    }

    #[test]
    fn a_call_that_is_asked_twice_has_a_new_request_state_each_time() {
        let (mut calls, first) = asked();
        let (resumed, outcome) = calls.resume(&first, &request(Some(&first))).unwrap();
        assert_eq!(resumed, Resumed::Open(KEY));
        assert!(calls.resume(&first, &request(Some(&first))).is_none(), "it is not parked");
        calls.ask(KEY, questions());
        let second = parked(outcome);
        assert!(calls.resume(&first, &request(Some(&first))).is_none(), "it is parked under another state");
        let (_, outcome) = calls.resume(&second, &request(Some(&second))).unwrap();
        calls.answer(KEY, complete("done"));
        assert_eq!((ended(outcome).as_str(), calls.len()), ("done", 0));
    }

    #[test]
    fn the_answer_to_a_parked_call_waits_for_its_client() {
        let (mut calls, state) = asked();
        assert!(calls.is_unanswered(KEY));
        calls.answer(KEY, Err(Rejection::Internal("the stream broke off".into())));
        calls.answer(KEY, complete("the answer after all"));
        assert!(!calls.is_unanswered(KEY));
        let (resumed, outcome) = calls.resume(&state, &request(Some(&state))).unwrap();
        assert_eq!(resumed, Resumed::Ended(KEY));
        assert_eq!((ended(outcome).as_str(), calls.len()), ("the answer after all", 0));
    }

    #[test]
    fn only_whoever_made_a_call_goes_on_with_it() {
        let (mut calls, state) = asked();
        let mut other = request(Some(&state));
        let mut peer = (*other.peer).clone();
        peer.principal = Principal::anonymous();
        other.peer = std::sync::Arc::new(peer);
        assert!(calls.resume(&state, &other).is_none());
        for wrong in ["", "16", "16.", "17.0", "x.0"] {
            let wrong = Raw::from(wrong);
            assert!(
                calls.resume(&wrong, &request(Some(&wrong))).is_none() && calls.abandon(&wrong).is_none()
            );
        }
        assert!(calls.resume(&state, &request(Some(&state))).is_some());
    }

    #[test]
    fn a_call_that_is_abandoned_while_it_is_parked_is_forgotten() {
        for answered in [false, true] {
            let (mut calls, state) = asked();
            if answered {
                calls.answer(KEY, complete("nobody reads it"));
            }
            assert_eq!((calls.abandon(&state), calls.len()), (Some(KEY), 0));
            assert!(calls.abandon(&state).is_none() && calls.resume(&state, &request(None)).is_none());
        }
        let (mut calls, state) = asked();
        let resumed = calls.resume(&state, &request(Some(&state)));
        assert!(resumed.is_some() && calls.abandon(&state).is_none(), "its client came back");
    }

    #[test]
    fn when_the_connection_ends_whoever_waits_hears_it() {
        let (mut calls, state) = asked();
        let waiting = calls.start(KEY + 1, &request(None));
        calls.fail_all(|is_local| Rejection::Internal(format!("ended, {is_local}")));
        assert_eq!((ended(waiting).as_str(), calls.len()), ("ended, true", 0));
        assert!(calls.resume(&state, &request(Some(&state))).is_none());
    }
}
