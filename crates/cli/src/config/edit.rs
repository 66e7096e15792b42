//! Adds servers to a configuration file and removes them. Everything else in the file stays, comments too.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

use super::lock::FileLock;
use super::read::{NESTED, SERVERS};
use super::server_entry::ServerEntry;
use crate::exit;

/// The key that a file gets when it has no servers yet.
const NEW_KEY: &str = "mcpServers";

/// An entry as a JSON value.
fn value(entry: &ServerEntry) -> CstInputValue {
    let text = |text: &String| CstInputValue::String(text.clone());
    let array = |texts: &[String]| CstInputValue::Array(texts.iter().map(text).collect());
    let object = |pairs: &[(String, String)]| {
        CstInputValue::Object(pairs.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    };
    let members = [
        ("type", entry.sse.then(|| CstInputValue::String("sse".to_owned()))),
        ("command", entry.command.as_ref().map(text)),
        ("args", (!entry.args.is_empty()).then(|| array(&entry.args))),
        ("env", (!entry.env.is_empty()).then(|| object(&entry.env))),
        ("envFile", entry.env_file.as_ref().map(text)),
        ("env_vars", (!entry.env_vars.is_empty()).then(|| array(&entry.env_vars))),
        ("cwd", entry.cwd.as_ref().map(text)),
        ("url", entry.url.as_ref().map(text)),
        ("headers", (!entry.headers.is_empty()).then(|| object(&entry.headers))),
        ("includeTools", (!entry.allow.is_empty()).then(|| array(&entry.allow))),
        ("excludeTools", (!entry.deny.is_empty()).then(|| array(&entry.deny))),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    CstInputValue::Object(members.collect())
}

/// The text of a configuration with these servers and nothing else.
pub(crate) fn text_of(entries: &[(String, ServerEntry)]) -> String {
    let root = CstRootNode::parse("{}", &ParseOptions::default());
    let Ok(root) = root else { return String::new() };
    let servers = root.object_value_or_create().and_then(|root| root.object_value_or_create(NEW_KEY));
    for (name, entry) in entries {
        servers.iter().for_each(|servers| drop(servers.append(name, value(entry))));
    }
    root.to_string()
}

/// Adds servers to a file.
///
/// # Errors
/// When one of the names is taken, or the file cannot be read or written.
pub(crate) fn add(path: &Path, entries: &[(String, ServerEntry)]) -> Result<(), String> {
    change(path, |root| {
        let groups = server_groups(root);
        for (name, entry) in entries {
            if groups.iter().any(|servers| servers.get(name).is_some()) {
                return Err(format!(
                    "there is a server {name:?} already; choose another name, or remove it first: dateline remove {name}"
                ));
            }
            let servers = match groups.first() {
                Some(first) => first.clone(),
                None => root
                    .object_value_or_create(NEW_KEY)
                    .ok_or_else(|| format!("{NEW_KEY:?} in {} is not an object", path.display()))?,
            };
            servers.append(name, value(entry));
        }
        Ok(())
    })
}

/// Removes a server from a file.
///
/// # Errors
/// When there is no such server, or the file cannot be read or written.
pub(crate) fn remove(path: &Path, name: &str) -> Result<(), String> {
    change(path, |root| {
        let groups = server_groups(root);
        match groups.iter().find_map(|servers| servers.get(name)) {
            Some(entry) => {
                entry.remove();
                Ok(())
            }
            None => {
                let properties = groups.iter().flat_map(CstObject::properties);
                let names: Vec<_> = properties.filter_map(|p| p.decoded_name()).collect();
                let suggestion = exit::suggestion(name, names.iter().map(String::as_str));
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                Err(format!("there is no server {name:?}{suggestion}; the configuration has: {names}"))
            }
        }
    })
}

/// The objects that contain servers, in the order in which they are read.
fn server_groups(root: &CstObject) -> Vec<CstObject> {
    let mut groups: Vec<CstObject> = SERVERS.iter().filter_map(|key| root.object_value(key)).collect();
    if let Some(nested) = root.object_value(NESTED) {
        let below: Vec<_> = SERVERS.iter().filter_map(|key| nested.object_value(key)).collect();
        groups.extend(if below.is_empty() { vec![nested] } else { below });
    }
    groups
}

/// Reads the file, changes it, and writes it, while no other dateline does the same.
fn change(path: &Path, change: impl FnOnce(&CstObject) -> Result<(), String>) -> Result<(), String> {
    let _lock =
        FileLock::wait_for(path).map_err(|error| format!("cannot change {}: {error}", path.display()))?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{{\n  {NEW_KEY:?}: {{}}\n}}\n")
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let root = CstRootNode::parse(&text, &ParseOptions::default())
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let object =
        root.object_value_or_create().ok_or_else(|| format!("{} is not a JSON object", path.display()))?;
    change(&object)?;
    // A dateline that watches the file must not read half of it.
    gateway::replace_file(path, root.to_string().as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stay_and_what_was_added_can_be_removed() {
        let path = std::env::temp_dir().join(format!("dateline-edit-{}.json", std::process::id()));
        std::fs::write(
            &path,
            "{\n  // keep me\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n  }\n}\n",
        )
        .unwrap();
        let entry = ServerEntry {
            command: Some("npx".into()),
            args: vec!["-y".into()],
            env: vec![("K".into(), "v".into())],
            ..ServerEntry::default()
        };
        add(&path, &[("b".into(), entry.clone())]).unwrap();
        assert!(add(&path, &[("b".into(), entry)]).unwrap_err().contains("already"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// keep me") && text.contains("\"npx\""), "{text}");
        assert_eq!(super::super::load_file(&path).unwrap().options.servers.len(), 2);
        remove(&path, "a").unwrap();
        assert!(remove(&path, "a").unwrap_err().contains("the configuration has: b"));
        assert_eq!(super::super::load_file(&path).unwrap().options.servers[0].name, "b");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_server_is_added_to_and_removed_from_where_the_others_stand() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        let entry = ServerEntry { url: Some("https://h/mcp".into()), ..ServerEntry::default() };
        for text in [
            r#"{"servers": {"a": {"command": "a"}}}"#,
            r#"{"mcp.servers": {"a": {"command": "a"}}}"#,
            r#"{"mcp": {"servers": {"a": {"command": "a"}}}}"#,
            r#"{"mcp": {"a": {"type": "local", "command": ["a"]}}}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(add(&path, &[("a".into(), entry.clone())]).unwrap_err().contains("already"), "{text}");
            add(&path, &[("b".into(), entry.clone())]).unwrap();
            assert!(!std::fs::read_to_string(&path).unwrap().contains(NEW_KEY), "{text}");
            remove(&path, "a").unwrap();
            let servers = super::super::load_file(&path).unwrap().options.servers;
            assert_eq!(servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["b"], "{text}");
        }
    }
}
