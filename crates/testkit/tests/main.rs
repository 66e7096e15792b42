//! Checks rules of the design that no compiler checks.

mod circles;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spec::{Code, Method, Notice, Question, Revision};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&output.stdout).expect("metadata is JSON")
}

/// Returns the dependencies of a crate without those of its tests.
fn dependencies(metadata: &Value, name: &str) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no crate {name}"));
    let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
    dependencies
        .filter(|d| d["kind"].is_null())
        .map(|d| d["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// Returns the source files of a crate, each with its text.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates").join(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let text = std::fs::read_to_string(&entry).expect("source is text");
                found.push((entry, text));
            }
        }
    }
    assert!(!found.is_empty(), "{name} has no sources");
    found
}

/// Iterates over the lines of code, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(at, line)| (at + 1, line))
}

#[test]
fn the_arrows_between_crates_do_not_turn_round() {
    let metadata = metadata();
    let allowed: &[(&str, &[&str])] = &[
        ("dateline-spec", &[]),
        ("dateline-proto", &["spec"]),
        ("dateline-seal", &["spec", "proto"]),
        ("dateline-server", &["spec", "proto", "seal"]),
        ("dateline-transport", &["spec", "proto"]),
        ("dateline-gateway", &["spec", "proto", "seal", "transport"]),
        ("dateline", &["spec", "proto", "seal", "server", "transport"]),
        // The demo stands for an author: it has nothing that authors do not have.
        ("dateline-demo", &["dateline"]),
        ("dateline-cli", &["dateline", "demo", "gateway", "proto", "spec", "transport"]),
        ("dateline-testkit", &["spec", "testkit-macros"]),
        ("dateline-testkit-macros", &[]),
        ("dateline-fuzz", &["spec", "proto", "seal", "transport"]),
    ];
    let ours = metadata["packages"].as_array().expect("packages").len();
    assert_eq!(ours, allowed.len(), "a crate that this test does not know");
    for (name, may) in allowed {
        let may: BTreeSet<String> = may
            .iter()
            .map(|m| if *m == "dateline" { (*m).to_owned() } else { format!("dateline-{m}") })
            .collect();
        let has: BTreeSet<String> =
            dependencies(&metadata, name).into_iter().filter(|d| d.starts_with("dateline")).collect();
        assert!(has.is_subset(&may), "{name} depends on {:?}", has.difference(&may));
    }
}

#[test]
fn spec_has_no_dependencies_and_proto_no_io_clock_randomness_or_runtime() {
    let metadata = metadata();
    assert_eq!(dependencies(&metadata, "dateline-spec"), BTreeSet::new());
    let known = [
        "base64",
        "bytes",
        "bytestring",
        "dateline-spec",
        "form_urlencoded",
        "futures-util",
        "hex",
        "http",
        "memchr",
        "serde",
        "serde_json",
        "thiserror",
    ];
    assert_eq!(dependencies(&metadata, "dateline-proto"), known.map(str::to_owned).into());
    for name in ["spec", "proto"] {
        for (path, text) in sources(name) {
            for (at, line) in code(&text) {
                for banned in
                    ["std::fs", "std::net", "std::io", "std::process", "Instant", "SystemTime", "std::thread"]
                {
                    assert!(!line.contains(banned), "{}:{at}: {banned}", path.display());
                }
            }
        }
    }
}

#[test]
fn names_of_the_protocol_stand_in_spec_alone() {
    let mut names: Vec<String> = Revision::ALL.iter().map(|r| r.as_str().to_owned()).collect();
    names.extend(Method::rows().iter().map(|row| format!("\"{}\"", row.wire)));
    names.extend(Notice::rows().iter().map(|row| format!("\"{}\"", row.wire)));
    names.extend(Question::ALL.iter().map(|q| format!("\"{}\"", q.wire())));
    names.extend(Code::all().map(|code| code.number().to_string()));
    names.extend(spec::skills::METHODS.iter().map(|method| format!("\"{method}\"")));
    names.extend([spec::skills::SCHEME, spec::skills::MANIFEST].map(|name| format!("\"{name}\"")));
    names.push("io.modelcontextprotocol/".to_owned());
    for name in ["proto", "seal", "server", "transport", "gateway", "dateline", "demo", "cli"] {
        for (path, text) in sources(name) {
            for (at, line) in code(&text) {
                for name in &names {
                    assert!(!line.contains(name), "{}:{at} names {name}; read it from spec", path.display());
                }
            }
        }
    }
}

#[test]
fn what_a_peer_sent_is_never_read_by_guessing() {
    for name in ["proto", "seal", "server", "transport", "gateway"] {
        for (path, text) in sources(name) {
            for (at, line) in code(&text) {
                let guesses = line.contains("serde(untagged") || line.contains("serde(flatten");
                assert!(!guesses, "{}:{at}", path.display());
            }
        }
    }
}
