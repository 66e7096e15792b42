//! Calls over HTTP: each connection sends one request after the other.

use std::rc::Rc;
use std::time::Instant;

use serde_json::Value;
use tokio::task::{JoinSet, LocalSet};

use crate::Outcome;
use crate::clock::Clock;
use crate::http::Client;
use crate::job::Calls;
use crate::message::Exchange;
use crate::process::Tree;

pub(crate) async fn run(job: &Calls) -> Outcome<Value> {
    let exchange = Exchange::new(&job.ask, job.era);
    let clock = Rc::new(Clock::new());
    let mut all = Vec::new();
    for _ in 0..job.connections {
        all.push(Client::open(&job.server, job.era, &exchange).await?);
    }
    let run = async {
        let mut clients = JoinSet::new();
        for client in all {
            clients.spawn_local(calls(Rc::clone(&clock), client));
        }
        let tree = Tree::new(job.server.pid, job.server.without.as_deref());
        let measured = clock.measure(&job.window, &tree).await?;
        Clock::wait(&mut clients).await?;
        clock.checked()?;
        Ok(measured)
    };
    LocalSet::new().run_until(run).await
}

async fn calls(clock: Rc<Clock>, mut client: Client) {
    while !clock.is_over() {
        let asked = Instant::now();
        match client.ask(clock.id()).await {
            Ok(()) => clock.answered(asked),
            Err(error) => return clock.fail(error),
        }
    }
}
