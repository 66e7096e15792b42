//! Handlers are other people's code: what goes wrong in one ends its own call.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use proto::Rejection;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::handler::Run;

/// Runs a handler so that its panic ends this call and nothing else. Dropped before its end, it tells what the handler
/// started.
pub(crate) async fn guarded<T>(cx: &Cx, handler: &Run<T>) -> Result<T> {
    let unfinished = cx.cancellation().clone().drop_guard();
    let result = caught(handler(cx.clone())).await;
    unfinished.disarm();
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
