//! Development only: what a peer can send, tried at random. A target takes bytes, gives them to the code that reads such
//! bytes, and panics where that does not hold what it promises.
//!
//! `tests/main.rs` tries the inputs of `corpus/` and some made from them, in seconds and with any toolchain.
//! `libfuzzer/` lets a fuzzer look for new ones, for as long as one likes:
//!
//! ```text
//! cargo +nightly fuzz run --fuzz-dir crates/fuzz/libfuzzer raw crates/fuzz/corpus/raw -- -max_total_time=600
//! ```
//!
//! An input that a target once failed with stays in the corpus.

mod envelope;
mod events;
mod header;
mod input;
mod raw;
mod sealed;
mod template;

/// A target: its name, which is that of its folder in the corpus, and what tries one input.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 8] = [
    ("raw", raw::parse),
    ("object", raw::rewrite),
    ("envelope", envelope::read),
    ("events", events::read),
    ("template", template::read),
    ("header", header::read),
    ("seal", sealed::open),
    ("cursor", sealed::round_trip),
];

/// A target by its name.
///
/// # Panics
/// When there is none.
pub fn target(name: &str) -> fn(&[u8]) {
    TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or_else(|| panic!("no target {name}"), |(_, run)| *run)
}
