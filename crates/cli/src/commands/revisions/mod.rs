//! `dateline revisions`: what exists in which revision. It reads the tables that dateline itself works by.

mod rows;
mod show;

use serde_json::Value;
use spec::{Method, Revision};

use crate::exit::{Failure, suggestion};
use crate::{escape, terminal};
use rows::{Cell, RevisionRow, RowKind, entries, in_order};
use show::TableOptions;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Names of what to show: methods, types, fields, headers, codes and others. Default: everything.
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) names: Vec<String>,
    /// Show these revisions only, separated by commas.
    #[arg(short, long, value_name = "DATE", value_delimiter = ',', value_parser = revision)]
    pub(crate) revision: Vec<spec::Revision>,
    /// Show entries of these kinds only, separated by commas.
    #[arg(short, long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kind: Vec<RowKind>,
    /// Show only what differs between the revisions shown. With one revision: what it changed.
    #[arg(short, long)]
    pub(crate) changed: bool,
}

/// Examples for `--help`, with dates from the tables.
pub(crate) fn help() -> String {
    let [_, second, third, ..] = in_order();
    let (before, after) = (Revision::LATEST_LEGACY, Revision::LATEST_MODERN);
    let examples = [
        (String::new(), "everything, in all revisions"),
        (Method::ToolsCall.wire().to_owned(), "where a method is, and the fields of its answer"),
        ("Tool".to_owned(), "the fields of a type"),
        (format!("outputSchema -r {second}"), "is this in that revision? Exit code 1 if not"),
        (format!("-r {before},{after} --changed"), "what is different between two"),
        (format!("-r {third} --changed"), "what a revision changed"),
        ("--kind behaviour,codes".to_owned(), "how revisions behave, and their error codes"),
    ];
    let examples: String =
        examples.iter().map(|(typed, about)| format!("  dateline revisions {typed:36}{about}\n")).collect();
    format!(
        "Examples:
{examples}
NAME is the name of a method, notification, type, field (Tool.icons), capability (client.elicitation.url), key,
header or code. If nothing has this name, everything is shown whose name contains it.

In the table: yes, it exists; -, it does not exist; required or optional, for fields; request or in result, for how
a server asks. With --changed and two revisions: + was added, - was removed, ~ is different.

Exit codes: 0 done; 1 it exists, but not in these revisions; 2 wrong usage, or nothing has this name."
    )
}

/// Reads the name of a revision.
pub(crate) fn revision(typed: &str) -> Result<Revision, String> {
    let known = in_order().map(Revision::as_str);
    Revision::parse(typed)
        .ok_or_else(|| format!("there are {}{}", known.join(", "), suggestion(typed, known)))
}

/// `dateline revisions`.
pub(crate) fn run(args: &Args, as_json: bool) -> Result<(), Failure> {
    let revisions = columns(args)?;
    let all = entries();
    let of_kind: Vec<&RevisionRow> =
        all.iter().filter(|row| args.kind.is_empty() || args.kind.contains(&row.kind)).collect();
    let named = named(&of_kind, &all, &args.names)?;
    let exists = |row: &&&RevisionRow| revisions.iter().any(|r| row.cell(*r) != Cell::Absent);
    let mut found: Vec<&RevisionRow> = named.iter().filter(exists).copied().collect();
    if found.is_empty() {
        return Err(Failure::Other(elsewhere(&named, &revisions)));
    }
    if args.changed {
        found.retain(|row| revisions.iter().any(|r| row.cell(*r) != row.cell(revisions[0])));
    }
    let text = if as_json {
        let json: Value = show::json(&found, &revisions);
        escape::json(&json)
    } else if found.is_empty() {
        "nothing is different\n".to_owned()
    } else {
        let look = TableOptions {
            revisions: &revisions,
            marked: args.changed && revisions.len() == 2,
            explained: !args.names.is_empty(),
        };
        show::table(&found, &look)
    };
    terminal::print(&text)
}

/// The revisions to show, in their order: with `--changed`, one alone is shown beside the one before it.
fn columns(args: &Args) -> Result<Vec<Revision>, Failure> {
    let all = in_order();
    let shown: Vec<Revision> =
        all.into_iter().filter(|r| args.revision.is_empty() || args.revision.contains(r)).collect();
    let [only] = shown[..] else { return Ok(shown) };
    if !args.changed {
        return Ok(shown);
    }
    let before = all.iter().zip(&all[1..]).find(|(_, next)| **next == only).map(|(before, _)| *before);
    before.map(|before| vec![before, only]).ok_or_else(|| {
        Failure::Usage(format!("{only} is the first revision; name a second one to compare it with"))
    })
}

/// The rows that the names stand for.
fn named<'a>(
    of_kind: &[&'a RevisionRow],
    all: &'a [RevisionRow],
    names: &[String],
) -> Result<Vec<&'a RevisionRow>, Failure> {
    if names.is_empty() {
        return Ok(of_kind.to_vec());
    }
    let mut chosen = vec![false; of_kind.len()];
    for name in names {
        let wanted = name.to_lowercase();
        let is_called = |row: &RevisionRow| names_of(row).any(|known| known.to_lowercase() == wanted);
        let holds = |row: &RevisionRow| row.full_name().to_lowercase().contains(&wanted);
        let exactly: Vec<bool> = of_kind.iter().map(|row| is_called(row)).collect();
        let found =
            if exactly.contains(&true) { exactly } else { of_kind.iter().map(|row| holds(row)).collect() };
        if !found.contains(&true) {
            return Err(Failure::Usage(unknown(name, of_kind, all, is_called)));
        }
        chosen.iter_mut().zip(found).for_each(|(chosen, found)| *chosen |= found);
    }
    Ok(of_kind.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(row, _)| *row).collect())
}

/// All names of a row.
fn names_of(row: &RevisionRow) -> impl Iterator<Item = String> {
    let own = [Some(row.name.clone()), row.group.clone(), Some(row.full_name())];
    own.into_iter().flatten().chain(row.words.iter().cloned())
}

fn unknown(
    name: &str,
    of_kind: &[&RevisionRow],
    all: &[RevisionRow],
    is_called: impl Fn(&RevisionRow) -> bool,
) -> String {
    if let Some(other) = all.iter().find(|row| is_called(row)) {
        return format!("{name:?} is not of these kinds; it is one of the {}", other.kind.word());
    }
    let known: Vec<String> = of_kind.iter().flat_map(|row| names_of(row)).collect();
    format!("nothing has the name {name:?}{}", suggestion(name, known.iter().map(String::as_str)))
}

/// Says in which revisions something is, when it is not in those that were asked for.
fn elsewhere(named: &[&RevisionRow], revisions: &[Revision]) -> String {
    let dates = |revisions: &[Revision]| -> String {
        revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
    };
    let has = |revision: &Revision| named.iter().any(|row| row.cell(*revision) != Cell::Absent);
    let there: Vec<Revision> = in_order().into_iter().filter(has).collect();
    let what = match named {
        [row] => row.full_name(),
        _ => "none of this".to_owned(),
    };
    let not = if named.len() == 1 { "is not" } else { "is" };
    format!("{what} {not} in {}; it is in {}", dates(revisions), dates(&there))
}
