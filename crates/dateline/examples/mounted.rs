//! A server with state, mounted in an axum application beside its other routes: a counter. State lives in what the
//! handlers hold, as in any program; nothing of it hangs on a connection or session. Run it with an address.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::routing::get;
use dateline::{Args, Http, Json, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Step {
    /// How far to count; backwards where it is negative.
    by: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Count {
    count: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4401".into());
    let counter = Arc::new(AtomicI64::new(0));

    let counted = Arc::clone(&counter);
    let count = move |Args(step): Args<Step>| {
        let count = counted.fetch_add(step.by, Ordering::Relaxed) + step.by;
        async move { Json(Count { count }) }
    };
    let server = Server::new("counter", "1.0.0").tool(Tool::new("count", "Counts.", count)).build()?;

    let page = move || async move { format!("It stands at {}.\n", counter.load(Ordering::Relaxed)) };
    let application = Router::new().route("/", get(page)).merge(Http::new(server).router());

    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, application).await?;
    Ok(())
}
