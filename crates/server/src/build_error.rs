//! What can be wrong with the definition of a server.

use std::path::{Path, PathBuf};

/// Why a server, or a part of one, cannot be built: what is wrong, and where.
///
/// It is a [`std::error::Error`], so `?` turns it into `Box<dyn Error>`, `anyhow::Error` and, in a handler, into
/// [`crate::Error`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A definition breaks a rule of the specification or of this library.
    #[error("{kind} {name:?}: {reason}")]
    Definition {
        /// What is defined: `tool`, `prompt`, `resource`, `resource template`, `extension` or `directory`.
        kind: &'static str,
        /// Its name or URI; empty where it has none.
        name: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// Two definitions of a kind have the same name.
    #[error("there are two {kind}s {name:?}")]
    Duplicate {
        /// What is defined.
        kind: &'static str,
        /// The name or URI that both have.
        name: String,
    },
    /// A file or folder cannot be served.
    #[error("{}: {reason}", path.display())]
    File {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system has no randomness for the key that seals request states and cursors.
    #[error("no key could be made: {reason}")]
    Key {
        /// What the operating system says.
        reason: String,
    },
}

impl BuildError {
    /// An error in a definition.
    pub(crate) fn definition(kind: &'static str, name: &str, reason: impl ToString) -> BuildError {
        BuildError::Definition { kind, name: name.to_owned(), reason: reason.to_string() }
    }

    /// Gives the error with its file's path below a folder. Errors that name no file stay as they are.
    #[must_use]
    pub fn below(self, folder: &Path) -> BuildError {
        match self {
            BuildError::File { path, reason } => BuildError::File { path: folder.join(path), reason },
            other => other,
        }
    }
}
