//! `dateline revisions`: what it shows is what the tables say.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use spec::shape::Field;
use spec::{
    Capability, Code, Era, Method, Notice, Question, Revision, Revisions, Setting, fields, header, meta,
};

use crate::program::{complains, works};

/// What is printed as JSON.
async fn entries(args: &[&str]) -> Vec<Value> {
    let printed = works(&[&["revisions", "--json"], args].concat()).await;
    let parsed: Value = serde_json::from_str(&printed).unwrap();
    parsed["entries"].as_array().unwrap().clone()
}

fn oldest_first() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().rev()
}

/// The cells that an entry has to have.
fn cells(of: impl Fn(Revision) -> Value) -> Value {
    oldest_first().map(|revision| (revision.as_str().to_owned(), of(revision))).collect()
}

fn exists(it_does: bool) -> Value {
    if it_does { json!(true) } else { Value::Null }
}

fn presence(field: &Field) -> Value {
    cells(|r| match (field.exists.contains(r), field.required.contains(r)) {
        (false, _) => Value::Null,
        (true, true) => json!("required"),
        (true, false) => json!("optional"),
    })
}

fn find<'a>(entries: &'a [Value], kind: &str, group: Option<&str>, name: &str) -> Vec<&'a Value> {
    let is = |e: &&Value| e["kind"] == kind && e["group"] == json!(group) && e["name"] == name;
    entries.iter().filter(is).collect()
}

#[testkit::test]
async fn json_says_of_everything_what_the_tables_say() {
    let all = entries(&[]).await;
    let mut met = 0;
    let mut check = |kind: &str, group: Option<&str>, name: &str, due: Value| {
        let found = find(&all, kind, group, name);
        assert!(found.iter().any(|e| e["in"] == due), "{kind} {group:?} {name}: {found:?} is not {due}");
        met += 1;
    };
    for row in Method::rows() {
        check("methods", None, row.wire, cells(|r| exists(row.method.exists(r))));
    }
    for question in Question::ALL {
        let due = |r: Revision| match (question.exists().contains(r), r.era() == Era::Legacy) {
            (false, _) => Value::Null,
            (true, asks) => json!(if asks { "request" } else { "in result" }),
        };
        check("questions", None, question.wire(), cells(due));
    }
    for row in Notice::rows() {
        check("notifications", None, row.wire, cells(|r| exists(row.exists.contains(r))));
    }
    for (name, lives) in header::ROWS {
        let name = if *name == header::PARAM_PREFIX { "mcp-param-*" } else { name };
        check("headers", None, name, cells(|r| exists(lives.contains(r))));
    }
    for code in Code::all() {
        let name = format!("{} {code:?}", code.number());
        check("codes", None, &name, cells(|r| exists(code.exists().contains(r))));
    }
    for (place, shape) in fields::METAS {
        // Keys that are of other places alone are not shown.
        for field in shape.fields.iter().filter(|field| field.exists != Revisions::NONE) {
            check("meta", Some(&format!("_meta of {place}")), field.name, presence(field));
        }
    }
    for (place, kinds) in fields::KINDS {
        for kind in *kinds {
            let due = cells(|r| exists(kind.exists.contains(r)));
            check("content", Some(&format!("in {place}")), kind.tag, due);
        }
    }
    for (at, column) in Revision::LATEST_MODERN.rules().columns().into_iter().enumerate() {
        let due = |r: Revision| match r.rules().columns()[at].value {
            Setting::Flag(flag) => json!(flag),
            Setting::Word(word) => json!(word),
            Setting::Code(code) => json!(code.number()),
        };
        check("behaviour", None, column.name, cells(due));
    }
    let capabilities = ["ServerCapabilities", "ClientCapabilities"];
    for shape in spec::shapes() {
        let (root, path) = shape.name.split_once('.').unwrap_or((shape.name, ""));
        for field in shape.fields {
            if capabilities.contains(&root) {
                let name = if path.is_empty() { field.name } else { &format!("{path}.{}", field.name) };
                check("capabilities", Some(root), name, cells(|r| exists(field.exists.contains(r))));
            } else if !fields::METAS.iter().any(|(_, of_meta)| std::ptr::eq(*of_meta, shape)) {
                check("fields", Some(shape.name), field.name, presence(field));
            }
        }
    }
    assert_eq!(all.len(), met, "an entry that no table has");
    for capability in Capability::ALL {
        let path = match capability.path() {
            (name, Some(flag)) => format!("{name}.{flag}"),
            (name, None) => name.to_owned(),
        };
        assert_eq!(find(&all, "capabilities", Some("ServerCapabilities"), &path).len(), 1, "{path}");
    }
}

