//! Handlers are other people's code: what goes wrong in one ends its own call.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use proto::Rejection;

use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::handler::Run;

/// Runs a handler so that its panic ends this call and nothing else, and so that what it asked decides the round. Where
/// the handler does not come to its end, it tells what the handler started.
pub(crate) async fn guarded<T>(cx: &Context, handler: &Run<T>) -> Result<T> {
    let unfinished = cx.cancellation().clone().drop_guard();
    let result = caught(async { cx.run(handler(cx.clone())).await }).await;
    if !matches!(result, Err(Error(Kind::Asked))) {
        unfinished.disarm();
    }
    result
}

pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(_) => {
            tracing::error!("a handler panicked; its call ends with an error");
            Err(Error::reject(Rejection::Internal("the handler of this request failed".into())))
        }
    }
}
