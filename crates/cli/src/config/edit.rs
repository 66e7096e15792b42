//! Changes the user's configuration and keeps what else stands in it, comments included.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};

/// A server's entry, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A program.
    Program { command: String, args: Vec<String>, env: Vec<(String, String)> },
    /// A URL.
    Remote { url: String, headers: Vec<(String, String)> },
}

impl Entry {
    fn value(&self) -> CstInputValue {
        let text = |text: &String| CstInputValue::String(text.clone());
        let mut members = Vec::new();
        match self {
            Entry::Program { command, args, env } => {
                members.push(("command".to_owned(), text(command)));
                if !args.is_empty() {
                    members.push(("args".to_owned(), CstInputValue::Array(args.iter().map(text).collect())));
                }
                if !env.is_empty() {
                    let env = env.iter().map(|(name, value)| (name.clone(), text(value))).collect();
                    members.push(("env".to_owned(), CstInputValue::Object(env)));
                }
            }
            Entry::Remote { url, headers } => {
                members.push(("url".to_owned(), text(url)));
                if !headers.is_empty() {
                    let headers = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
                    members.push(("headers".to_owned(), CstInputValue::Object(headers)));
                }
            }
        }
        CstInputValue::Object(members)
    }
}

/// Adds servers; one whose name is there already is an error.
pub(crate) fn add(path: &Path, entries: &[(String, Entry)]) -> Result<(), String> {
    change(path, |servers| {
        for (name, entry) in entries {
            if servers.get(name).is_some() {
                return Err(format!(
                    "there is a server {name:?} already; remove it first, or choose another name"
                ));
            }
            servers.append(name, entry.value());
        }
        Ok(())
    })
}

/// Removes a server.
pub(crate) fn remove(path: &Path, name: &str) -> Result<(), String> {
    change(path, |servers| match servers.get(name) {
        Some(entry) => {
            entry.remove();
            Ok(())
        }
        None => {
            let names: Vec<_> = servers.properties().iter().filter_map(|p| p.decoded_name()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(format!("there is no server {name:?} (configured: {names})"))
        }
    })
}

fn change(
    path: &Path,
    change: impl FnOnce(&jsonc_parser::cst::CstObject) -> Result<(), String>,
) -> Result<(), String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "{\n  \"mcpServers\": {}\n}\n".to_owned()
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let root = CstRootNode::parse(&text, &ParseOptions::default())
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let object =
        root.object_value_or_create().ok_or_else(|| format!("{} holds no object", path.display()))?;
    let servers = object
        .object_value_or_create("mcpServers")
        .ok_or_else(|| format!("\"mcpServers\" in {} is no object", path.display()))?;
    change(&servers)?;
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        // Written beside it and put in its place: whoever watches the file never sees half of it.
        let beside = path.with_extension("json.new");
        std::fs::write(&beside, root.to_string())?;
        std::fs::rename(&beside, path)
    });
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
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
        let entry = Entry::Program {
            command: "npx".into(),
            args: vec!["-y".into()],
            env: vec![("K".into(), "v".into())],
        };
        add(&path, &[("b".into(), entry.clone())]).unwrap();
        assert!(add(&path, &[("b".into(), entry)]).unwrap_err().contains("already"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// keep me") && text.contains("\"npx\""), "{text}");
        assert_eq!(super::super::from(&path).unwrap().options.servers.len(), 2);
        remove(&path, "a").unwrap();
        assert!(remove(&path, "a").unwrap_err().contains("configured: b"));
        assert_eq!(super::super::from(&path).unwrap().options.servers[0].name, "b");
        std::fs::remove_file(path).unwrap();
    }
}
