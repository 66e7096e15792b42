//! The matrix of obligations: the tests of each row, and for each revision and transport whether a test covered it.
//!
//! The name of a test begins with the ids of its rows, `life_01_…` or `life_01_life_02_…`. [`crate::Client`] notes which
//! revision and transport the test covered while it ran, so the matrix is right only after a run in which all tests
//! passed. Where no client can note it, the test calls [`crate::covers`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::coverage::{Between, Note, folder};
use crate::{LEGACY, MODERN};

/// The parts of the work that are done. A row that is due in one of them must have a test in every cell.
pub const DONE: [&str; 4] = ["main", "gateway", "legacy", "modern"];

/// The groups of rows: the beginning of their ids, and a title.
const GROUPS: [(&str, &str); 25] = [
    ("life", "Opening and ending a session"),
    ("meta", "Requests that stand alone"),
    ("era", "Which era a message belongs to"),
    ("stdio", "Standard streams"),
    ("sse", "HTTP+SSE"),
    ("http", "Streamable HTTP"),
    ("auth", "Authorization"),
    ("msg", "Messages"),
    ("can", "Cancellation"),
    ("prog", "Progress"),
    ("log", "Logging"),
    ("page", "Pages"),
    ("comp", "Completion"),
    ("ping", "Ping"),
    ("mrtr", "Questions and rounds"),
    ("task", "Tasks of 2025-11-25"),
    ("taskx", "Tasks as an extension"),
    ("cache", "Caching"),
    ("sub", "Subscriptions"),
    ("tool", "Tools"),
    ("res", "Resources"),
    ("prompt", "Prompts"),
    ("hand", "Handles"),
    ("prox", "The gateway"),
    ("ext", "Extensions"),
];

/// Every revision, the oldest first.
pub const REVISIONS: [&str; 5] = [LEGACY[0], LEGACY[1], LEGACY[2], LEGACY[3], MODERN];
/// The place in which a test of a row about the gateway is noted.
const GATEWAY: &str = "gateway";

/// An obligation: a row of `docs/obligations.tsv`.
#[derive(Clone, Debug)]
pub struct Row {
    /// The id, such as `life-01`.
    pub id: String,
    /// MUST, SHOULD or MAY; or *own*, where the project itself decided it.
    pub level: String,
    /// The revisions in which it holds, in words.
    pub revisions: String,
    /// The transports on which it holds, in words.
    pub place: String,
    /// What it requires.
    pub obligation: String,
    /// The part of the work in which it is due.
    pub due: String,
}

/// A test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Test {
    /// The folder of its crate.
    pub package: String,
    /// Its file, from the root of the workspace.
    pub file: String,
    /// Its function.
    pub name: String,
}

/// How a cell is covered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Covered {
    Seen,
    Said,
}

/// All that the document shows.
pub struct Matrix {
    rows: Vec<Row>,
    /// The tests of each row.
    tests: BTreeMap<String, BTreeSet<Test>>,
    /// How each cell is covered, by row, revision and place.
    covered: BTreeMap<(String, String, String), Covered>,
    /// Tests whose names begin with an id that no row has.
    strays: Vec<Test>,
}

