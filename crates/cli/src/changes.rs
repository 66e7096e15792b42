//! Watches a file, and says when it should be read again.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dateline::CancellationToken;
use notify::Watcher as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// How long a change of a file settles before it is read: an editor may write a file in several steps.
const SETTLES: Duration = Duration::from_millis(200);
/// The link that Kubernetes replaces to change all files of a folder at once.
const ALL_AT_ONCE: &str = "..data";
/// How many links are followed to the file; the system itself stops at as many.
const LINKS: usize = 40;

/// The changes of a file: that it was written, appeared or went, or SIGHUP, which asks to read it in any case.
pub(crate) struct Changes {
    path: PathBuf,
    hangup: Signal,
    written: mpsc::Receiver<()>,
    /// The names of files and folders whose changes concern the file.
    names: Arc<Mutex<BTreeSet<OsString>>>,
    /// It watches until it is dropped.
    watcher: Option<notify::RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
}

impl Changes {
    /// Watches a file. It may be a link, and it may be missing together with its folders. If it cannot be watched, `what` it
    /// is stands in a warning, and only SIGHUP remains.
    pub(crate) fn of(path: &Path, what: &str) -> Option<Changes> {
        let hangup = signal(SignalKind::hangup()).ok()?;
        let (told, written) = mpsc::channel(1);
        let names: Arc<Mutex<BTreeSet<OsString>>> = Arc::default();
        let wanted = Arc::clone(&names);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let ours = |event: notify::Event| {
                let wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
                let named = |path: &PathBuf| path.file_name().is_some_and(|name| wanted.contains(name));
                !event.kind.is_access() && event.paths.iter().any(named)
            };
            if event.is_ok_and(ours) {
                // One that waits already stands for this one too.
                let _ = told.try_send(());
            }
        });
        let folders = BTreeSet::new();
        let mut changes = Changes { path: path.to_owned(), hangup, written, names, watcher: None, folders };
        let aimed = watcher.and_then(|watcher| {
            changes.watcher = Some(watcher);
            changes.aim()
        });
        if let Err(error) = aimed {
            tracing::warn!(%error, "{what} cannot be watched; SIGHUP reads it again");
        }
        Some(changes)
    }

    /// Waits for the next change; returns false after `shutdown`.
    pub(crate) async fn next(&mut self, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = shutdown.cancelled() => return false,
            _ = self.hangup.recv() => {}
            Some(()) = self.written.recv() => tokio::time::sleep(SETTLES).await,
        }
        while self.written.try_recv().is_ok() {}
        // Folders came or went, or a link leads elsewhere. Aimed before the file is read, so that nothing is missed.
        if let Err(error) = self.aim() {
            tracing::warn!(%error, "{} cannot be watched any more; SIGHUP reads it again", self.path.display());
        }
        true
    }

    /// Watches the folder of the file and of each link to it, since editors put a new file in the place of the old one;
    /// of a folder that is missing, the nearest one above it that is there.
    fn aim(&mut self) -> notify::Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let mut names = BTreeSet::from([OsString::from(ALL_AT_ONCE)]);
        let mut folders = BTreeSet::new();
        let mut path = self.path.clone();
        for _ in 0..LINKS {
            let mut at = path.as_path();
            let folder = loop {
                names.extend(at.file_name().map(OsStr::to_owned));
                match at.parent() {
                    Some(folder) if folder.as_os_str().is_empty() => break Path::new("."),
                    Some(folder) if folder.is_dir() => break folder,
                    Some(folder) => at = folder,
                    None => break Path::new("/"),
                }
            };
            // That it goes concerns the file too.
            names.extend(folder.file_name().map(OsStr::to_owned));
            folders.insert(folder.to_owned());
            match std::fs::read_link(&path) {
                Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
                Err(_) => break,
            }
        }
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        for gone in self.folders.difference(&folders) {
            // One that was removed is not watched any more in any case.
            let _ = watcher.unwatch(gone);
        }
        let watched = folders.iter().try_for_each(|folder| {
            // One that was removed and made again has to be watched again; watching twice is watching once.
            watcher.watch(folder, notify::RecursiveMode::NonRecursive)
        });
        self.folders = folders;
        watched
    }
}
