//! The admin API: served by the running dateline, asked by `dateline status`, `logs`, `restart` and others.

pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod token;

use std::path::{Path, PathBuf};

use crate::config;
use crate::options::AdminOptions;

/// The path of the admin socket; `None` when no folder for it is known.
fn socket_path(admin: &AdminOptions) -> Option<PathBuf> {
    admin.admin_socket.clone().or_else(default_socket)
}

/// The path of the admin socket when no other one is named.
fn default_socket() -> Option<PathBuf> {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => Some(PathBuf::from(folder).join("dateline/admin.sock")),
        None => config::state_file("admin.sock"),
    }
}
