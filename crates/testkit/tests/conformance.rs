//! Tests of the matrix of obligations: how rows and names are read, and which cells count as covered.

use std::collections::BTreeSet;
use std::path::Path;

use testkit::matrix::{self, DONE, Matrix, REVISIONS, Row, Test};
use testkit::{Between, LEGACY, MODERN, Note};

fn row(id: &str, revisions: &str, place: &str, due: &str) -> Row {
    let own = str::to_owned;
    let obligation = own("a_b | c*");
    Row {
        id: own(id),
        level: own("MUST"),
        revisions: own(revisions),
        place: own(place),
        obligation,
        due: own(due),
    }
}

fn test(name: &str) -> Test {
    let own = str::to_owned;
    Test { package: own("cli"), file: own("crates/cli/tests/life.rs"), name: own(name) }
}

fn note(test: &str, revision: &str, wire: &str) -> Note {
    let own = str::to_owned;
    let (package, test, wire) = (own("cli"), own(test), own(wire));
    Note { package, test, revision: own(revision), wire, between: Between::Nothing, said: false }
}

fn matrix(rows: &[Row], tests: &[Test], notes: &[Note]) -> Matrix {
    Matrix::new(rows.to_vec(), tests, &notes.iter().cloned().collect())
}

#[test]
fn a_row_applies_to_the_revisions_and_transports_that_it_names() {
    let revisions = |words: &str| -> Vec<&str> {
        matrix::applies(&row("x-01", words, "http", "main")).unwrap().iter().map(|(r, _)| *r).collect()
    };
    assert_eq!(revisions("all"), REVISIONS);
    assert_eq!(revisions("legacy"), LEGACY);
    assert_eq!(revisions("2025-06-18"), [LEGACY[2]]);
    assert_eq!(revisions("2025-06-18+"), [LEGACY[2], LEGACY[3], MODERN]);
    assert_eq!(revisions("2025-06-18+ legacy"), [LEGACY[2], LEGACY[3]]);
    assert_eq!(revisions("2025-06-18..2025-11-25"), [LEGACY[2], LEGACY[3]]);
    assert_eq!(revisions("not 2025-03-26"), [LEGACY[0], LEGACY[2], LEGACY[3], MODERN]);
    let places = |place: &str| -> Vec<Vec<&str>> {
        let applies = matrix::applies(&row("x-01", "2025-11-25+", place, "main")).unwrap();
        applies.into_iter().map(|(_, places)| places).collect()
    };
    assert_eq!(places("any"), [vec!["stdio", "http", "sse"], vec!["stdio", "http"]]);
    assert_eq!(places("http,stdio"), [["stdio", "http"]; 2]);
    assert_eq!(places("proxy"), [["gateway"]; 2]);
    assert!(matrix::applies(&row("x-01", "2025-11-26", "any", "main")).is_err());
    assert!(matrix::applies(&row("x-01", "all", "carrier pigeon", "main")).is_err());
    assert!(matrix::rows("heading\nx-01\tMUST\tall\tany\n").is_err(), "columns are missing");
    let twice = "x-01\tMUST\tall\tany\tsays\tmain\n";
    assert!(matrix::rows(&format!("heading\n{twice}{twice}")).is_err());
}

#[test]
fn ids_stand_at_the_start_of_a_name() {
    assert_eq!(matrix::ids("life_01_it_is"), ["life-01"]);
    assert_eq!(matrix::ids("life_01_taskx_02_it_is_so"), ["life-01", "taskx-02"]);
    assert_eq!(matrix::ids("it_is_life_01"), [""; 0]);
    assert_eq!(matrix::ids("schema_2020_12"), [""; 0]);
    assert_eq!(matrix::ids("two_32601_codes"), [""; 0]);
}

#[test]
fn tests_are_found_by_their_attributes() {
    let source = "
#[tokio::test(flavor = \"multi_thread\")]
#[allow(x)]
async fn one() {}
fn helper() {}
#[test]
#[ignore = \"slow\"]
fn never() {}
    #[test]
    pub fn two() { let f: fn(u8) = g; }
#[testkit::test]
async fn three() {}
";
    let names: Vec<String> = matrix::tests("cli", "x.rs", source).into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["one", "two", "three"]);
    let all = matrix::all_tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let this = Test {
        package: "testkit".to_owned(),
        file: "crates/testkit/tests/conformance.rs".to_owned(),
        name: "tests_are_found_by_their_attributes".to_owned(),
    };
    assert!(all.contains(&this), "{all:?}");
    assert!(all.len() > 250, "{}", all.len());
}

#[test]
fn a_cell_is_covered_where_a_test_of_the_row_was_seen() {
    let rows = [row("life-01", "2025-11-25+", "any", DONE[0]), row("life-02", "all", "any", "later")];
    let tests = [test("life_01_it_is"), test("other")];
    let mut notes: Vec<Note> = [(LEGACY[3], "stdio"), (LEGACY[3], "http"), (MODERN, "stdio")]
        .map(|(revision, wire)| note("life_01_it_is", revision, wire))
        .into();
    notes.push(note("other", MODERN, "http"));
    let mut elsewhere = note("life_01_it_is", MODERN, "http");
    elsewhere.package = "proto".to_owned();
    notes.push(elsewhere);
    let mut beside = note("life_01_it_is", MODERN, "http");
    beside.between = Between::Gateway;
    notes.push(beside);
    let missing = matrix(&rows, &tests, &notes).missing();
    assert_eq!(missing, [format!("life-01   {}: sse; {MODERN}: http", LEGACY[3])]);
    notes.push(note("life_01_it_is", LEGACY[3], "sse"));
    let mut said = note("life_01_it_is", MODERN, "http");
    said.said = true;
    notes.push(said);
    let whole = matrix(&rows, &tests, &notes);
    assert_eq!(whole.faults(), [""; 0]);
    let document = whole.document();
    assert!(document.contains("| · | · | · | stdio http sse | stdio http\\* (gateway) | [`life_01_it_is`]"));
    assert!(document.contains("a\\_b \\| c\\*"), "text is no markup");
    assert!(document.contains("| planned: later |"));
    let none = matrix(&rows, &tests[1..], &notes);
    assert!(none.missing()[0].ends_with("(no test at all)"), "{:?}", none.missing());
    assert!(none.document().contains("**no stdio** **no http** **no sse**"));
}

#[test]
fn through_the_gateway_counts_for_rows_about_it() {
    let rows = [row("prox-01", "2026-07-28", "proxy", DONE[1])];
    let tests = [test("prox_01_it_does")];
    let mut seen = note("prox_01_it_does", MODERN, "http");
    assert_eq!(matrix(&rows, &tests, std::slice::from_ref(&seen)).missing().len(), 1);
    seen.between = Between::Gateway;
    assert_eq!(matrix(&rows, &tests, &[seen]).missing(), [""; 0]);
}

#[test]
fn a_name_with_an_id_that_no_row_has_is_a_fault() {
    let rows = [row("life-01", "all", "any", "later"), row("else-01", "all", "any", "later")];
    let faults = matrix(&rows, &[test("life_77_it_is"), test("life_01_it_is")], &[]).faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("life_77_it_is"), "{faults:?}");
    assert!(faults[1].contains("else-01"), "a row of a group without a title is in no table: {faults:?}");
}

#[test]
fn the_rows_of_the_project_can_be_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/obligations.tsv");
    let rows = matrix::rows(&std::fs::read_to_string(file).unwrap()).unwrap();
    let dues: BTreeSet<&str> = rows.iter().map(|row| row.due.as_str()).collect();
    assert!(DONE.iter().all(|due| dues.contains(due)), "{dues:?}");
}
