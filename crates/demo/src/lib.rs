//! A server that shows every feature, written on the public crate alone.

mod fixtures;
mod play;
mod skills;

use dateline::{Builder, Server, Skills};

/// The demo. With `fixtures` it also carries what the official conformance suite calls.
///
/// # Errors
/// When a definition is wrong, which the tests would have shown.
pub fn server(fixtures: bool) -> Result<Server, String> {
    let skills = if fixtures { Some(skills::ours()?) } else { None };
    server_with(fixtures, skills)
}

/// The same with these skills instead of its own.
///
/// # Errors
/// When a definition is wrong.
pub fn server_with(fixtures: bool, skills: Option<Skills>) -> Result<Server, String> {
    let mut builder = Server::new("dateline-demo", env!("CARGO_PKG_VERSION"))
        .title("dateline demo")
        .instructions("A server to play with: echo and add answer at once, countdown reports progress and can be cancelled.");
    if fixtures {
        builder = fixtures::add(builder);
    }
    if let Some(skills) = skills {
        builder = builder.part(skills);
    }
    play::add(builder).build()
}

/// A step in building the server.
pub(crate) type Step = Builder;
