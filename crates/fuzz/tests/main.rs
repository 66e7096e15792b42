//! A short run of all targets: the corpus, and inputs made from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

/// Inputs that are made for each target, beside its corpus.
const MADE: u32 = 2000;

/// What the formats consist of, to be put anywhere.
const TOKENS: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u0061",
    b"\\ud800",
    b":",
    b",",
    b"null",
    b"1e400",
    b"-0",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"%2F",
    b"{a*}",
    b"{?b,c:3}",
    b"=?base64?",
    b"data: ",
    b"id",
];

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = folder().join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// An input of the corpus with some edits.
fn made(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<Index>(), any::<Index>(), 0..5u8, select(TOKENS.to_vec()), any::<u8>());
    (select(corpus), vec(edit, 0..8)).prop_map(|(mut input, edits)| {
        for (from, to, kind, token, byte) in edits {
            let (a, b) = (from.index(input.len() + 1), to.index(input.len() + 1));
            let range = a.min(b)..a.max(b);
            match kind {
                0 => drop(input.splice(a..a, token.iter().copied())),
                1 => drop(input.drain(range)),
                2 if input.len() < 1 << 12 => input.extend_from_within(range),
                3 => input.truncate(a.max(1)),
                _ => drop(input.splice(a..(a + 1).min(input.len()), [byte])),
            }
        }
        input
    })
}

fn tried(name: &str) {
    let (run, corpus) = (fuzz::target(name), corpus(name));
    assert!(!corpus.is_empty(), "{name} has no corpus");
    corpus.iter().for_each(|input| run(input));
    let config = ProptestConfig { cases: MADE, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&made(corpus), |input| {
        run(&input);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{name}: {error}");
    }
}

macro_rules! short_run {
    ($($test:ident: $target:literal;)*) => {
        const TRIED: &[&str] = &[$($target),*];
        $(
            #[test]
            fn $test() {
                tried($target);
            }
        )*
    };
}

short_run! {
    json_is_kept_as_it_was_sent_and_opened_as_serde_json_sees_it: "raw";
    objects_are_written_as_they_are_after_changes: "object";
    messages_say_the_same_when_they_are_written_again: "envelope";
    events_do_not_depend_on_how_a_stream_is_cut: "events";
    templates_find_values_of_their_own_variables_only: "template";
    any_text_travels_in_a_header_and_what_mirrors_a_body_is_let_in: "header";
    what_was_not_sealed_here_does_not_open: "seal";
    what_was_sealed_opens_as_it_was_and_not_otherwise: "cursor";
}

#[test]
fn every_target_has_a_corpus_a_short_run_and_a_program() {
    let targets: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets, TRIED.iter().map(|name| (*name).to_owned()).collect());
    let folders = fs::read_dir(folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(targets, folders.collect());
    let manifest = fs::read_to_string(folder().join("../libfuzzer/Cargo.toml")).unwrap();
    let programs = manifest.split("[[bin]]\nname = \"").skip(1).filter_map(|rest| rest.split('"').next());
    assert_eq!(targets, programs.map(str::to_owned).collect());
}
