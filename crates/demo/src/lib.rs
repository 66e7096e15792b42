//! A server that shows every feature, written on the public crate alone.

mod fixtures;
mod play;
mod skills;

use dateline::{Builder, Server, Skills};

/// The demo, to be built. With skills it also carries what the official conformance suite calls.
pub fn builder(fixtures: Option<Skills>) -> Builder {
    let mut builder = Server::new("dateline-demo", env!("CARGO_PKG_VERSION"))
        .title("dateline demo")
        .instructions("A server to play with: echo and add answer at once, countdown reports progress and can be cancelled.");
    if let Some(skills) = fixtures {
        builder = fixtures::add(builder).part(skills);
    }
    play::add(builder)
}

/// The demo's own skills.
///
/// # Errors
/// When one is wrong, which the tests would have shown.
pub fn skills() -> Result<Skills, String> {
    skills::ours()
}
