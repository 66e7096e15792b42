//! Tells when a file should be read again.

use std::ffi::OsStr;
use std::path::Path;

use dateline::CancellationToken;
use notify::Watcher as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::admin::SETTLES;

/// What a folder of Kubernetes renames to put new files in the place of all old ones.
const ALL_AT_ONCE: &str = "..data";

/// The changes of a file: that it was written, or SIGHUP, which asks to read it in any case.
pub(crate) struct Changes {
    hangup: Signal,
    written: mpsc::Receiver<()>,
    /// Ends with the value.
    _watching: Option<notify::RecommendedWatcher>,
}

impl Changes {
    /// Watches a file. `what` it is stands in a warning where that cannot be done, and only SIGHUP is left.
    pub(crate) fn of(path: &Path, what: &str) -> Option<Changes> {
        let hangup = signal(SignalKind::hangup()).ok()?;
        let (told, written) = mpsc::channel(1);
        let file = path.file_name().map(OsStr::to_owned);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let ours = |event: notify::Event| {
                let named =
                    |name: Option<&OsStr>| name == file.as_deref() || name == Some(OsStr::new(ALL_AT_ONCE));
                !event.kind.is_access() && event.paths.iter().any(|path| named(path.file_name()))
            };
            if event.is_ok_and(ours) {
                // One that waits already stands for this one too.
                let _ = told.try_send(());
            }
        });
        // The folder is watched, since editors put a new file in the place of the old one.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let watching = watcher.and_then(|mut watcher| {
            watcher.watch(folder, notify::RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        if let Err(error) = &watching {
            tracing::warn!(%error, "{what} cannot be watched; SIGHUP reads it again");
        }
        Some(Changes { hangup, written, _watching: watching.ok() })
    }

    /// Waits for the next one; false where there is none until `shutdown`.
    pub(crate) async fn next(&mut self, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = shutdown.cancelled() => return false,
            _ = self.hangup.recv() => {}
            Some(()) = self.written.recv() => tokio::time::sleep(SETTLES).await,
        }
        while self.written.try_recv().is_ok() {}
        true
    }
}
