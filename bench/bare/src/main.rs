//! The floor of the benchmark: reads the envelope of a call and its text, and answers with that text. It knows nothing else of
//! the protocol and checks nothing.
//!
//! `bare --listen ADDRESS` serves HTTP by hyper.

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    result_type: &'static str,
    content: [Content<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'static str,
    text: &'a RawValue,
}

fn answer(message: &[u8]) -> serde_json::Result<Vec<u8>> {
    let call: Call = serde_json::from_slice(message)?;
    let content = [Content { r#type: "text", text: call.params.arguments.text }];
    let result = Outcome { result_type: "complete", content };
    serde_json::to_vec(&Answer { jsonrpc: "2.0", id: call.id, result })
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let answered = body.map_err(|error| error.to_string());
    let answered = answered.and_then(|body| answer(&body).map_err(|error| error.to_string()));
    let (status, kind, body) = match answered {
        Ok(body) => (StatusCode::OK, "application/json", body),
        Err(error) => (StatusCode::BAD_REQUEST, "text/plain", error.into_bytes()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

async fn http(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("serving http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(respond));
            if let Err(error) = served.await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--listen", address] => http(address).await,
        _ => Err("usage: bare --listen ADDRESS".into()),
    }
}
