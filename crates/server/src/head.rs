//! What handlers take from the head of the HTTP request that carried a call: its headers, and its extensions.

use std::any::type_name;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use http::request::Parts;
use proto::Rejection;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::handler::FromRequest;

/// The headers of the HTTP request that carried the call, taken by a handler. On a pipe there are none.
///
/// Each POST has headers of its own. In a session they are those of the POST that carried this call, also when the
/// handler runs again with the answer to a question. Whoever sends a request chooses its headers: who it is says
/// [`Peer::principal`](proto::Peer::principal).
///
/// ```
/// # use server::{Headers, Server, Tool};
/// async fn language(headers: Headers) -> String {
///     let wanted = headers.get("accept-language").and_then(|value| value.to_str().ok());
///     wanted.unwrap_or("any language").to_owned()
/// }
///
/// let tool = Tool::new("language", "Says which language the client prefers.", language);
/// # let _ = Server::new("polyglot", "1.0.0").tool(tool).build()?;
/// # Ok::<(), server::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Headers(Option<Arc<Parts>>);

/// What a request has that came on a pipe.
static NONE: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

impl Deref for Headers {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        self.0.as_ref().map_or(&NONE, |head| &head.headers)
    }
}

impl FromRequest for Headers {
    fn from_request(cx: &Context) -> Result<Headers> {
        Ok(Headers(cx.head().cloned()))
    }
}

/// A value that a layer of the HTTP server put into the extensions of the request that carried the call, taken by a
/// handler. It is axum's `Extension`; in this protocol an [`Extension`](crate::Extension) is something else.
///
/// A tower layer around the endpoint's router puts values there, and so does the endpoint's `Authenticate`, such as the
/// claims of a token. A call whose request lacks the value ends with an internal error. So does every call on a pipe. A
/// handler for both takes `Option<RequestExtension<T>>`.
///
/// ```
/// # use server::{RequestExtension, Server, Tool};
/// /// What a layer found out about who sends a request.
/// #[derive(Clone)]
/// struct Claims {
///     email: String,
/// }
///
/// async fn whoami(RequestExtension(claims): RequestExtension<Claims>) -> String {
///     claims.email
/// }
///
/// let tool = Tool::new("whoami", "Says who asks.", whoami);
/// # let _ = Server::new("whoami", "1.0.0").tool(tool).build()?;
/// # Ok::<(), server::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RequestExtension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> RequestExtension<T> {
    fn find(cx: &Context) -> Option<RequestExtension<T>> {
        cx.head()?.extensions.get().cloned().map(RequestExtension)
    }
}

impl<T> Deref for RequestExtension<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone + Send + Sync + 'static> FromRequest for RequestExtension<T> {
    fn from_request(cx: &Context) -> Result<RequestExtension<T>> {
        RequestExtension::find(cx).ok_or_else(|| {
            let name = type_name::<T>();
            tracing::error!("a handler takes RequestExtension<{name}>, which no layer put into the request");
            Error::reject(Rejection::Internal("the request lacks a value that this handler needs".into()))
        })
    }
}

impl<T: Clone + Send + Sync + 'static> FromRequest for Option<RequestExtension<T>> {
    fn from_request(cx: &Context) -> Result<Option<RequestExtension<T>>> {
        Ok(RequestExtension::find(cx))
    }
}
