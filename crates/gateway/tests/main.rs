//! A gateway over a server in this process.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use gateway::{Gateway, Options, ServerOptions, Target};
use proto::{
    Answer, BoxFuture, Capabilities, Description, Filter, HeaderParam, Listening, Object, Peer, Raw,
    Rejection, Request, Service,
};
use seal::ProcessKey;
use spec::{Capability, Method};
use transport::client::Settings;

/// A server that is gone when its tool is called for the first time. It keeps the params of each call.
#[derive(Default)]
struct GoneOnce(Mutex<Vec<Arc<Object>>>);

impl Service for GoneOnce {
    fn describe(&self) -> Arc<Description> {
        let identity = Object::new().with("name", "once").with("version", "1");
        Arc::new(Description::new(identity, Capabilities::none().with(Capability::Tools)))
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, Rejection>> {
        let answer = match request.method {
            Method::ToolsCall => {
                let mut calls = self.0.lock().unwrap();
                calls.push(request.params);
                match calls.len() {
                    1 => Err(Rejection::Gone("it ended".into())),
                    _ => Ok(Object::new().with("content", Raw::literal("[]"))),
                }
            }
            _ => {
                let tools = r#"[{"name":"t","inputSchema":{"type":"object"}}]"#;
                Ok(Object::new().with("tools", Raw::literal(tools)))
            }
        };
        Box::pin(std::future::ready(answer.map(Answer::Complete)))
    }

    fn listen(&self, _: Filter, _: Arc<Peer>) -> BoxFuture<'_, Result<Listening, Rejection>> {
        Box::pin(std::future::ready(Err(Rejection::Internal("it tells of no changes".into()))))
    }

    fn abandon(&self, _: Request) {}

    fn header_params(&self, _: &str) -> Arc<[HeaderParam]> {
        Arc::new([])
    }
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_not_copied() {
    let server = Arc::new(GoneOnce::default());
    let servers = vec![ServerOptions::new("s", Target::Local(Arc::clone(&server) as Arc<dyn Service>))];
    let options = Options { servers, ..Options::default() };
    let gateway = Gateway::start(options, Settings::new("test", "1"), None, ProcessKey::new().unwrap());
    let params = Object::new().with("name", "t").with("arguments", Raw::literal("{}"));
    gateway.call(Request::own(Method::ToolsCall, params)).await.unwrap();
    let calls = server.0.lock().unwrap();
    assert!(matches!(&calls[..], [first, second] if Arc::ptr_eq(first, second)), "{calls:?}");
}
