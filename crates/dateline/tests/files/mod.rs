//! Files and skills of a folder, as clients meet them.

mod directory;
mod skills;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use testkit::{Client, LEGACY, LEGACY_WIRES, WIRES};

use crate::example;

/// A folder of a test's own; it is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("dateline-files-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Scratch {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) -> &Scratch {
        std::os::unix::fs::symlink(target, self.0.join(path)).unwrap();
        self
    }

    fn at(&self, path: &str) -> String {
        self.0.join(path).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Clients of the example with a folder: of every revision, on every transport.
async fn clients(folder: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for wire in WIRES {
        clients.push(Client::start(wire, &example("files"), &[folder]).await);
    }
    for wire in LEGACY_WIRES {
        for revision in LEGACY {
            let mut client = Client::start(wire, &example("files"), &[folder]).await;
            client.handshake(revision, json!({})).await;
            clients.push(client);
        }
    }
    clients
}
