//! Who asks, where the endpoint asks for that: a session belongs to whoever opened it.

use std::pin::Pin;

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use dateline::{Authenticate, Challenge, Context, HttpOptions, Object, Principal, Raw, Server, Tool};
use serde_json::{Value, json};
use testkit::{Arrival, Client, LATEST_LEGACY, header, modern_headers, sse_url};

use crate::serve;

const CHALLENGE: &str =
    "Bearer resource_metadata=\"https://example.com/.well-known/oauth-protected-resource\"";

/// Takes every token for the name of who sends it, and claims one role.
#[derive(Debug)]
struct Named;

impl Authenticate for Named {
    fn authenticate<'a>(
        &'a self,
        head: &'a mut Parts,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, Challenge>> + Send + 'a>> {
        let token = head.headers.get("authorization").and_then(|value| value.to_str().ok());
        let name = token.and_then(|token| token.strip_prefix("Bearer "));
        let challenge = HeaderValue::from_static(CHALLENGE);
        let claims = Object::new().with("role", "admin");
        let who = name.map(|name| Principal::named(name).with_claims(claims));
        let who = who.ok_or_else(|| Challenge::new(StatusCode::UNAUTHORIZED, challenge, "a token is needed"));
        Box::pin(std::future::ready(who))
    }
}

/// An endpoint that asks who sends a request.
async fn guarded() -> String {
    let who = |cx: Context| async move { cx.peer().principal.as_str().to_owned() };
    let claimed = |cx: Context| async move {
        let role = cx.principal().claim("role").and_then(Raw::string);
        format!("{:?} {role:?}", cx.principal().name())
    };
    let server = Server::new("who", "1")
        .tool(Tool::new("who", "Says who asks.", who))
        .tool(Tool::new("claimed", "Says what is known of who asks.", claimed))
        .build()
        .unwrap();
    serve(server, HttpOptions::default().authenticate(Named)).await
}

/// Posts a message; gives the status and the first message of the answer.
async fn post(client: &mut Client, message: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let exchange = client.send(message, headers).await;
    let (head, messages) = client.whole(exchange).await;
    (head.status, messages.into_iter().next().unwrap_or_default())
}

#[testkit::test]
async fn who_is_not_authenticated_is_challenged_and_who_is_reaches_the_handler() {
    let url = guarded().await;
    let mut client = Client::connect(&url);
    for verb in ["POST", "GET", "DELETE", "PUT"] {
        let exchange = client.exchange(verb, &[], b"{}".to_vec());
        let head = client.head(exchange).await;
        assert_eq!(head.status, 401, "{verb}");
        assert_eq!(header(&head.headers, "www-authenticate"), Some(CHALLENGE));
    }
    let mut sse = Client::connect(&sse_url(&url));
    let exchange = sse.exchange("GET", &[], Vec::new());
    assert_eq!(sse.head(exchange).await.status, 401);
    for (tool, due) in [("who", "named:ann"), ("claimed", r#"Some("ann") Some("admin")"#)] {
        let params = client.modern_params(json!({"name": tool}));
        let mirrored = modern_headers("tools/call", &params);
        let mut headers: Vec<_> = mirrored.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("authorization", "Bearer ann"));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let (status, reply) = post(&mut client, &call, &headers).await;
        assert_eq!((status, &reply["result"]["content"][0]["text"]), (200, &json!(due)));
    }
}

#[testkit::test]
async fn a_session_of_another_principal_is_answered_like_one_that_does_not_exist() {
    let url = guarded().await;
    let mut client = Client::connect(&url);
    let [ann, bob] = ["Bearer ann", "Bearer bob"].map(|token| ("authorization", token));
    let params = json!({"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let exchange = client.send(&initialize, &[ann]).await;
    let head = client.head(exchange).await;
    let session = header(&head.headers, "mcp-session-id").unwrap().to_owned();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "who"}});
    for id in [session.as_str(), "0123"] {
        let of = ("mcp-session-id", id);
        let (status, refusal) = post(&mut client, &call, &[bob, of]).await;
        let why = refusal["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!((status, why.as_str()), (404, "there is no such session; open a new one with initialize"));
        for verb in ["GET", "DELETE"] {
            let exchange = client.exchange(verb, &[bob, of], Vec::new());
            assert_eq!(client.head(exchange).await.status, 404, "{verb}");
        }
    }
    let (status, reply) = post(&mut client, &call, &[ann, ("mcp-session-id", &session)]).await;
    assert_eq!((status, &reply["result"]["content"][0]["text"]), (200, &json!("named:ann")));
}

#[testkit::test]
async fn a_stream_of_another_principal_takes_no_messages_and_is_answered_like_one_that_does_not_exist() {
    let url = guarded().await;
    let [ann, bob] = ["Bearer ann", "Bearer bob"].map(|token| ("authorization", token));
    let mut stream = Client::connect(&sse_url(&url));
    let exchange = stream.exchange("GET", &[ann], Vec::new());
    assert_eq!(stream.head(exchange).await.status, 200);
    let first = stream.wait("the endpoint", |a| matches!(a, Arrival::Rubbish(..))).await;
    let Arrival::Rubbish(_, path) = first else { unreachable!() };
    let (folder, session) = path.split_once('=').unwrap();
    let other = "0".repeat(session.len());
    let server = url.trim_end_matches("/mcp");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut refusals = Vec::new();
    for (id, who) in [(session, bob), (&other, bob), (&other, ann)] {
        let mut client = Client::connect(&format!("{server}{folder}={id}"));
        let (status, refusal) = post(&mut client, &ping, &[who]).await;
        assert_eq!(status, 404, "{refusal}");
        refusals.push(refusal);
    }
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    let mut client = Client::connect(&format!("{server}{path}"));
    let exchange = client.send(&ping, &[ann]).await;
    assert_eq!(client.head(exchange).await.status, 202);
    let answered = stream.wait("the answer", |a| matches!(a, Arrival::Message(..))).await;
    assert!(format!("{answered:?}").contains("result"), "{answered:?}");
}
