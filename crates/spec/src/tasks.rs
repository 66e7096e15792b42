//! Names of the tasks extension.
//!
//! <https://modelcontextprotocol.io/seps/2663-tasks-extension>

/// The extension's identifier.
pub const ID: &str = "io.modelcontextprotocol/tasks";