/// Reads the rows of a table whose first line is a heading. Tabs separate the columns.
///
/// # Errors
/// Where a row is wrong; the error names it.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().skip(1) {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [id, level, revisions, place, obligation, due] =
            <[String; 6]>::try_from(columns).map_err(|_| format!("{line:?} is no row of six columns"))?;
        if rows.iter().any(|row| row.id == id) {
            return Err(format!("{id} stands twice"));
        }
        let row = Row { id, level, revisions, place, obligation, due };
        applies(&row)?;
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the revisions to which a row applies, the oldest first, each with its transports.
///
/// # Errors
/// Where a word of the row is not known; the error names it.
pub fn applies(row: &Row) -> Result<Vec<(&'static str, Vec<&'static str>)>, String> {
    let at = |date: &str| {
        let found = REVISIONS.iter().position(|known| *known == date);
        found.ok_or_else(|| format!("{}: no revision {date:?}", row.id))
    };
    let (words, legacy_only) = match row.revisions.strip_suffix(" legacy") {
        Some(words) => (words, true),
        None => (row.revisions.as_str(), false),
    };
    let revisions: Vec<&'static str> = match words {
        "all" => REVISIONS.to_vec(),
        "legacy" => LEGACY.to_vec(),
        _ => {
            if let Some(date) = words.strip_prefix("not ") {
                let but = at(date)?;
                REVISIONS.iter().enumerate().filter(|(i, _)| *i != but).map(|(_, r)| *r).collect()
            } else if let Some(date) = words.strip_suffix('+') {
                REVISIONS[at(date)?..].to_vec()
            } else if let Some((first, last)) = words.split_once("..") {
                REVISIONS[at(first)?..=at(last)?].to_vec()
            } else {
                vec![REVISIONS[at(words)?]]
            }
        }
    };
    let places = |revision: &str| -> Result<Vec<&'static str>, String> {
        Ok(match row.place.as_str() {
            "any" if revision == MODERN => vec!["stdio", "http"],
            "any" => vec!["stdio", "http", "sse"],
            "stdio" => vec!["stdio"],
            "http" => vec!["http"],
            "http,stdio" => vec!["stdio", "http"],
            "sse" => vec!["sse"],
            "proxy" => vec![GATEWAY],
            other => return Err(format!("{}: no place {other:?}", row.id)),
        })
    };
    let revisions = revisions.into_iter().filter(|revision| !legacy_only || *revision != MODERN);
    revisions.map(|revision| Ok((revision, places(revision)?))).collect()
}

/// Returns the ids at the beginning of a test's name, in the form of the rows.
pub fn ids(name: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let is_id = |pair: &&[&str]| {
        let [group, number] = pair[..] else { return false };
        let letters = !group.is_empty() && group.chars().all(|c| c.is_ascii_lowercase());
        letters && number.len() == 2 && number.chars().all(|c| c.is_ascii_digit())
    };
    words.chunks(2).take_while(is_id).map(|pair| pair.join("-")).collect()
}

/// Finds the tests in a source file.
pub fn tests(package: &str, file: &str, source: &str) -> Vec<Test> {
    let mut found = Vec::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in source.lines().map(str::trim) {
        is_test |= ["#[test]", "#[testkit::test]", "#[tokio::test"]
            .iter()
            .any(|attribute| line.starts_with(attribute));
        is_ignored |= line.starts_with("#[ignore");
        let Some((before, after)) = line.split_once("fn ") else { continue };
        if !before.is_empty() && !before.ends_with(' ') {
            continue;
        }
        if is_test && !is_ignored {
            let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push(Test { package: package.to_owned(), file: file.to_owned(), name });
        }
        (is_test, is_ignored) = (false, false);
    }
    found
}

