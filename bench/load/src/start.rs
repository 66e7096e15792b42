//! From the start of a process to its first answer, and what it holds in memory then.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::Outcome;
use crate::clock::micros;
use crate::http::Client;
use crate::job::{Ask, Server, Start};
use crate::message::{Exchange, FIRST_ID};
use crate::pipe;
use crate::process::Tree;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries to reach a server that does not answer yet.
const AGAIN: Duration = Duration::from_micros(500);
/// How long a server rests before its memory is looked at.
const REST: Duration = Duration::from_millis(200);

async fn once(job: &Start) -> Outcome<(Duration, u64)> {
    let ask = Ask::Call { tool: job.tool.clone(), bytes: 100, progress: false };
    let mut exchange = Exchange::new(&ask, job.era);
    let began = Instant::now();
    if job.address.is_none() {
        let (child, mut input, mut output) = pipe::spawn(&job.command)?;
        let mut line = exchange.message.with(FIRST_ID).to_vec();
        line.push(b'\n');
        input.write_all(&line).await.map_err(|error| format!("cannot write: {error}"))?;
        let id = pipe::answer(&mut output, &mut line).await?;
        exchange.check(id, &[line.trim_ascii_end()])?;
        return rested(job, child, began.elapsed()).await;
    }
    let (program, arguments) = job.command.split_first().ok_or("no command")?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let took = reached(job, &exchange, began).await?;
    rested(job, child, took).await
}

/// Tries until the server gives the right answer.
async fn reached(job: &Start, exchange: &Exchange, began: Instant) -> Outcome<Duration> {
    let address = job.address.clone().unwrap_or_default();
    let server = Server { address, path: job.path.clone(), pid: 0, without: None };
    loop {
        let tried = async {
            let mut client = Client::open(&server, job.era, exchange).await?;
            client.ask(FIRST_ID).await
        };
        match tokio::time::timeout(PATIENCE, tried).await {
            Ok(Ok(())) => return Ok(began.elapsed()),
            Ok(Err(error)) if began.elapsed() > PATIENCE => return Err(error),
            Ok(Err(_)) => tokio::time::sleep(AGAIN).await,
            Err(_) => return Err("no answer".into()),
        }
    }
}

/// Looks at the memory of a server that answered, and ends it.
async fn rested(job: &Start, mut child: Child, took: Duration) -> Outcome<(Duration, u64)> {
    tokio::time::sleep(REST).await;
    let pid = child.id().ok_or("the server ended")?;
    let memory = Tree::new(pid, job.without.as_deref()).resident()?;
    child.kill().await.map_err(|error| error.to_string())?;
    Ok((took, memory))
}

pub(crate) async fn run(job: &Start) -> Outcome<Value> {
    let (mut times, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..job.times {
        let (took, memory) = once(job).await?;
        times.push(took);
        idle.push(memory);
    }
    times.sort_unstable();
    idle.sort_unstable();
    let middle = job.times / 2;
    Ok(json!({
        "times": job.times,
        "p50": micros(times.get(middle).copied().unwrap_or_default()),
        "idle": idle.get(middle),
    }))
}
