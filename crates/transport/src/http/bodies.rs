//! Reads the bodies of requests and sends the bodies of responses, and counts their bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use proto::downstream::http::Refusal;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::response::full;
use crate::limits::{Budget, Charge, ConnectionSlot, Full, Holding, Owner};

/// How many bytes of a refused body are still read. Some clients read no answer before they have written the whole body;
/// this lets a client read why, if its message is up to twice as long as the default limit allows.
const DRAINED: usize = 32 << 20;
/// How long a refused body is read.
const DRAINING: Duration = Duration::from_secs(5);
/// Frames of a response that are shorter than this are not counted: every connection has such a buffer anyway.
const SMALL: usize = 4 << 10;

/// The body of a request. When the handler drops it before its end, the rest is read for a while.
pub(crate) struct RequestBody {
    body: Option<Incoming>,
    slot: Arc<ConnectionSlot>,
    /// The client sends the body only after `100 Continue`.
    on_demand: bool,
    /// The whole body was read. hyper does not know the end of a chunked body before it has read it.
    ended: bool,
}

impl RequestBody {
    pub(crate) fn of(
        request: http::Request<Incoming>,
        slot: &Arc<ConnectionSlot>,
    ) -> http::Request<RequestBody> {
        let on_demand = request.headers().contains_key(header::EXPECT);
        request.map(|body| {
            let ended = body.is_end_stream();
            if ended {
                slot.works();
            }
            RequestBody { body: Some(body), slot: Arc::clone(slot), on_demand, ended }
        })
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.on_demand = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if frame.is_none() || body.is_end_stream() {
            self.ended = true;
            self.slot.works();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|_| !self.ended && !self.on_demand);
        if let (Some(rest), Ok(runtime)) = (rest, tokio::runtime::Handle::try_current()) {
            runtime.spawn(drain(rest));
        }
    }
}

/// Reads the rest of a body. If there is more than [`DRAINED`], hyper closes the connection.
async fn drain(mut body: Incoming) {
    let all = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > DRAINED {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAINING, all).await;
}

/// The body of a response. It counts the bytes that are not written yet.
pub(crate) struct ResponseBody {
    body: Body,
    slot: Arc<ConnectionSlot>,
    holding: Arc<Holding>,
}

impl ResponseBody {
    pub(crate) fn of(
        response: http::Response<Body>,
        slot: &Arc<ConnectionSlot>,
        holding: &Arc<Holding>,
    ) -> http::Response<ResponseBody> {
        let (slot, holding) = (Arc::clone(slot), Arc::clone(holding));
        response.map(|body| ResponseBody { body, slot, holding })
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|data| match data.len() {
                    ..SMALL => data,
                    length => self.holding.take_at_once(length).hold(data),
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.slot.waits();
    }
}

/// Why a body was not taken.
enum Unread {
    TooLong,
    Broken,
    Full(Full),
}

/// Reads the body of a request. Memory is allocated for what has arrived, not for the length that was announced.
pub(crate) async fn read(
    body: impl http_body::Body<Data = Bytes> + Unpin,
    headers: &HeaderMap,
    owner: Owner,
    endpoint: &Endpoint,
) -> Result<Bytes, Refusal> {
    let limit = endpoint.served.limits.message;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| usize::try_from(length).is_ok_and(|length| length > limit)) {
        return Err(too_long(limit));
    }
    let busy = |why: &str| Refusal::for_now(StatusCode::SERVICE_UNAVAILABLE, why);
    let evict = CancellationToken::new();
    tokio::select! {
        biased;
        read = collect(body, limit, &endpoint.limits.request_bytes, owner, &evict) => read.map_err(|why| match why {
            Unread::TooLong => too_long(limit),
            Unread::Broken => Refusal::new(StatusCode::BAD_REQUEST, "the body ended before it was complete"),
            Unread::Full(limit) => full(&limit),
        }),
        () = evict.cancelled() => Err(busy("others need the room that this unfinished body held; try again later")),
        () = endpoint.shutdown.cancelled() => Err(busy("the server is going down")),
        () = tokio::time::sleep(endpoint.options.body_timeout) => {
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"))
        }
    }
}

fn too_long(limit: usize) -> Refusal {
    let why = format!("the body is longer than {limit} bytes; the limit can be configured");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, &why)
}

/// Joins the frames of a body, and counts their bytes. `evict` is cancelled when others need the room of an unfinished
/// body.
async fn collect(
    mut body: impl http_body::Body<Data = Bytes> + Unpin,
    limit: usize,
    budget: &Arc<Budget>,
    owner: Owner,
    evict: &CancellationToken,
) -> Result<Bytes, Unread> {
    let first = part(&mut body, 0, limit).await?.unwrap_or_default();
    if body.is_end_stream() {
        // Nearly all messages come in one part, which is complete at once. It is copied, since it is a piece of the
        // connection's buffer, which is longer.
        if first.is_empty() {
            return Ok(first);
        }
        if let Ok(charge) = budget.try_take(owner, first.len()) {
            return Ok(charge.hold(Vec::from(first)));
        }
    }
    let holding = budget.holding(owner, evict.clone());
    let (mut bytes, mut next) = (Vec::new(), Some(first));
    let mut charge: Option<Charge> = None;
    while let Some(data) = next {
        let length = bytes.len() + data.len();
        if length > bytes.capacity() {
            let room = (2 * bytes.capacity()).min(limit).max(length);
            let more = holding.take(room - bytes.capacity()).await.map_err(Unread::Full)?;
            match &mut charge {
                Some(charge) => charge.join(more),
                None => charge = Some(more),
            }
            bytes.reserve_exact(room - bytes.len());
        }
        bytes.extend_from_slice(&data);
        next = part(&mut body, length, limit).await?;
    }
    holding.settle();
    bytes.shrink_to_fit();
    Ok(match charge {
        Some(mut charge) => {
            charge.shrink(bytes.len());
            charge.hold(bytes)
        }
        None => Bytes::new(),
    })
}

/// Returns the next frame of data of a body of which `read` bytes were read; `None` at its end.
async fn part(
    body: &mut (impl http_body::Body<Data = Bytes> + Unpin),
    read: usize,
    limit: usize,
) -> Result<Option<Bytes>, Unread> {
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        return if read + data.len() > limit { Err(Unread::TooLong) } else { Ok(Some(data)) };
    }
    Ok(None)
}
