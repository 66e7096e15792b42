//! Servers that are programs: started by the client, and spoken to over their standard streams.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

mod guard;
mod input;
mod output;
mod process;

use std::sync::Arc;
use std::time::Duration;

use proto::CallKey;
use spec::Era;
use tokio::process::ChildStdout;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::output::Output;
use super::connection::Connection;
use super::outbox::{self, outbox};
use super::pipe::{self, MessageSource, Messages, OpenError, Opening, Pipe, negotiate};
use super::settings::{EraHint, Settings};
use crate::TransportError;
use crate::line::Line;

pub use guard::{Guard, watch_over};
pub(super) use input::Input;
pub(super) use process::Process;
pub use process::Program;

/// How long a process may take to end after its output has ended. It is longer than the process's last lines on
/// standard error are waited for.
const END: Duration = Duration::from_secs(1);

/// A connection that is ready, the messages that it queues, and the way to its server.
type Opened = (Arc<Connection>, mpsc::UnboundedReceiver<outbox::Queued>, Pipe);

/// Starts a program and finds out which era it has.
pub(super) async fn start(program: &Program, settings: Settings) -> Result<Opened, TransportError> {
    let open = |opening| open(program, &settings, opening);
    let opening = match settings.era {
        EraHint::Fixed(Era::Modern) => return open(Opening::Discover).await.map_err(error_of),
        EraHint::Fixed(Era::Legacy) => return open(Opening::Initialize).await.map_err(error_of),
        EraHint::Seen(Era::Modern) => Opening::Either(settings.connect / 2),
        EraHint::Seen(Era::Legacy) => match open(Opening::Initialize).await {
            Ok(opened) => return Ok(opened),
            Err(_) => Opening::Either(settings.probe),
        },
        EraHint::Unknown => Opening::Either(settings.probe),
    };
    match open(opening).await {
        // Some legacy servers end when the first message is not `initialize`.
        Err(OpenError::Failed(TransportError::Closed(_))) => open(Opening::Initialize).await,
        // The server was slow to start. A second process, which never gets `initialize`, has no session.
        Err(OpenError::BothEras) => {
            settings.warn(
                "dateline: it was slow to answer server/discover; it is started again as the modern server it is",
            );
            open(Opening::Discover).await
        }
        outcome => outcome,
    }
    .map_err(error_of)
}

fn error_of(error: OpenError) -> TransportError {
    match error {
        OpenError::Failed(error) => error,
        OpenError::BothEras => TransportError::Protocol("the server speaks both ways at once".into()),
    }
}

/// Starts a process and opens a connection to it.
async fn open(program: &Program, settings: &Settings, opening: Opening) -> Result<Opened, OpenError> {
    let gone = CancellationToken::new();
    // Where nobody waits for the connection any more, the process is ended.
    let abandoned = gone.clone().drop_guard();
    let (streams, process) = process::start(program, &gone, settings)?;
    let input = Input::new(streams.stdin).map_err(|error| process::not_started(program, error))?;
    tokio::spawn(input.clone().write_queued(gone.clone()));
    let messages = Messages::Written(input);
    let mut source = ProcessOutput {
        output: Output::new(streams.stdout, settings.limits.message),
        process: process.clone(),
    };
    let negotiating = async {
        tokio::select! {
            biased;
            negotiated = negotiate(&mut source, &messages, settings, opening) => negotiated,
            () = pipe::after(process.end()) => Err(TransportError::Closed(String::new()).into()),
        }
    };
    let negotiated = match tokio::time::timeout(settings.connect, negotiating).await {
        Ok(Ok(negotiated)) => negotiated,
        failed => {
            gone.cancel();
            process.ended().await;
            return Err(match failed {
                Ok(Err(OpenError::Failed(TransportError::Closed(_)))) => {
                    TransportError::Closed(process.end_in_words()).into()
                }
                Ok(Err(OpenError::Failed(TransportError::Protocol(why)))) => {
                    TransportError::Protocol(format!("{why}{}", process.stderr_in_words())).into()
                }
                Ok(Err(error)) => error,
                _ => {
                    let (limit, stderr) = (settings.connect.as_secs(), process.stderr_in_words());
                    TransportError::Protocol(format!("no answer within {limit} s{stderr}")).into()
                }
            });
        }
    };
    abandoned.disarm();
    let end = process.end();
    let (outbox, queued) = outbox();
    let connection = Connection::new(negotiated, false, settings.clone(), outbox, gone.clone());
    let connection = Arc::new(connection);
    let ended = format!("the server {} ended", program.name);
    tokio::spawn(pipe::read(source, Arc::downgrade(&connection), gone, end, ended));
    Ok((connection, queued, Pipe { messages, process: Some(process) }))
}

/// The messages that a process writes to its standard output.
struct ProcessOutput {
    output: Output<ChildStdout>,
    process: Process,
}

impl MessageSource for ProcessOutput {
    async fn next(&mut self) -> std::io::Result<Option<Line>> {
        self.output.next().await
    }

    async fn why_ended(&mut self) -> String {
        // What the process wrote last to standard error may still be on its way.
        let _ = tokio::time::timeout(END, self.process.ended()).await;
        self.process.end_in_words()
    }

    fn refused_call(&self) -> Option<CallKey> {
        // A pipe does not tell whether a message was read.
        None
    }
}
