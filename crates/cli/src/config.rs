//! The configuration that desktop clients use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};
use transport::client::Program;

use crate::args::Configured;
use crate::exit::Failure;

/// The servers of a configuration, in its order.
pub(crate) type Servers = Vec<Program>;

/// Reads the configuration that was named, or the user's; `None` where there is none.
///
/// The working directory is never looked into: a repository that someone cloned must not start commands.
pub(crate) fn load(configured: &Configured) -> Result<Option<Servers>, Failure> {
    let named = configured.config.clone().or_else(|| std::env::var_os("DATELINE_CONFIG").map(PathBuf::from));
    let (path, must_exist) = match named {
        Some(path) => (path, true),
        None => match home() {
            Some(path) => (path, false),
            None => return Ok(None),
        },
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => return Ok(None),
        Err(error) => {
            return Err(Failure::Usage(format!("cannot read the configuration {}: {error}", path.display())));
        }
    };
    parse(&text).map(Some).map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))
}

/// The user's own configuration file.
pub(crate) fn home() -> Option<PathBuf> {
    let directory = match std::env::var_os("XDG_CONFIG_HOME").filter(|dir| Path::new(dir).is_absolute()) {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    Some(directory.join("dateline/config.json"))
}

/// Reads a configuration's text.
fn parse(text: &str) -> Result<Servers, String> {
    let value: Option<Value> =
        jsonc_parser::parse_to_serde_value(text, &ParseOptions::default()).map_err(|e| e.to_string())?;
    let object =
        value.as_ref().and_then(Value::as_object).ok_or("it must be a JSON object with \"mcpServers\"")?;
    let servers = object
        .get("mcpServers")
        .ok_or("\"mcpServers\" is missing: {\"mcpServers\": {NAME: {\"command\": …}}}")?;
    let servers = servers.as_object().ok_or("\"mcpServers\" must be an object: the servers by name")?;
    servers
        .iter()
        .map(|(name, entry)| server(name, entry).map_err(|why| format!("mcpServers.{name}: {why}")))
        .collect()
}

fn server(name: &str, entry: &Value) -> Result<Program, String> {
    let entry = entry.as_object().ok_or("it must be an object with \"command\"")?;
    if entry.contains_key("url") {
        return Err("servers with a \"url\" cannot be configured yet, only those with a \"command\"".into());
    }
    let command = string(entry, "command")?.ok_or("\"command\" is missing")?;
    let args = match entry.get("args") {
        None => Vec::new(),
        Some(Value::Array(args)) => {
            let text = |v: &Value| v.as_str().map(str::to_owned).ok_or("\"args\" must hold strings");
            args.iter().map(text).collect::<Result<_, _>>()?
        }
        Some(_) => return Err("\"args\" must be an array of strings".into()),
    };
    let env = match entry.get("env") {
        None => HashMap::new(),
        Some(Value::Object(env)) => {
            let text = |(k, v): (&String, &Value)| match v.as_str() {
                Some(v) => Ok((k.clone(), v.to_owned())),
                None => Err(format!("\"env\".{k} must be a string")),
            };
            env.iter().map(text).collect::<Result<_, _>>()?
        }
        Some(_) => return Err("\"env\" must be an object of strings".into()),
    };
    let cwd = string(entry, "cwd")?.map(PathBuf::from);
    Ok(Program { name: name.to_owned(), command, args, env, cwd })
}

fn string(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{key:?} must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_fine_and_order_is_kept() {
        let servers = parse(
            r#"{ // mine
                "mcpServers": {
                    "z": {"command": "npx", "args": ["-y", "z"], "env": {"K": "v"}, "cwd": "/tmp"},
                    /* and */ "a": {"command": "a"},
                },
            }"#,
        );
        let servers = servers.unwrap();
        assert_eq!(servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!((servers[0].args.len(), servers[0].env["K"].as_str()), (2, "v"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, told) in [
            ("[]", "JSON object"),
            ("{}", "mcpServers"),
            (r#"{"mcpServers": {"x": {}}}"#, "mcpServers.x: \"command\" is missing"),
            (r#"{"mcpServers": {"x": {"command": 1}}}"#, "\"command\" must be a string"),
            (r#"{"mcpServers": {"x": {"command": "a", "args": [1]}}}"#, "args"),
            ("{\n  \"mcpServers\": {\n    oops", "line 3"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
