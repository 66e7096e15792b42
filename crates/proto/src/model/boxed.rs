//! Boxed futures and streams, which the methods of services return.

use std::future::Future;
use std::pin::Pin;

use futures_util::Stream;

/// A future that a service returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A stream that a service returns.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;
