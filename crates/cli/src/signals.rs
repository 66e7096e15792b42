//! Signals that end the program.

use dateline::CancellationToken;

use crate::exit::Failure;

/// A token that the first SIGINT or SIGTERM cancels. The second one ends the process at once, with exit code 1.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e| Failure::Other(format!("signals cannot be caught: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let token = CancellationToken::new();
    let shutdown = token.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(1);
            }
            shutdown.cancel();
        }
    });
    Ok(token)
}
