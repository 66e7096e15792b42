//! Rows as a table for people, and as JSON.

use serde_json::{Map, Value, json};
use spec::{Revision, Setting};

use super::rows::{Cell, RevisionRow, RowKind, in_order};

/// The width of a table, in characters.
const WIDTH: usize = 100;
/// The indentation of names, in characters.
const INDENT: usize = 2;

impl Cell {
    fn text(self) -> String {
        match self {
            Cell::Absent => "-".to_owned(),
            Cell::Present | Cell::Behaves(Setting::Flag(true)) => "yes".to_owned(),
            Cell::Behaves(Setting::Flag(false)) => "no".to_owned(),
            Cell::As(word) | Cell::Behaves(Setting::Word(word)) => word.to_owned(),
            Cell::Behaves(Setting::Code(code)) => code.number().to_string(),
        }
    }

    fn json(self) -> Value {
        match self {
            Cell::Absent => Value::Null,
            Cell::Present => json!(true),
            Cell::Behaves(Setting::Flag(flag)) => json!(flag),
            Cell::As(word) | Cell::Behaves(Setting::Word(word)) => json!(word),
            Cell::Behaves(Setting::Code(code)) => json!(code.number()),
        }
    }
}

impl RevisionRow {
    /// The cell of one revision.
    pub(super) fn cell(&self, revision: Revision) -> Cell {
        let at = in_order().iter().position(|other| *other == revision);
        at.map_or(Cell::Absent, |at| self.cells[at])
    }
}

/// How a table is shown.
pub(super) struct TableOptions<'a> {
    /// Its columns.
    pub(super) revisions: &'a [Revision],
    /// Whether a mark shows how each row changed from the first column to the last.
    pub(super) marked: bool,
    /// Whether the explanation of each row is shown below it. That of behaviour always is.
    pub(super) explained: bool,
}

pub(super) fn table(entries: &[&RevisionRow], look: &TableOptions<'_>) -> String {
    let name_width = entries.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let cell_width = Revision::LATEST_LEGACY.as_str().len();
    let needed = |gap: usize| INDENT + name_width + 2 + look.revisions.len() * (cell_width + gap) - gap;
    let gap = if needed(2) <= WIDTH { 2 } else { 1 };
    let line = |mark: &str, name: &str, cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| format!("{cell:cell_width$}")).collect();
        let width = INDENT + name_width - mark.len();
        let line = format!("{mark}{name:width$}  {}", cells.join(&" ".repeat(gap)));
        line.trim_end().to_owned() + "\n"
    };
    let dates: Vec<_> = look.revisions.iter().map(|revision| revision.as_str().to_owned()).collect();
    let mut shown = String::new();
    let mut last: Option<&RevisionRow> = None;
    for row in entries {
        if last.is_none_or(|last| last.kind != row.kind) {
            shown += if last.is_some() { "\n" } else { "" };
            shown += &line("", row.kind.word(), &dates);
            last = None;
        }
        if let Some(group) = &row.group
            && last.is_none_or(|last| last.group.as_ref() != Some(group))
        {
            shown += &format!(" {group}\n");
        }
        let cells: Vec<_> = look.revisions.iter().map(|revision| row.cell(*revision).text()).collect();
        shown += &line(if look.marked { mark(row, look.revisions) } else { "  " }, &row.name, &cells);
        if (look.explained || row.kind == RowKind::Behaviour) && !row.about.is_empty() {
            shown += &wrapped(&row.about, 4);
        }
        last = Some(row);
    }
    shown
}

/// The mark for how a row changed from the first revision to the last.
fn mark(row: &RevisionRow, revisions: &[Revision]) -> &'static str {
    let absent = |revision: Option<&Revision>| revision.is_none_or(|r| row.cell(*r) == Cell::Absent);
    match (absent(revisions.first()), absent(revisions.last())) {
        (true, false) => "+ ",
        (false, true) => "- ",
        _ => "~ ",
    }
}

/// Breaks text into lines of [`WIDTH`].
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{:indent$}{line}\n", "");
            line.clear();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    lines + &format!("{:indent$}{line}\n", "")
}

pub(super) fn json(entries: &[&RevisionRow], revisions: &[Revision]) -> Value {
    let row = |row: &&RevisionRow| {
        let cells: Map<String, Value> = revisions
            .iter()
            .map(|revision| (revision.as_str().to_owned(), row.cell(*revision).json()))
            .collect();
        json!({
            "kind": row.kind.word(),
            "group": row.group,
            "name": row.name,
            "about": (!row.about.is_empty()).then_some(&row.about),
            "in": cells,
        })
    };
    json!({
        "revisions": revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>(),
        "entries": entries.iter().map(row).collect::<Vec<_>>(),
    })
}
