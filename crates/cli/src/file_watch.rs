//! Watches a file for changes.

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

/// Waits for the changes of a file: it was written, made or removed. SIGHUP counts as a change too.
pub(crate) struct FileWatch {
    path: PathBuf,
    hangup: Signal,
    written: mpsc::Receiver<()>,
    /// The names of files and folders whose changes concern the file.
    names: Arc<Mutex<BTreeSet<OsString>>>,
    /// Watches until it is dropped.
    watcher: Option<notify::RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
}

impl FileWatch {
    /// Watches a file. It may be a link, and it may be missing together with its folders. If it cannot be watched, a warning
    /// says so with the words `what`, and only SIGHUP counts.
    pub(crate) fn of(path: &Path, what: &str) -> Option<FileWatch> {
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
                // When the queue is full, a change waits that has not been reported yet: that is enough.
                let _ = told.try_send(());
            }
        });
        let folders = BTreeSet::new();
        let mut changes = FileWatch { path: path.to_owned(), hangup, written, names, watcher: None, folders };
        let aimed = watcher.and_then(|watcher| {
            changes.watcher = Some(watcher);
            changes.watch_folders()
        });
        if let Err(error) = aimed {
            tracing::warn!(%error, "changes of {what} cannot be noticed; send SIGHUP to have it read again");
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
        // Folders or links may have changed. This is done before the file is read, so that no later change is missed.
        if let Err(error) = self.watch_folders() {
            tracing::warn!(%error, "changes of {} cannot be noticed; send SIGHUP to have it read again", self.path.display());
        }
        true
    }

    /// Watches the folder of the file and of each link to it, since editors put a new file in the place of the old one;
    /// of a folder that is missing, the nearest one above it that is there.
    fn watch_folders(&mut self) -> notify::Result<()> {
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
            // When the folder is removed, the file is too.
            names.extend(folder.file_name().map(OsStr::to_owned));
            folders.insert(folder.to_owned());
            match std::fs::read_link(&path) {
                Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
                Err(_) => break,
            }
        }
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        for gone in self.folders.difference(&folders) {
            // A folder that was removed is unwatched by itself.
            let _ = watcher.unwatch(gone);
        }
        let watched = folders.iter().try_for_each(|folder| {
            // A folder that was removed and made again has to be watched again. For the others this changes nothing.
            watcher.watch(folder, notify::RecursiveMode::NonRecursive)
        });
        self.folders = folders;
        watched
    }
}
