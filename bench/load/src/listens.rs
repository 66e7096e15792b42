//! Many listens on connections of their own, and one change that each is told.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

use crate::Outcome;
use crate::clock::{micros, part};
use crate::http::{Client, Connection, events, modern, post};
use crate::job::{Ask, Crowd, Era};
use crate::message::{Exchange, FIRST_ID, Notification, Template, request};
use crate::process::Tree;

/// How long all may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A connection with a listen that was acknowledged.
struct Listen {
    connection: Connection,
}

impl Listen {
    async fn open(job: &Crowd, id: u32) -> Outcome<Listen> {
        let mut connection = Connection::open(&job.server.address).await?;
        let method = "subscriptions/listen";
        let message = request(Era::Modern, method, r#""notifications":{"toolsListChanged":true}"#, false);
        let mut post = Template::new(&post(&job.server, &message, &modern(method, None)));
        let head = connection.send(post.with(id)).await?;
        if head.status != 200 || !head.events {
            return Err(format!("status {} for a listen", head.status));
        }
        let mut listen = Listen { connection };
        listen.wait("notifications/subscriptions/acknowledged").await?;
        Ok(listen)
    }

    /// Reads until a notification comes, which must be this one.
    async fn wait(&mut self, method: &str) -> Outcome<()> {
        loop {
            if let Some(event) = events(&self.connection.body).first() {
                let shown = || String::from_utf8_lossy(event).into_owned();
                let got: Notification = serde_json::from_slice(event).map_err(|_| shown())?;
                if got.method != method {
                    return Err(format!("{method} was expected: {}", shown()));
                }
                self.connection.body.clear();
                return Ok(());
            }
            if !self.connection.more().await? {
                return Err("a listen ended".into());
            }
        }
    }
}

async fn told(job: &Crowd) -> Outcome<Value> {
    let ask = Ask::Call { tool: "change".into(), bytes: 100, progress: false };
    let exchange = Exchange::new(&ask, Era::Modern);
    let tree = Tree::new(job.server.pid, job.server.without.as_deref());
    let mut client = Client::open(&job.server, Era::Modern, &exchange).await?;
    // What is made once is there before memory is looked at.
    for id in 0..20 {
        client.ask(FIRST_ID + id).await?;
    }
    let before = tree.resident()?;
    let mut listens = Vec::with_capacity(job.count);
    for at in 0..job.count {
        listens.push(Listen::open(job, FIRST_ID + at as u32).await?);
    }
    let after = tree.resident()?;
    let (done, mut times) = mpsc::channel(job.count);
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for mut listen in listens {
        let done = done.clone();
        tasks.spawn_local(async move {
            listen.wait("notifications/tools/list_changed").await?;
            // The connection stays until all are told.
            done.send(began.elapsed()).await.map_err(|_| "the run ended".to_owned())?;
            Ok::<Listen, String>(listen)
        });
    }
    drop(done);
    let began = began.elapsed();
    client.ask(FIRST_ID).await?;
    let mut all = Vec::with_capacity(job.count);
    while let Some(time) = times.recv().await {
        all.push(time.saturating_sub(began));
    }
    let mut kept = Vec::new();
    while let Some(listen) = tasks.join_next().await {
        kept.push(listen.map_err(|error| error.to_string())??);
    }
    all.sort_unstable();
    Ok(json!({
        "count": kept.len(),
        "p50": micros(part(&all, 0.5)),
        "p99": micros(part(&all, 0.99)),
        "last": micros(part(&all, 1.0)),
        "before": before,
        "after": after,
        "each": after.saturating_sub(before) as f64 / job.count as f64,
    }))
}

pub(crate) async fn run(job: &Crowd) -> Outcome<Value> {
    let run = tokio::time::timeout(PATIENCE, told(job));
    LocalSet::new().run_until(run).await.map_err(|_| "not all listens were told".to_owned())?
}
