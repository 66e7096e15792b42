//! Names and limits of the skills extension.
//!
//! <https://modelcontextprotocol.io/seps/2640-skills-extension#specification>

/// The extension's identifier.
pub const ID: &str = "io.modelcontextprotocol/skills";
/// The setting by which a server declares that clients can list its folders.
pub const DIRECTORY_READ_SETTING: &str = "directoryRead";

/// The method that lists skills.
pub const LIST: &str = "skills/list";
/// The method that returns one skill.
pub const GET: &str = "skills/get";
/// The method that lists the content of a folder.
pub const DIRECTORY_READ: &str = "resources/directory/read";
/// Every method that the extension adds.
pub const METHODS: [&str; 3] = [LIST, GET, DIRECTORY_READ];

/// The beginning of the URI of every skill.
pub const SCHEME: &str = "skill://";
/// The name of the file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";
/// The MIME type of a [`MANIFEST`].
pub const MANIFEST_TYPE: &str = "text/markdown";
/// The MIME type of a folder.
pub const DIRECTORY_TYPE: &str = "inode/directory";
/// The beginning of the names in a skill's `metadata` that are reserved for extensions of the protocol.
pub const RESERVED_METADATA: &str = "io.modelcontextprotocol/";

/// How many files a skill may have so that every client accepts it.
pub const MOST_FILES: usize = 512;
/// How many bytes the files of a skill may have together so that every client accepts it: 16 MiB.
pub const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// How many characters the name of a skill may have.
pub const LONGEST_NAME: usize = 64;
