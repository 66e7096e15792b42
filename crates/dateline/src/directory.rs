//! A folder of files, served as resources.

use std::path::Path;
use std::sync::Arc;

use proto::Rejection;
use server::{
    BuildError, Builder, CompletionArgument, Contents, Definitions, Error, Resource, ResourceContents,
    ResourceTemplate, Result, Variables,
};

use crate::folder::{Folder, Found, encoded, kind};

/// The MIME type of a list of URIs (RFC 2483).
const URI_LIST: &str = "text/uri-list";
/// The template's variable.
const PATH: &str = "path";

/// The files below a folder, read when they are asked for.
///
/// It becomes a resource template, whose one variable is completed as a shell completes paths, and one resource: the
/// folder itself, as a list of the URIs in it. Every folder below can be read so, with or without a `/` at its end; the
/// URIs of folders in such a list have one. The files are not in `resources/list`: they come and go, and what was true
/// when the server started would soon be none.
///
/// A file is text where it is UTF-8, else bytes; its MIME type goes by its name. Nothing outside of the folder can be
/// read, whatever the path says and wherever links lead to: neither by `..` in any encoding, nor by a link that is
/// changed while it is followed. What cannot be read, is hidden or is no file is answered as what is not there.
///
/// ```no_run
/// # use dateline::{Directory, Server};
/// let server = Server::new("files", "1.0.0").define(Directory::new("./docs", "file:///docs")?).build()?;
/// # Ok::<(), dateline::BuildError>(())
/// ```
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources#file>
pub struct Directory {
    folder: Folder,
    uri: String,
    name: String,
    description: Option<String>,
    bytes: u64,
    entries: usize,
}

impl Directory {
    /// The files below a folder, at URIs that begin with `uri`. The folder is opened here, and stays the same one where
    /// another takes its name.
    ///
    /// # Errors
    /// When the folder cannot be opened, or `uri` has braces.
    pub fn new(root: impl AsRef<Path>, uri: &str) -> Result<Directory, BuildError> {
        if uri.contains(['{', '}', '?', '#']) {
            return Err(BuildError::Definition {
                kind: "directory",
                name: uri.to_owned(),
                reason: "its URI must be plain, without a query, a fragment or braces".into(),
            });
        }
        Ok(Directory {
            folder: Folder::open(root.as_ref(), false)?,
            uri: uri.strip_suffix('/').unwrap_or(uri).to_owned(),
            name: "Files".to_owned(),
            description: None,
            bytes: 4 * 1024 * 1024,
            entries: 1000,
        })
    }

    /// Sets the name; `Files` by default.
    #[must_use]
    pub fn name(self, name: &str) -> Directory {
        Directory { name: name.to_owned(), ..self }
    }

    /// Sets a description.
    #[must_use]
    pub fn description(self, description: &str) -> Directory {
        Directory { description: Some(description.to_owned()), ..self }
    }

    /// Adds the files and folders whose names begin with a dot. By default they are left out.
    #[must_use]
    pub fn hidden(self) -> Directory {
        Directory { folder: self.folder.with_hidden(), ..self }
    }

    /// Sets how many bytes a file has at most; 4 MiB by default. A client that reads a larger one gets an error that
    /// says so.
    #[must_use]
    pub fn max_bytes(self, bytes: u64) -> Directory {
        Directory { bytes, ..self }
    }

    /// Sets how many entries of a folder are listed at most; 1000 by default. The list says where some are left out.
    #[must_use]
    pub fn max_entries(self, entries: usize) -> Directory {
        Directory { entries, ..self }
    }
}

impl Definitions for Directory {
    fn add_to(self, server: Builder) -> Builder {
        let (root, template) = (format!("{}/", self.uri), format!("{}/{{+{PATH}}}", self.uri));
        let (name, description) = (self.name.clone(), self.description.clone());
        let directory = Arc::new(self);
        let (top, below, paths) = (Arc::clone(&directory), Arc::clone(&directory), directory);
        let mut index = Resource::new(&root, &name, move || Arc::clone(&top).read(Some(String::new())))
            .mime_type(URI_LIST);
        let mut files = ResourceTemplate::new(&template, &name, move |vars: Variables| {
            Arc::clone(&below).read(asked(&vars))
        })
        .complete(PATH, move |typed: CompletionArgument| Arc::clone(&paths).complete(typed));
        if let Some(description) = &description {
            index = index.description(description);
            files = files.description(description);
        }
        server.resource(index).template(files)
    }
}

/// The path that a URI names. A slash that is encoded would be part of a name, and no name has one.
fn asked(vars: &Variables) -> Option<String> {
    (!vars.uri.to_ascii_lowercase().contains("%2f")).then(|| vars.get(PATH).to_owned())
}

impl Directory {
    async fn read(self: Arc<Directory>, path: Option<String>) -> Result<Contents> {
        let Some(path) = path else { return Ok(Contents::NotFound) };
        // The file system is waited for elsewhere.
        tokio::task::spawn_blocking(move || match path.strip_suffix('/') {
            Some("") => Ok(Contents::NotFound),
            Some(folder) => self.contents(folder, true),
            None => self.contents(&path, false),
        })
        .await
        .map_err(Error::new)?
    }

    fn contents(&self, path: &str, only_folders: bool) -> Result<Contents> {
        let uri = format!("{}/{}", self.uri, encoded(path));
        let contents = match self.folder.find(path, self.bytes, self.entries) {
            Found::Nothing => return Ok(Contents::NotFound),
            Found::File(_) | Found::TooLarge if only_folders => return Ok(Contents::NotFound),
            Found::TooLarge => {
                let why = format!("{uri} has more than the {} bytes that are read of a file", self.bytes);
                return Err(Error::reject(Rejection::Internal(why)));
            }
            Found::File(content) => match kind(path, content) {
                (mime, Ok(text)) => ResourceContents::text(&uri, &mime, text),
                (mime, Err(bytes)) => ResourceContents::blob(&uri, &mime, bytes),
            },
            Found::Folder(entries, more) => {
                let uri = if path.is_empty() { uri } else { format!("{uri}/") };
                let mut list = String::new();
                for entry in entries {
                    let slash = if entry.folder { "/" } else { "" };
                    list.push_str(&format!("{uri}{}{slash}\r\n", encoded(&entry.name)));
                }
                if more {
                    list.push_str("# There is more, which is left out here.\r\n");
                }
                ResourceContents::text(&uri, URI_LIST, list)
            }
        };
        Ok(Contents::Resources(vec![contents]))
    }

    /// The paths that begin with what was typed, one folder at a time.
    async fn complete(self: Arc<Directory>, typed: CompletionArgument) -> Vec<String> {
        let paths = move || {
            let (folder, begins) = typed.value().rsplit_once('/').unwrap_or(("", typed.value()));
            if typed.value().starts_with('/') {
                return Vec::new();
            }
            let Found::Folder(entries, _) = self.folder.find(folder, 0, usize::MAX) else {
                return Vec::new();
            };
            let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            entries
                .into_iter()
                .filter(|entry| entry.name.starts_with(begins))
                .map(|entry| format!("{before}{}{}", entry.name, if entry.folder { "/" } else { "" }))
                .collect()
        };
        tokio::task::spawn_blocking(paths).await.unwrap_or_default()
    }
}
