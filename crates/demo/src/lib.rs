//! A server that shows every feature, written on the public crate alone.

mod fixtures;
mod play;

use dateline::{Builder, Server};

/// The demo, to be built. With `fixtures` it also carries what the official conformance suite calls.
pub fn builder(fixtures: bool) -> Builder {
    let mut builder = Server::new("dateline-demo", env!("CARGO_PKG_VERSION"))
        .title("dateline demo")
        .instructions("A server to play with: echo and add answer at once, countdown reports progress and can be cancelled.");
    if fixtures {
        builder = fixtures::add(builder);
    }
    play::add(builder)
}

/// A step in building the server.
pub(crate) type Step = Builder;
