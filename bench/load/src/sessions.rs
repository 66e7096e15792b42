//! What a session costs in memory.

use serde_json::{Value, json};

use crate::Outcome;
use crate::http::Client;
use crate::job::{Ask, Crowd, Era};
use crate::message::{Exchange, FIRST_ID};
use crate::process::Tree;

/// Sessions before the first look, so that what is made once is there.
const BEFORE: u32 = 20;

pub(crate) async fn run(job: &Crowd) -> Outcome<Value> {
    let ask = Ask::Call { tool: "echo".into(), bytes: 100, progress: false };
    let exchange = Exchange::new(&ask, Era::Legacy);
    let tree = Tree::new(job.server.pid, job.server.without.as_deref());
    for id in 0..BEFORE {
        Client::open(&job.server, Era::Legacy, &exchange).await?.ask(FIRST_ID + id).await?;
    }
    let before = tree.resident()?;
    for _ in 0..job.count {
        // The connection ends; the session stays.
        Client::open(&job.server, Era::Legacy, &exchange).await?.ask(FIRST_ID).await?;
    }
    let after = tree.resident()?;
    let each = after.saturating_sub(before) as f64 / job.count as f64;
    Ok(json!({"count": job.count, "before": before, "after": after, "each": each}))
}
