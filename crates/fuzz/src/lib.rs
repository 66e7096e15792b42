//! Development only: tests with random input from a peer. A target takes bytes and gives them to the code that reads such
//! bytes. It panics where that code breaks a promise.
//!
//! `tests/main.rs` runs the inputs of `corpus/` and some made from them. It takes seconds and works with any toolchain. With
//! `libfuzzer/` a fuzzer searches for new inputs, for as long as you like:
//!
//! ```text
//! cargo +nightly fuzz run --fuzz-dir crates/fuzz/libfuzzer raw crates/fuzz/corpus/raw -- -max_total_time=600
//! ```
//!
//! An input with which a target failed stays in the corpus.

mod envelope;
mod events;
mod header;
mod input;
mod raw;
mod sealed;
mod template;

/// A target: its name, which is also the name of its folder in the corpus, and the function that runs one input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
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

/// Returns the function of the target with this name.
///
/// # Panics
/// Where there is no such target.
pub fn target(name: &str) -> fn(&[u8]) {
    TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or_else(|| panic!("no target {name}"), |(_, run)| *run)
}
