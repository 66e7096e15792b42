//! What browsers are told: pages of the origins that the request guard lets in may call and read the answers.
//!
//! <https://fetch.spec.whatwg.org/#http-cors-protocol>

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, header};
use spec::header as name;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_layer::Layer as _;
use tower_service::Service as _;

/// How long a browser may go without asking again: no browser keeps an answer much longer.
const MAX_AGE: Duration = Duration::from_secs(7200);

/// The headers of requests that are not among those of the protocol.
const OF_HTTP: [HeaderName; 3] = [header::CONTENT_TYPE, header::ACCEPT, header::AUTHORIZATION];

/// The headers that allow a page to call. The request guard has refused pages of other origins already, so any origin
/// that is left is mirrored. Cookies are not used, so credentials are not allowed.
pub(crate) fn layer() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods([Verb::GET, Verb::POST, Verb::DELETE])
        // Of what the page asks for only what is known is left when it gets here.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static(name::SESSION_ID),
            HeaderName::from_static(name::PROTOCOL_VERSION),
            header::WWW_AUTHENTICATE,
        ])
        .max_age(MAX_AGE)
        .vary([header::ORIGIN])
}

/// Answers preflights, and adds to any other answer what lets the page read it.
pub(crate) async fn answer(
    State(cors): State<CorsLayer>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    if request.method() == Verb::OPTIONS {
        let headers = request.headers();
        if !headers.contains_key(header::ORIGIN)
            || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            // No preflight. The layer would answer it all the same.
            return next.run(request).await;
        }
        keep_known(request.headers_mut());
    }
    match cors.layer(next).call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Leaves of the headers that a page wants to send those that mean something here.
fn keep_known(headers: &mut HeaderMap) {
    let wanted = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let wanted = wanted.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    let known: Vec<_> =
        wanted.map(|name| name.trim().to_ascii_lowercase()).filter(|name| is_known(name)).collect();
    headers.remove(header::ACCESS_CONTROL_REQUEST_HEADERS);
    if let Ok(value) = HeaderValue::try_from(known.join(", "))
        && !known.is_empty()
    {
        headers.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, value);
    }
}

fn is_known(wanted: &str) -> bool {
    OF_HTTP.iter().any(|name| name == wanted)
        || name::ROWS.iter().any(|(name, _)| *name == wanted)
        || wanted.starts_with(name::PARAM_PREFIX)
}
