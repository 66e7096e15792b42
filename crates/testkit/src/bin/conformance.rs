//! Writes docs/conformance.md from the obligations, the tests that name them, and the notes on what those tests covered in
//! their last run.
//!
//!     conformance             writes the file
//!     conformance --check     fails where the file is out of date or a test is missing
//!     conformance --missing   lists the cells that have no test

use std::path::Path;
use std::process::ExitCode;

use testkit::matrix::{self, Matrix};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            faults.iter().for_each(|fault| eprintln!("conformance: {fault}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<(), Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let one = |fault: String| vec![fault];
    let read = |name: &str| std::fs::read_to_string(root.join(name)).map_err(|e| one(format!("{name}: {e}")));
    let rows = matrix::rows(&read("docs/obligations.tsv")?).map_err(one)?;
    let tests = matrix::all_tests(&root).map_err(one)?;
    let notes = matrix::notes();
    if notes.is_empty() {
        return Err(one("no test has noted what it covers; run `cargo test --workspace` first".to_owned()));
    }
    let matrix = Matrix::new(rows, &tests, &notes);
    let file = "docs/conformance.md";
    match args {
        [] => std::fs::write(root.join(file), matrix.document()).map_err(|e| one(format!("{file}: {e}"))),
        ["--missing"] => {
            matrix.missing().iter().for_each(|line| println!("{line}"));
            Ok(())
        }
        ["--check"] => {
            let mut faults = matrix.faults();
            if read(file).unwrap_or_default() != matrix.document() {
                faults.push(format!(
                    "{file} is stale; run `cargo run -p dateline-testkit --bin conformance` and look at what changed"
                ));
            }
            if faults.is_empty() { Ok(()) } else { Err(faults) }
        }
        _ => Err(one("usage: conformance [--check | --missing]".to_owned())),
    }
}
