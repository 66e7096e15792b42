//! The headers and extensions of the HTTP request that carried a call, in the hands of a handler.

use std::pin::Pin;

use axum::http::request::Parts;
use dateline::testing::{Client as InMemory, ClientError};
use dateline::{
    Authenticate, CancellationToken, Challenge, Context, ElicitForm, Headers, Http, HttpOptions, Limits,
    Principal, RequestExtension, Result, Revision, Server, Tool,
};
use serde_json::{Value, json};
use testkit::{Client, LEGACY, LEGACY_WIRES, MODERN, Wire, modern_headers};

use super::{House, accept, call, everything, everywhere, text, with_forms};

/// What stands before the handler puts into a request.
#[derive(Clone, Debug)]
struct Claims(&'static str);

/// Puts claims into the requests that say something.
#[derive(Debug)]
struct Claiming;

impl Authenticate for Claiming {
    fn authenticate<'a>(
        &'a self,
        head: &'a mut Parts,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, Challenge>> + Send + 'a>> {
        if head.headers.contains_key("x-said") {
            head.extensions.insert(Claims("claimed"));
        }
        Box::pin(std::future::ready(Ok(Principal::anonymous())))
    }
}

fn said(headers: &Headers) -> String {
    headers.get("x-said").map_or("nothing", |value| value.to_str().unwrap()).to_owned()
}

async fn asks(headers: Headers, cx: Context) -> Result<String> {
    let before = said(&headers);
    cx.elicit("sure", ElicitForm::raw("Sure?", json!({"type": "object", "properties": {}}))).await?;
    Ok(before)
}

async fn claims(RequestExtension(claims): RequestExtension<Claims>) -> &'static str {
    claims.0
}

async fn may(claims: Option<RequestExtension<Claims>>) -> &'static str {
    claims.map_or("none", |claims| claims.0.0)
}

fn server() -> Server {
    Server::new("heads", "1")
        .tool(Tool::new("said", "Says the header.", |headers: Headers| async move { said(&headers) }))
        .tool(Tool::new("asks", "Asks, then says the header.", asks))
        .tool(Tool::new("claims", "Needs claims.", claims))
        .tool(Tool::new("may", "Takes claims where there are any.", may))
        .build()
        .unwrap()
}

/// Begins a call that says something in a header; gives its id.
async fn begin(client: &mut Client, tool: &str, said: &str) -> Value {
    let params = call(tool, json!({}));
    let params = if client.revision.is_none() { client.modern_params(params) } else { params };
    let mirrored = if client.revision.is_none() { modern_headers("tools/call", &params) } else { Vec::new() };
    let mut headers: Vec<(&str, &str)> =
        mirrored.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("x-said", said));
    let id = client.id();
    client
        .send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}), &headers)
        .await;
    id
}

#[testkit::test]
async fn a_handler_takes_the_headers_of_its_own_request() {
    let house = House::of(&server()).await;
    for (wire, revision) in everywhere() {
        let mut client = house.client(wire, revision, everything()).await;
        for word in ["one", "two"] {
            let id = begin(&mut client, "said", word).await;
            let due = if wire == Wire::Stdio { "nothing" } else { word };
            assert_eq!(client.reply(&id).await.said(), due, "{wire:?} {revision}");
        }
    }
    // The messages of an array came with one head.
    let mut client = house.client(Wire::Http, "2025-03-26", everything()).await;
    let calls = [client.id(), client.id()].map(
        |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call("said", json!({}))}),
    );
    let exchange = client.send(&json!(calls), &[("x-said", "both")]).await;
    let (_, messages) = client.whole(exchange).await;
    let answers = messages[0].as_array().unwrap();
    assert_eq!(answers.iter().map(text).collect::<Vec<_>>(), ["both", "both"]);
}

#[testkit::test]
async fn after_a_question_of_a_session_the_handler_takes_the_headers_of_the_call() {
    let house = House::of(&server()).await;
    for (wire, revision) in with_forms().into_iter().filter(|(_, revision)| *revision != MODERN) {
        let mut client = house.client(wire, revision, everything()).await;
        let id = begin(&mut client, "asks", "at first").await;
        let question = client.next("elicitation/create").await;
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accept(json!({}))});
        client.send(&answer, &[("x-said", "later")]).await;
        let due = if wire == Wire::Stdio { "nothing" } else { "at first" };
        assert_eq!(client.reply(&id).await.said(), due, "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn a_handler_takes_what_authenticate_put_into_the_request() {
    let options = HttpOptions::default().authenticate(Claiming);
    let house = House::with(&server(), options, Limits::default()).await;
    for (wire, revision) in everywhere() {
        let mut client = house.client(wire, revision, everything()).await;
        let id = begin(&mut client, "claims", "something").await;
        let reply = client.reply(&id).await;
        let id = begin(&mut client, "may", "something").await;
        let may = client.reply(&id).await;
        match wire {
            Wire::Stdio => assert_eq!((reply.code(), may.said()), (-32603, "none"), "{revision}"),
            _ => assert_eq!((reply.said(), may.said()), ("claimed", "claimed"), "{wire:?} {revision}"),
        }
        // What one request had the next one of the session has not.
        let lacks = client.call("claims", json!({})).await;
        assert_eq!(lacks.code(), -32603, "{wire:?} {revision}");
        assert!(
            !lacks.text.contains("Claims"),
            "the types of the server are not the client's: {}",
            lacks.text
        );
        assert_eq!(client.call("may", json!({})).await.said(), "none", "{wire:?} {revision}");
    }
}

#[testkit::test]
async fn a_handler_takes_what_a_layer_around_the_router_put_into_the_request() {
    let shutdown = CancellationToken::new();
    let router =
        Http::new(server()).until(shutdown.clone()).router().layer(axum::Extension(Claims("layered")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let legacy = LEGACY_WIRES.into_iter().filter(|wire| *wire != Wire::Stdio).map(|wire| (wire, LEGACY[0]));
    for (wire, revision) in legacy.chain([(Wire::Http, MODERN)]) {
        let mut client = Client::over(wire, &url).await;
        if revision != MODERN {
            client.handshake(revision, json!({})).await;
        }
        assert_eq!(client.call("claims", json!({})).await.said(), "layered", "{wire:?} {revision}");
    }
    shutdown.cancel();
}

#[testkit::test]
async fn in_memory_there_are_no_headers_and_no_extensions() {
    for revision in Revision::ALL {
        let mut client = InMemory::new(revision).connect(server()).await.unwrap();
        let result = client.call_tool("said", json!({})).await.unwrap();
        assert_eq!(text(&json!({"result": result})), "nothing", "{revision:?}");
        let lacks = client.call_tool("claims", json!({})).await;
        assert!(matches!(lacks, Err(ClientError::Refused { code: -32603, .. })), "{revision:?}");
    }
}