/// Finds the tests in all crates of a workspace.
///
/// # Errors
/// Where a folder or a file cannot be read; the error names it.
pub fn all_tests(root: &Path) -> Result<Vec<Test>, String> {
    let mut found = Vec::new();
    let mut left = vec![root.join("crates")];
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source =
                    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                let parts: Vec<_> = path.strip_prefix(root).unwrap_or(&path).iter().collect();
                let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
                found.extend(tests(&parts[1], &parts.join("/"), &source));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the notes of the last run of the tests.
pub fn notes() -> BTreeSet<Note> {
    // target/debug/conformance
    let entries = folder(2).and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let files = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    files.flat_map(|text| text.lines().filter_map(Note::read).collect::<Vec<_>>()).collect()
}

impl Matrix {
    /// Puts rows, tests and notes together.
    pub fn new(rows: Vec<Row>, all: &[Test], notes: &BTreeSet<Note>) -> Matrix {
        let mut matrix =
            Matrix { rows, tests: BTreeMap::new(), covered: BTreeMap::new(), strays: Vec::new() };
        for test in all {
            for id in ids(&test.name) {
                if !matrix.rows.iter().any(|row| row.id == id) {
                    matrix.strays.push(test.clone());
                    continue;
                }
                matrix.tests.entry(id.clone()).or_default().insert(test.clone());
                for note in notes.iter().filter(|n| n.package == test.package && n.test == test.name) {
                    let place = if note.between == Between::Gateway { GATEWAY } else { &note.wire };
                    let key = (id.clone(), note.revision.clone(), place.to_owned());
                    let how = if note.said { Covered::Said } else { Covered::Seen };
                    let known = matrix.covered.entry(key).or_insert(how);
                    *known = how.min(*known);
                }
            }
        }
        matrix
    }

    fn covered(&self, row: &Row, revision: &str, place: &str) -> Option<Covered> {
        self.covered.get(&(row.id.clone(), revision.to_owned(), place.to_owned())).copied()
    }

    fn cells(row: &Row) -> impl Iterator<Item = (&'static str, &'static str)> {
        let applies = applies(row).unwrap_or_default();
        applies
            .into_iter()
            .flat_map(|(revision, places)| places.into_iter().map(move |place| (revision, place)))
    }

    fn missing_of(&self, row: &Row) -> Vec<(&'static str, &'static str)> {
        let is_missing = |(revision, place): &(&str, &str)| self.covered(row, revision, place).is_none();
        Matrix::cells(row).filter(is_missing).collect()
    }

    fn done(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| is_done(row))
    }

    /// Returns the cells without a test, for rows that are due. There is one line for each row.
    pub fn missing(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in self.done() {
            let missing = self.missing_of(row);
            if missing.is_empty() {
                continue;
            }
            // Revisions that lack the same places share one part of the line.
            let mut by_places: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
            for revision in REVISIONS {
                let places: Vec<&str> =
                    missing.iter().filter(|(r, _)| *r == revision).map(|(_, place)| *place).collect();
                match by_places.iter_mut().find(|(known, _)| *known == places) {
                    _ if places.is_empty() => {}
                    Some((_, revisions)) => revisions.push(revision),
                    None => by_places.push((places, vec![revision])),
                }
            }
            let parts: Vec<String> = by_places
                .iter()
                .map(|(places, revisions)| format!("{}: {}", revisions.join(" "), places.join(" ")))
                .collect();
            let no_test = if self.tests.contains_key(&row.id) { "" } else { "  (no test at all)" };
            lines.push(format!("{:9} {}{no_test}", row.id, parts.join("; ")));
        }
        lines
    }

    /// Returns what is wrong with the tests.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self
            .strays
            .iter()
            .map(|test| format!("{}: {} names an obligation that there is not", test.file, test.name))
            .collect();
        let known: BTreeSet<&str> = GROUPS.iter().map(|(group, _)| *group).collect();
        faults.extend(
            self.rows
                .iter()
                .filter(|row| !known.contains(group(row)))
                .map(|row| format!("{} belongs to no known group", row.id)),
        );
        faults.extend(self.missing().into_iter().map(|line| format!("no test covers {line}")));
        faults
    }

    /// Writes the document.
    pub fn document(&self) -> String {
        let mut text = String::from(INTRODUCTION);
        text += &self.summary();
        for (prefix, title) in GROUPS {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| group(row) == prefix).collect();
            if !rows.is_empty() {
                let _ = write!(text, "\n## {title}\n\n| id | level | obligation |");
                let _ = writeln!(text, " {} | tests |", REVISIONS.join(" | "));
                text += "|---|---|---|---|---|---|---|---|---|\n";
                rows.into_iter().for_each(|row| text += &self.line(row));
            }
        }
        text
    }

    fn summary(&self) -> String {
        let mut text = String::from(
            "\n## Summary\n\n| level | rows | done | cells of those | covered |\n|---|---|---|---|---|\n",
        );
        let mut sum = [0; 4];
        for level in ["MUST", "SHOULD", "MAY", "own"] {
            let of_level = |row: &&Row| row.level == level;
            let done: Vec<&Row> = self.done().filter(of_level).collect();
            let cells: usize = done.iter().map(|row| Matrix::cells(row).count()).sum();
            let missing: usize = done.iter().map(|row| self.missing_of(row).len()).sum();
            let counts = [self.rows.iter().filter(of_level).count(), done.len(), cells, cells - missing];
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            let _ = writeln!(text, "| {level} | {} |", counts.map(|count| count.to_string()).join(" | "));
        }
        let _ = writeln!(text, "| all | {} |", sum.map(|count| count.to_string()).join(" | "));
        let planned: BTreeMap<&str, usize> =
            self.rows.iter().filter(|row| !is_done(row)).fold(BTreeMap::new(), |mut counts, row| {
                *counts.entry(row.due.as_str()).or_default() += 1;
                counts
            });
        let planned: Vec<_> = planned.iter().map(|(due, count)| format!("{due} ({count})")).collect();
        let tests: BTreeSet<&Test> = self.tests.values().flatten().collect();
        let _ = writeln!(
            text,
            "\nTests that name an obligation: {}. Planned: {}.",
            tests.len(),
            planned.join(", ")
        );
        text
    }

    fn line(&self, row: &Row) -> String {
        let applies = applies(row).unwrap_or_default();
        let cell = |revision: &&str| -> String {
            let places = applies.iter().find(|(r, _)| r == revision).map(|(_, places)| &places[..]);
            let mut words: Vec<String> = Vec::new();
            for place in places.unwrap_or_default() {
                match self.covered(row, revision, place) {
                    Some(Covered::Seen) => words.push((*place).to_owned()),
                    Some(Covered::Said) => words.push(format!("{place}\\*")),
                    None if is_done(row) => words.push(format!("**no {place}**")),
                    None => {}
                }
            }
            let is_beside = row.place != "proxy" && self.covered(row, revision, GATEWAY).is_some();
            match places {
                None => "·".to_owned(),
                Some(_) if is_beside => [&words[..], &[format!("({GATEWAY})")]].concat().join(" "),
                Some(_) => words.join(" "),
            }
        };
        let cells: Vec<String> = REVISIONS.iter().map(cell).collect();
        let tests = self.tests.get(&row.id).into_iter().flatten();
        let mut tests: Vec<String> =
            tests.map(|test| format!("[`{}`](../{})", test.name, test.file)).collect();
        if !is_done(row) {
            tests.insert(0, format!("planned: {}", row.due));
        }
        let obligation = escaped(&row.obligation);
        let cells = cells.join(" | ");
        format!("| {} | {} | {obligation} | {cells} | {} |\n", row.id, row.level, tests.join("<br>"))
    }
}

const INTRODUCTION: &str = "# Conformance

Every obligation of the specification that dateline holds itself to, with the tests that hold it there. The rows are those
of [obligations.tsv](obligations.tsv). This file is written by `cargo run -p dateline-testkit --bin conformance` once
`cargo test --workspace` has passed, and `./test` fails where it is stale or a cell lacks a test.

A cell names the transports of its revision on which a test was seen to speak: `stdio`; `http`, which is Streamable HTTP;
`sse`, which is HTTP+SSE; `gateway`, which is any of them through `dateline serve` or `dateline stdio`, in brackets where the
obligation is not about it. What is noted is what the test's client spoke, not what the test claims; only where no client
can show it, since the test writes bytes itself or no revision holds yet, the test says it: `*`. `·` is where the obligation
does not apply. *own* is what the specification leaves open and dateline promises.
";

fn is_done(row: &Row) -> bool {
    DONE.contains(&row.due.as_str())
}

fn group(row: &Row) -> &str {
    row.id.split('-').next().unwrap_or_default()
}

/// Text in which nothing is markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if "\\`*_{}[]<>#|".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
