//! The window in which answers count.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::job::Window;
use crate::message::FIRST_ID;
use crate::process::Tree;

/// Where there are fewer answers in a window, it goes on.
const FEWEST: usize = 10;
/// How long it goes on at most, and how long the last requests may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq)]
enum State {
    Warming,
    Measuring,
    Over,
}

/// What the clients of a run share.
pub(crate) struct Clock {
    state: Cell<State>,
    next: Cell<u32>,
    took: RefCell<Vec<Duration>>,
    failed: RefCell<Option<String>>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let took = RefCell::new(Vec::with_capacity(1 << 20));
        Clock {
            state: Cell::new(State::Warming),
            next: Cell::new(FIRST_ID),
            took,
            failed: RefCell::default(),
        }
    }

    /// An id that no other request has.
    pub(crate) fn id(&self) -> u32 {
        self.next.replace(self.next.get() + 1)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state.get() == State::Over
    }

    /// An answer came.
    pub(crate) fn answered(&self, asked: Instant) {
        if self.state.get() == State::Measuring {
            self.took.borrow_mut().push(asked.elapsed());
        }
    }

    /// Something was wrong: the run ends.
    pub(crate) fn fail(&self, error: String) {
        self.failed.borrow_mut().get_or_insert(error);
        self.state.set(State::Over);
    }

    async fn pause(&self, until: Instant) -> Outcome<()> {
        while Instant::now() < until && !self.is_over() {
            tokio::time::sleep_until(until.min(Instant::now() + Duration::from_millis(20)).into()).await;
        }
        match self.failed.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Measures what clients do, while they run beside this.
    pub(crate) async fn measure(&self, window: &Window, tree: &Tree) -> Outcome<Value> {
        self.pause(Instant::now() + Duration::from_millis(window.warm)).await?;
        let (began, worked) = (Instant::now(), tree.worked()?);
        self.state.set(State::Measuring);
        let end = began + Duration::from_millis(window.measured);
        self.pause(end).await?;
        while self.took.borrow().len() < FEWEST && Instant::now() < end + PATIENCE {
            self.pause(Instant::now() + Duration::from_millis(20)).await?;
        }
        let (seconds, worked) = (began.elapsed().as_secs_f64(), tree.worked()?.saturating_sub(worked));
        self.state.set(State::Over);
        let mut took = self.took.take();
        if took.is_empty() {
            return Err(format!("no answer within {seconds:.0} s"));
        }
        took.sort_unstable();
        let calls = took.len() as f64;
        Ok(json!({
            "calls": took.len(),
            "perSecond": calls / seconds,
            "p50": micros(part(&took, 0.5)),
            "p99": micros(part(&took, 0.99)),
            "worked": micros(worked) / calls,
            "peak": tree.peak()?,
            "after": tree.resident()?,
        }))
    }

    /// Waits for clients that end once the window is over.
    pub(crate) async fn wait(clients: &mut tokio::task::JoinSet<()>) -> Outcome<()> {
        let all = async { while clients.join_next().await.is_some() {} };
        tokio::time::timeout(PATIENCE, all).await.map_err(|_| "the last requests got no answer".to_owned())
    }

    /// What was wrong, after the window.
    pub(crate) fn checked(&self) -> Outcome<()> {
        match self.failed.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The value below which this part of sorted values is.
pub(crate) fn part(sorted: &[Duration], part: f64) -> Duration {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at).or(sorted.last()).copied().unwrap_or_default()
}

/// In microseconds.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
