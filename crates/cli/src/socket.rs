//! Unix sockets, and their files.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A Unix socket that listens.
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    pub(crate) file: SocketFile,
}

/// The file of a socket. It is removed when this is dropped.
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: Option<u64>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have replaced the file by its own already.
        if inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The inode of the file at a path.
fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|file| file.ino())
}

impl Socket {
    /// Listens at a path, for this user alone. `Ok(None)` while another process listens there.
    ///
    /// # Errors
    /// When there is something else at the path, or it cannot be written to.
    pub(crate) async fn open(path: &Path) -> io::Result<Option<Socket>> {
        use std::os::unix::fs::FileTypeExt as _;
        if UnixStream::connect(path).await.is_ok() {
            return Ok(None);
        }
        // A process that was killed leaves its socket; any other file stays.
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            let _ = std::fs::remove_file(path);
        }
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Some(Socket { listener, file: SocketFile { path: path.to_owned(), inode: inode(path) } }))
    }
}
