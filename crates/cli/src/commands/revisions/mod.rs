//! `dateline revisions`: what exists in which revision, from the tables that the program itself goes by.

mod show;
mod survey;

use serde_json::Value;
use spec::{Method, Revision};

use crate::exit::{Failure, meant};
use crate::{terminal, words};
use show::Look;
use survey::{Cell, Entry, Kind, entries, in_order};

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
    pub(crate) kind: Vec<Kind>,
    /// Show only what differs between the revisions shown. With one revision: what it changed.
    #[arg(short, long)]
    pub(crate) changed: bool,
}

/// Examples for `--help`; dates come from the tables as well.
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
A name stands for all that is called so: methods, notifications, types, fields (Tool.icons), capabilities
(client.elicitation.url), keys, headers, codes. Where nothing is called so, it is looked for within names.

In the table: yes, it exists; -, it does not; required or optional, for fields; request or in result, for how a
server asks. With --changed between two: + came, - went, ~ is different.

Exit codes: 0 done; 1 it exists, but not in the revisions named; 2 wrong usage, or nothing is called so."
    )
}

/// Reads a revision as it is typed.
pub(crate) fn revision(typed: &str) -> Result<Revision, String> {
    let known = in_order().map(Revision::as_str);
    Revision::parse(typed).ok_or_else(|| format!("there are {}{}", known.join(", "), meant(typed, known)))
}

/// `dateline revisions`.
pub(crate) fn run(args: &Args, as_json: bool) -> Result<(), Failure> {
    let revisions = columns(args)?;
    let all = entries();
    let of_kind: Vec<&Entry> =
        all.iter().filter(|entry| args.kind.is_empty() || args.kind.contains(&entry.kind)).collect();
    let named = named(&of_kind, &all, &args.names)?;
    let exists = |entry: &&&Entry| revisions.iter().any(|r| entry.cell(*r) != Cell::Absent);
    let mut found: Vec<&Entry> = named.iter().filter(exists).copied().collect();
    if found.is_empty() {
        return Err(Failure::Other(elsewhere(&named, &revisions)));
    }
    if args.changed {
        found.retain(|entry| revisions.iter().any(|r| entry.cell(*r) != entry.cell(revisions[0])));
    }
    let text = if as_json {
        let json: Value = show::json(&found, &revisions);
        words::json(&json)
    } else if found.is_empty() {
        "nothing is different\n".to_owned()
    } else {
        let look = Look {
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

/// The entries that the names stand for.
fn named<'a>(of_kind: &[&'a Entry], all: &'a [Entry], names: &[String]) -> Result<Vec<&'a Entry>, Failure> {
    if names.is_empty() {
        return Ok(of_kind.to_vec());
    }
    let mut chosen = vec![false; of_kind.len()];
    for name in names {
        let wanted = name.to_lowercase();
        let is_called = |entry: &Entry| called(entry).any(|known| known.to_lowercase() == wanted);
        let holds = |entry: &Entry| entry.full_name().to_lowercase().contains(&wanted);
        let exactly: Vec<bool> = of_kind.iter().map(|entry| is_called(entry)).collect();
        let found = if exactly.contains(&true) {
            exactly
        } else {
            of_kind.iter().map(|entry| holds(entry)).collect()
        };
        if !found.contains(&true) {
            return Err(Failure::Usage(unknown(name, of_kind, all, is_called)));
        }
        chosen.iter_mut().zip(found).for_each(|(chosen, found)| *chosen |= found);
    }
    Ok(of_kind.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(entry, _)| *entry).collect())
}

/// All that an entry is called.
fn called(entry: &Entry) -> impl Iterator<Item = String> {
    let own = [Some(entry.name.clone()), entry.group.clone(), Some(entry.full_name())];
    own.into_iter().flatten().chain(entry.words.iter().cloned())
}

fn unknown(name: &str, of_kind: &[&Entry], all: &[Entry], is_called: impl Fn(&Entry) -> bool) -> String {
    if let Some(other) = all.iter().find(|entry| is_called(entry)) {
        return format!("{name:?} is not among these kinds, but among the {}", other.kind.word());
    }
    let known: Vec<String> = of_kind.iter().flat_map(|entry| called(entry)).collect();
    format!("nothing is called {name:?}{}", meant(name, known.iter().map(String::as_str)))
}

/// Where what was asked for is, if not in these revisions.
fn elsewhere(named: &[&Entry], revisions: &[Revision]) -> String {
    let dates = |revisions: &[Revision]| -> String {
        revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
    };
    let has = |revision: &Revision| named.iter().any(|entry| entry.cell(*revision) != Cell::Absent);
    let there: Vec<Revision> = in_order().into_iter().filter(has).collect();
    let what = match named {
        [entry] => entry.full_name(),
        _ => "none of this".to_owned(),
    };
    let not = if named.len() == 1 { "is not" } else { "is" };
    format!("{what} {not} in {}; it is in {}", dates(revisions), dates(&there))
}
