//! Entries as a table for people, and as JSON.

use serde_json::{Map, Value, json};
use spec::{Revision, Setting};

use super::survey::{Cell, Entry, Kind, in_order};

/// The columns of a terminal that a table keeps within.
const WIDTH: usize = 100;
/// How far names stand in.
const INDENT: usize = 2;

impl Cell {
    fn text(self) -> String {
        match self {
            Cell::Absent => "-".to_owned(),
            Cell::Present | Cell::Behaves(Setting::Flag(true)) => "yes".to_owned(),
            Cell::Behaves(Setting::Flag(false)) => "no".to_owned(),
            Cell::Way(word) | Cell::Behaves(Setting::Word(word)) => word.to_owned(),
            Cell::Behaves(Setting::Code(code)) => code.number().to_string(),
        }
    }

    fn json(self) -> Value {
        match self {
            Cell::Absent => Value::Null,
            Cell::Present => json!(true),
            Cell::Behaves(Setting::Flag(flag)) => json!(flag),
            Cell::Way(word) | Cell::Behaves(Setting::Word(word)) => json!(word),
            Cell::Behaves(Setting::Code(code)) => json!(code.number()),
        }
    }
}

impl Entry {
    /// What it is in one revision.
    pub(super) fn cell(&self, revision: Revision) -> Cell {
        let at = in_order().iter().position(|other| *other == revision);
        at.map_or(Cell::Absent, |at| self.cells[at])
    }
}

/// How a table is shown.
pub(super) struct Look<'a> {
    /// Its columns.
    pub(super) revisions: &'a [Revision],
    /// What became of each entry from the first column to the last is marked.
    pub(super) marked: bool,
    /// What is to be known about an entry stands below it; below behaviour always.
    pub(super) explained: bool,
}

pub(super) fn table(entries: &[&Entry], look: &Look<'_>) -> String {
    let name_width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
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
    let mut last: Option<&Entry> = None;
    for entry in entries {
        if last.is_none_or(|last| last.kind != entry.kind) {
            shown += if last.is_some() { "\n" } else { "" };
            shown += &line("", entry.kind.word(), &dates);
            last = None;
        }
        if let Some(group) = &entry.group
            && last.is_none_or(|last| last.group.as_ref() != Some(group))
        {
            shown += &format!(" {group}\n");
        }
        let cells: Vec<_> = look.revisions.iter().map(|revision| entry.cell(*revision).text()).collect();
        shown += &line(if look.marked { mark(entry, look.revisions) } else { "  " }, &entry.name, &cells);
        if (look.explained || entry.kind == Kind::Behaviour) && !entry.about.is_empty() {
            shown += &wrapped(&entry.about, 4);
        }
        last = Some(entry);
    }
    shown
}

/// What became of an entry between the first revision and the last.
fn mark(entry: &Entry, revisions: &[Revision]) -> &'static str {
    let absent = |revision: Option<&Revision>| revision.is_none_or(|r| entry.cell(*r) == Cell::Absent);
    match (absent(revisions.first()), absent(revisions.last())) {
        (true, false) => "+ ",
        (false, true) => "- ",
        _ => "~ ",
    }
}

/// Text in lines that fit.
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

pub(super) fn json(entries: &[&Entry], revisions: &[Revision]) -> Value {
    let entry = |entry: &&Entry| {
        let cells: Map<String, Value> = revisions
            .iter()
            .map(|revision| (revision.as_str().to_owned(), entry.cell(*revision).json()))
            .collect();
        json!({
            "kind": entry.kind.word(),
            "group": entry.group,
            "name": entry.name,
            "about": (!entry.about.is_empty()).then_some(&entry.about),
            "in": cells,
        })
    };
    json!({
        "revisions": revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>(),
        "entries": entries.iter().map(entry).collect::<Vec<_>>(),
    })
}
