//! Values that a server's handlers share.

use std::any::type_name;
use std::ops::Deref;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::handler::FromRequest;

/// A value that was given to [`Builder::state`](crate::Builder::state), taken by a handler.
///
/// There is one value of each type. Handlers of all calls share it: what they change in it needs a lock or an atomic.
/// A call whose handler takes a type that was not given ends with an internal error that names the type.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// # use server::{Server, State, Tool};
/// async fn count(calls: State<AtomicU64>) -> String {
///     format!("call {}", calls.fetch_add(1, Ordering::Relaxed) + 1)
/// }
///
/// let server = Server::new("counter", "1.0.0")
///     .state(AtomicU64::new(0))
///     .tool(Tool::new("count", "Counts its calls.", count))
///     .build()?;
/// # let _ = server;
/// # Ok::<(), server::BuildError>(())
/// ```
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> State<T> {
        State(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> FromRequest for State<T> {
    fn from_request(cx: &Context) -> Result<State<T>> {
        cx.states().get().map(State).ok_or_else(|| {
            let name = type_name::<T>();
            tracing::error!("a handler takes State<{name}>, which Builder::state was not given");
            Error::reject(proto::Rejection::Internal(
                "the server lacks a value that this handler needs".into(),
            ))
        })
    }
}
