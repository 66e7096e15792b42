//! Calls over the standard streams of a process: some are in flight at a time.

use std::collections::HashMap;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

use crate::Outcome;
use crate::clock::Clock;
use crate::job::{Era, Pipe};
use crate::message::Exchange;
use crate::process::Tree;

/// Starts a server that reads and writes lines.
pub(crate) fn spawn(command: &[String]) -> Outcome<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let (input, output) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
    Ok((child, input, BufReader::with_capacity(64 * 1024, output)))
}

#[derive(Deserialize)]
struct Named {
    id: u32,
}

/// Reads a message; gives the id that it names.
pub(crate) async fn answer(output: &mut BufReader<ChildStdout>, line: &mut Vec<u8>) -> Outcome<u32> {
    line.clear();
    match output.read_until(b'\n', line).await {
        Ok(0) => Err("the server ended".into()),
        Ok(_) => {
            let named: Result<Named, _> = serde_json::from_slice(line);
            named.map(|named| named.id).map_err(|_| {
                format!("not an answer: {}", String::from_utf8_lossy(&line[..line.len().min(400)]))
            })
        }
        Err(error) => Err(format!("cannot read: {error}")),
    }
}

pub(crate) async fn run(job: &Pipe) -> Outcome<Value> {
    let exchange = Exchange::new(&job.ask, Era::Modern);
    let (child, input, output) = spawn(&job.command)?;
    let tree = Tree::new(child.id().ok_or("the server ended")?, None);
    let clock = Rc::new(Clock::new());
    let run = async {
        let mut both = JoinSet::new();
        // Beside the reader, so that neither side waits for the other with full pipes.
        let (lines, waiting) = mpsc::channel(job.in_flight);
        both.spawn_local(write(Rc::clone(&clock), input, waiting));
        let (calls, in_flight) = (Rc::clone(&clock), job.in_flight);
        both.spawn_local(async move {
            if let Err(error) = read(&calls, exchange, output, lines, in_flight).await {
                calls.fail(error);
            }
        });
        let measured = clock.measure(&job.window, &tree).await?;
        Clock::wait(&mut both).await?;
        clock.checked()?;
        Ok(measured)
    };
    LocalSet::new().run_until(run).await
}

async fn write(clock: Rc<Clock>, mut input: ChildStdin, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = waiting.recv().await {
        if let Err(error) = input.write_all(&line).await {
            return clock.fail(format!("cannot write: {error}"));
        }
    }
}

async fn read(
    clock: &Clock,
    mut exchange: Exchange,
    mut output: BufReader<ChildStdout>,
    lines: mpsc::Sender<Vec<u8>>,
    in_flight: usize,
) -> Outcome<()> {
    let mut asked = HashMap::new();
    let mut line = Vec::new();
    while !clock.is_over() || !asked.is_empty() {
        while asked.len() < in_flight && !clock.is_over() {
            let id = clock.id();
            let mut message = exchange.message.with(id).to_vec();
            message.push(b'\n');
            asked.insert(id, Instant::now());
            lines.send(message).await.map_err(|_| "the server takes no more")?;
        }
        let id = answer(&mut output, &mut line).await?;
        let asked = asked.remove(&id).ok_or_else(|| format!("nobody asked {id}"))?;
        exchange.check(id, &[line.trim_ascii_end()])?;
        clock.answered(asked);
    }
    Ok(())
}
