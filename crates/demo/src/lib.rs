//! A server that shows every feature, written on the public crate alone.

mod fixtures;
mod play;
mod skills;

use dateline::{BuildError, Builder, Server, Skills};

/// The demo, as `set` has it. With skills it also carries what the official conformance suite calls.
///
/// # Errors
/// When what `set` sets is wrong.
pub fn server(fixtures: Option<Skills>, set: impl FnOnce(Builder) -> Builder) -> Result<Server, BuildError> {
    let builder = Server::new("dateline-demo", env!("CARGO_PKG_VERSION"))
        .title("dateline demo")
        .instructions("A server to play with: echo and add answer at once, countdown reports progress and can be cancelled.");
    let Some(skills) = fixtures else { return set(play::add(builder)).build() };
    let server = set(play::add(fixtures::add(builder).define(skills))).build()?;
    fixtures::changing(&server)?;
    Ok(server)
}

/// The demo's own skills.
///
/// # Errors
/// When one is wrong, which the tests would have shown.
pub fn skills() -> Result<Skills, BuildError> {
    skills::built_in()
}