#[testkit::test]
async fn a_name_shows_what_is_called_so_and_else_what_holds_it() {
    let names = |entries: Vec<Value>| -> Vec<String> {
        entries.iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect()
    };
    let shown = names(entries(&[Method::ToolsCall.wire()]).await);
    assert_eq!(shown[0], Method::ToolsCall.wire());
    let shapes = [&fields::CALL_TOOL_RESULT, &fields::CALL_TOOL_REQUEST_PARAMS];
    let of_both: Vec<&str> = shapes.iter().flat_map(|shape| shape.fields).map(|f| f.name).collect();
    assert_eq!(shown[1..], of_both, "with the fields of its answer and its params");
    assert_eq!(names(entries(&["Tool"]).await).len(), fields::TOOL.fields.len(), "a type");
    for one in ["tool.OUTPUTSCHEMA", "client.elicitation.url", "-32042", "HeaderMismatch", meta::LOG_LEVEL] {
        assert_eq!(entries(&[one]).await.len(), 1, "{one}");
    }
    let within = names(entries(&["list_chan"]).await);
    assert!(within.len() > 3 && within.iter().all(|name| name.contains("list_changed")), "{within:?}");
    let two = entries(&["ping", "batches", "--kind", "methods,behaviour"]).await;
    assert_eq!(names(two), ["ping", "batches"]);
    let kinds: BTreeSet<String> =
        entries(&["--kind", "codes,headers"]).await.iter().map(|e| e["kind"].to_string()).collect();
    assert_eq!(kinds, BTreeSet::from(["\"codes\"".to_owned(), "\"headers\"".to_owned()]));
}

#[testkit::test]
async fn a_table_is_aligned_and_fits_a_terminal() {
    let all = works(&["revisions"]).await;
    assert!(all.lines().all(|line| line.chars().count() <= 100 && line.trim_end() == line), "{all}");
    let method = works(&["revisions", "ping"]).await;
    let mut lines = method.lines();
    let (heading, row) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(row.trim_start().starts_with("ping"), "{method}");
    for revision in oldest_first() {
        let at = heading.find(revision.as_str()).unwrap();
        let cell = if Method::Ping.exists(revision) { "yes" } else { "-" };
        assert!(row[at..].starts_with(cell) && row[..at].ends_with("  "), "{revision}: {method}");
    }
    assert!(lines.next().unwrap().contains("EmptyResult"), "{method}");
    let behaviour = works(&["revisions", "--kind", "behaviour"]).await;
    assert!(behaviour.contains("several messages may come in one array"), "{behaviour}");
}

#[testkit::test]
async fn changed_shows_what_is_different_and_in_which_direction() {
    let [new, old] = [Revision::LATEST_MODERN, Revision::LATEST_LEGACY];
    let between = format!("{old},{new}");
    let shown = works(&["revisions", "--changed", "-r", &between]).await;
    for line in ["+ server/discover ", "- ping ", "~ elicitation/create ", "~ log_scope "] {
        assert!(shown.lines().any(|l| l.starts_with(line)), "{line}: {shown}");
    }
    assert!(!shown.contains("tools/list "), "{shown}");
    for entry in entries(&["--changed", "-r", &between]).await {
        assert_ne!(entry["in"][old.as_str()], entry["in"][new.as_str()], "{entry}");
    }
    // One alone is held against the one before it.
    let one = entries(&["--changed", "-r", new.as_str()]).await;
    assert!(one == entries(&["--changed", "-r", &between]).await, "{one:?}");
    let first = oldest_first().next().unwrap();
    complains(&["revisions", "--changed", "-r", first.as_str()], 2, &[first.as_str(), "first"]).await;
    assert_eq!(
        works(&["revisions", "tools/call", "-k", "methods", "--changed"]).await,
        "nothing is different\n"
    );
    assert_eq!(entries(&["tools/call", "-k", "methods", "--changed"]).await, Vec::<Value>::new());
}

#[testkit::test]
async fn what_is_not_there_is_1_and_what_is_nowhere_2_with_a_suggestion() {
    let second = Revision::UNNAMED.as_str();
    let revisions = ["revisions", "outputSchema", "--revision"];
    complains(
        &[&revisions[..], &[second]].concat(),
        1,
        &["Tool.outputSchema is not in", second, "2025-06-18"],
    )
    .await;
    works(&[&revisions[..], &[Revision::LATEST_MODERN.as_str()]].concat()).await;
    complains(&["revisions", "tool/call"], 2, &["\"tool/call\"", "did you mean \"tools/call\"?"]).await;
    complains(&["revisions", "nothing like it"], 2, &["nothing has the name"]).await;
    complains(&["revisions", "ping", "--kind", "codes"], 2, &["\"ping\"", "one of the methods"]).await;
    let run = crate::program::run(&["revisions", "-r", "2025-06-19"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("did you mean \"2025-06-18\"?"), "{}", run.err);
}

#[testkit::test]
async fn the_help_teaches_by_examples_that_work() {
    let help = works(&["revisions", "--help"]).await;
    let examples: Vec<&str> =
        help.lines().filter_map(|line| line.trim().strip_prefix("dateline revisions")).collect();
    assert!(examples.len() >= 7, "{help}");
    for example in examples {
        let typed = example.split("  ").find(|words| !words.trim().is_empty());
        let typed = if example.starts_with("  ") { "" } else { typed.unwrap_or_default() };
        let args: Vec<&str> = typed.split_whitespace().collect();
        let run = crate::program::run(&[&["revisions"], &args[..]].concat()).await;
        let due = if example.contains("Exit code 1") { 1 } else { 0 };
        assert_eq!(run.code, Some(due), "{example}: {}", run.err);
    }
}
