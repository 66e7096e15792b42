//! Lets one process at a time change a configuration.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How long to wait for another process. It reads and writes one small file, which takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock on the folder of a file, until it is dropped.
///
/// The folder is locked since the file itself cannot be: each change puts a new file in the place of the old one. A lock
/// on the folder needs no file of its own, and the system removes it when the process ends.
pub(super) struct FileLock {
    _folder: File,
}

impl FileLock {
    /// Locks a file for this process, and makes its folder if there is none.
    ///
    /// # Errors
    /// When the folder cannot be made or opened, or another process keeps the lock for [`PATIENCE`].
    pub(super) fn wait_for(path: &Path) -> io::Result<FileLock> {
        // Two links to one file share its lock. A file that is missing has no other name yet.
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = File::open(folder)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another process is changing it; try again when that has ended",
                    ));
                }
                // Some network file systems cannot lock a folder. A change without a lock is better than none.
                Ok(()) | Err(_) => return Ok(FileLock { _folder: folder }),
            }
        }
    }
}
