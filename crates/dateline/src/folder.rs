//! A folder of the file system that nothing leads out of.

use std::io::Read as _;
use std::path::{Component, Path};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use server::BuildError;

/// The most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// A folder. It is opened once, and every path is resolved below it by the system (`openat2` on Linux), so that no
/// link, whenever it was made, leads out of it.
pub(crate) struct Folder {
    dir: Dir,
    hidden: bool,
}

/// Something in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) folder: bool,
    pub(crate) link: bool,
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file.
    File(Vec<u8>),
    /// A folder: what is in it, in order, and whether there is more than that.
    Folder(Vec<Entry>, bool),
    /// A file of more bytes than are read.
    TooLarge,
    /// Nothing, or nothing that may be read. Which of the two is not said to anybody.
    Nothing,
}

impl Folder {
    /// Opens a folder. With `hidden`, names that begin with a dot are names like others.
    pub(crate) fn open(root: &Path, hidden: bool) -> Result<Folder, BuildError> {
        let opened = Dir::open_ambient_dir(root, ambient_authority());
        let wrong = |e| BuildError::File {
            path: root.to_owned(),
            reason: format!("the folder cannot be opened: {e}"),
        };
        let dir = opened.map_err(wrong)?;
        Ok(Folder { dir, hidden })
    }

    pub(crate) fn with_hidden(self) -> Folder {
        Folder { hidden: true, ..self }
    }

    /// What a path below the folder names, with `/` between names; the folder itself where it is empty. Of a file at
    /// most so many bytes are read, of a folder so many entries.
    pub(crate) fn find(&self, path: &str, bytes: u64, entries: usize) -> Found {
        let Some(real) = self.real(path) else { return Found::Nothing };
        let mut options = OpenOptions::new();
        // A pipe is not waited for. What the path resolved to is no link, unless it has just become one.
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        if self.dir.symlink_metadata(&real).is_ok_and(|what| what.is_dir()) {
            return self.entries(path, &real, entries).unwrap_or(Found::Nothing);
        }
        let read = || {
            let file = self.dir.open_with(&real, &options).ok()?;
            let what = file.metadata().ok()?;
            if !what.is_file() {
                return None;
            }
            if what.len() > bytes {
                return Some(Found::TooLarge);
            }
            // It may grow while it is read.
            let mut content = Vec::new();
            file.take(bytes.saturating_add(1)).read_to_end(&mut content).ok()?;
            Some(if content.len() as u64 > bytes { Found::TooLarge } else { Found::File(content) })
        };
        read().unwrap_or(Found::Nothing)
    }

    /// Where a path leads, links followed, where that may be read.
    fn real(&self, path: &str) -> Option<std::path::PathBuf> {
        if path.is_empty() {
            return Some(".".into());
        }
        if !path.split('/').all(|name| self.shows(name)) {
            return None;
        }
        let real = self.dir.canonicalize(path).ok()?;
        // A link with a name that shows does not show what its target hides.
        let shows = real.components().all(|part| match part {
            Component::Normal(name) => name.to_str().is_some_and(|name| self.shows(name)),
            Component::CurDir => true,
            _ => false,
        });
        shows.then_some(real)
    }

    /// Whether something of this name can be named in a URI, and is not hidden.
    fn shows(&self, name: &str) -> bool {
        let plain = !name.is_empty() && name != "." && name != "..";
        plain && !name.contains(['/', '\\', '\0']) && (self.hidden || !name.starts_with('.'))
    }

    fn entries(&self, path: &str, real: &Path, most: usize) -> std::io::Result<Found> {
        let mut entries = Vec::new();
        let mut seen = 0;
        for entry in self.dir.read_dir(real)? {
            seen += 1;
            if seen > MOST_ENTRIES {
                break;
            }
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let Some(name) = name.to_str().filter(|name| self.shows(name)) else { continue };
            let (mut folder, mut file) = (kind.is_dir(), kind.is_file());
            if kind.is_symlink() {
                let below = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
                let Some(target) = self.real(&below).and_then(|real| self.dir.symlink_metadata(real).ok())
                else {
                    continue;
                };
                (folder, file) = (target.is_dir(), target.is_file());
            }
            if folder || file {
                entries.push(Entry { name: name.to_owned(), folder, link: kind.is_symlink() });
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let more = seen > MOST_ENTRIES || entries.len() > most;
        entries.truncate(most);
        Ok(Found::Folder(entries, more))
    }
}

/// A path as part of a URI: what may not stand in one is percent-encoded.
pub(crate) fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// The MIME type of a file, by its name; and its text, where it is one.
pub(crate) fn kind(name: &str, content: Vec<u8>) -> (String, Result<String, Vec<u8>>) {
    let guessed = mime_guess::from_path(name).first_raw();
    let text = match String::from_utf8(content) {
        Ok(text) if !text.contains('\0') => text,
        Ok(text) => return (guessed.unwrap_or(BYTES).to_owned(), Err(text.into_bytes())),
        Err(bytes) => return (guessed.unwrap_or(BYTES).to_owned(), Err(bytes.into_bytes())),
    };
    // Names that programs share with films: .ts, .mts.
    let other = |mime: &&str| {
        let (kind, of) = mime.split_once('/').unwrap_or_default();
        matches!(kind, "image" | "audio" | "video" | "font") && of != "svg+xml" && !text.is_empty()
    };
    (guessed.filter(|mime| !other(mime)).unwrap_or("text/plain").to_owned(), Ok(text))
}

/// The MIME type of what is not known.
const BYTES: &str = "application/octet-stream";
