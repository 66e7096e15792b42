//! Files that are replaced as a whole: whoever reads one sees the old or the new, also after a loss of power.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// How many links are followed to a file; the system itself stops at as many.
const LINKS: usize = 40;
/// What those of a file's group may do with it.
const GROUP: u32 = 0o070;

/// Writes a file in place of what is there. A link stays, and what it leads to is written; a file keeps its mode and,
/// as far as we may, its owner and group. A new one is for this user alone, as are folders that are made for it.
///
/// # Errors
/// When it cannot be written, is no file, or is one that its owner made read-only.
pub fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = behind_links(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text)?;
    match fs::metadata(&path) {
        Ok(old) if !old.is_file() => return Err(io::Error::other("it is no file")),
        Ok(old) if old.permissions().readonly() => {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
        }
        Ok(old) => keep(&old, new.as_file())?,
        // Made for this user alone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    // The folder has the name, and is written by itself.
    File::open(folder)?.sync_all()
}

/// Gives a new file what the old one had.
fn keep(old: &fs::Metadata, new: &File) -> io::Result<()> {
    let ours = new.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if old.uid() != ours.uid() {
        // Only the superuser may; for anybody else the file is their own from here on.
        let _ = fchown(new, Some(old.uid()), None);
    }
    if old.gid() != ours.gid() && fchown(new, None, Some(old.gid())).is_err() {
        // What was the old group's is not another one's.
        mode &= !GROUP;
    }
    new.set_permissions(Permissions::from_mode(mode))
}

/// What a path leads to, whether it is there or not.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(to) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("its links lead in a circle"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn mode_and_link_stay_and_nothing_is_left_beside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for kept in [0o600, 0o640, 0o644, 0o604] {
            fs::write(at("file"), "old").unwrap();
            fs::set_permissions(at("file"), Permissions::from_mode(kept)).unwrap();
            replace_file(&at("file"), b"new").unwrap();
            assert_eq!((mode(&at("file")), fs::read(at("file")).unwrap()), (kept, b"new".to_vec()));
        }
        fs::create_dir(at("real")).unwrap();
        symlink("real/target", at("second")).unwrap();
        symlink("second", at("link")).unwrap();
        // First one that leads nowhere yet, then one that leads to a file.
        for text in ["1", "2"] {
            replace_file(&at("link"), text.as_bytes()).unwrap();
            assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(at("real/target")).unwrap(), text);
            assert_eq!(mode(&at("real/target")), 0o600, "a new one is for this user alone");
        }
        replace_file(&at("made/for/it"), b"x").unwrap();
        assert_eq!((mode(&at("made/for")), mode(&at("made/for/it"))), (0o700, 0o600));
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["file", "link", "made", "real", "second"]);
    }

    #[test]
    fn what_is_not_to_be_written_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("fixed"), "old").unwrap();
        fs::set_permissions(at("fixed"), Permissions::from_mode(0o444)).unwrap();
        assert!(replace_file(&at("fixed"), b"new").unwrap_err().to_string().contains("read-only"));
        assert_eq!(fs::read_to_string(at("fixed")).unwrap(), "old");
        fs::create_dir(at("folder")).unwrap();
        assert!(replace_file(&at("folder"), b"new").unwrap_err().to_string().contains("no file"));
        symlink("round", at("round")).unwrap();
        assert!(replace_file(&at("round"), b"new").unwrap_err().to_string().contains("circle"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
