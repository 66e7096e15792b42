//! Names and limits of the skills extension.
//!
//! <https://modelcontextprotocol.io/seps/2640-skills-extension#specification>

/// The extension's identifier.
pub const ID: &str = "io.modelcontextprotocol/skills";
/// The setting that says that folders can be read.
pub const DIRECTORY_READ_SETTING: &str = "directoryRead";

/// Lists skills.
pub const LIST: &str = "skills/list";
/// Gives one skill.
pub const GET: &str = "skills/get";
/// Lists what is in a folder.
pub const DIRECTORY_READ: &str = "resources/directory/read";
/// The methods that the extension adds.
pub const METHODS: [&str; 3] = [LIST, GET, DIRECTORY_READ];

/// What the URIs of skills begin with.
pub const SCHEME: &str = "skill://";
/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";
/// The MIME type of that file.
pub const MANIFEST_TYPE: &str = "text/markdown";
/// The MIME type of a folder.
pub const DIRECTORY_TYPE: &str = "inode/directory";
/// What begins the names in a skill's `metadata` that only extensions of the protocol give a meaning to.
pub const RESERVED_METADATA: &str = "io.modelcontextprotocol/";

/// The most files that every client takes of a skill.
pub const MOST_FILES: usize = 512;
/// The most bytes that every client takes of a skill.
pub const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// The most characters of a skill's name.
pub const LONGEST_NAME: usize = 64;
