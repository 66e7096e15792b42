//! The configurations of the clients on this machine, at the places that they document.

use std::path::{Path, PathBuf};

use gateway::Target;
use serde_json::Value;

use super::edit::Entry;

/// A server that a client has configured.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The client.
    pub(crate) client: &'static str,
    /// Its file.
    pub(crate) path: PathBuf,
    /// The server's name there.
    pub(crate) name: String,
    /// What it is.
    pub(crate) entry: Entry,
}

/// How a client writes its servers.
enum Form {
    /// JSON that [`super::read`] reads.
    Json,
    /// A TOML table of servers.
    Toml(&'static str),
}

/// Where each client has its configuration, below the home directory.
fn places() -> Vec<(&'static str, &'static str, Form)> {
    let mac = cfg!(target_os = "macos");
    let pick = |on_mac, elsewhere| if mac { on_mac } else { elsewhere };
    vec![
        (
            "Claude Desktop",
            pick(
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Claude/claude_desktop_config.json",
            ),
            Form::Json,
        ),
        ("Claude Code", ".claude.json", Form::Json),
        (
            "VS Code",
            pick("Library/Application Support/Code/User/mcp.json", ".config/Code/User/mcp.json"),
            Form::Json,
        ),
        ("Cursor", ".cursor/mcp.json", Form::Json),
        ("Windsurf", ".codeium/windsurf/mcp_config.json", Form::Json),
        ("Codex", ".codex/config.toml", Form::Toml("mcp_servers")),
        ("Gemini", ".gemini/settings.json", Form::Json),
        ("Zed", ".config/zed/settings.json", Form::Json),
    ]
}

/// The servers of all clients below a home directory, and what could not be read.
pub(crate) fn on_this_machine(home: &Path) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for (client, place, form) in places() {
        let path = home.join(place);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let entries = match form {
            Form::Json => json(&text),
            Form::Toml(table) => toml(&text, table),
        };
        match entries {
            Ok(entries) => {
                let of = |(name, entry)| Found { client, path: path.clone(), name, entry };
                found.extend(entries.into_iter().map(of));
            }
            Err(why) => troubles.push(format!("{client}: {}:{why}", path.display())),
        }
    }
    (found, troubles)
}

fn json(text: &str) -> Result<Vec<(String, Entry)>, String> {
    // Variables stay as they are written: they are put in when dateline starts the server.
    let keep = |name: &str| Some(format!("${{{name}}}"));
    let (options, _) = match super::read(text, &keep) {
        Err(why) if why.contains("there are no \"mcpServers\"") => return Ok(Vec::new()),
        other => other?,
    };
    let entry = |target| match target {
        Target::Program(program) => {
            let mut env: Vec<_> = program.env.into_iter().collect();
            env.sort();
            Some(Entry::Program { command: program.command, args: program.args, env })
        }
        Target::Remote(remote) => Some(Entry::Remote { url: remote.url, headers: remote.headers }),
        Target::Local(_) => None,
    };
    Ok(options.servers.into_iter().filter_map(|server| Some((server.name, entry(server.target)?))).collect())
}

fn toml(text: &str, table: &str) -> Result<Vec<(String, Entry)>, String> {
    let root: Value = toml::from_str(text).map_err(|e| e.to_string())?;
    let Some(servers) = root[table].as_object() else { return Ok(Vec::new()) };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let entry = |server: &Value| {
        if server["enabled"] == false {
            return None;
        }
        if let Some(url) = text(&server["url"]) {
            return Some(Entry::Remote { url, headers: Vec::new() });
        }
        let args = server["args"].as_array().into_iter().flatten().filter_map(text).collect();
        let env = server["env"].as_object().into_iter().flatten();
        let env = env.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
        Some(Entry::Program { command: text(&server["command"])?, args, env })
    };
    Ok(servers.iter().filter_map(|(name, server)| Some((name.clone(), entry(server)?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_where_clients_keep_them() {
        let home = std::env::temp_dir().join(format!("dateline-home-{}", std::process::id()));
        let write = |place: &str, text: &str| {
            let path = home.join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${SECRET}"}}}}"#);
        write(".claude.json", r#"{"numStartups": 3}"#);
        write(
            ".codex/config.toml",
            "model = \"m\"\n[mcp_servers.b]\ncommand = \"y\"\nargs = [\"z\"]\n[mcp_servers.b.env]\nK = \"v\"\n",
        );
        write(
            ".gemini/settings.json",
            r#"{"mcpServers": {"c": {"httpUrl": "https://h/mcp"}}, "theme": "x"}"#,
        );
        write(".config/zed/settings.json", "{ oops");
        let (found, troubles) = on_this_machine(&home);
        std::fs::remove_dir_all(&home).unwrap();
        let names: Vec<_> = found.iter().map(|f| (f.client, f.name.as_str())).collect();
        assert_eq!(names, [("Cursor", "a"), ("Codex", "b"), ("Gemini", "c")]);
        let Entry::Program { env, .. } = &found[0].entry else { panic!("no program") };
        assert_eq!(env, &[("K".to_owned(), "${SECRET}".to_owned())]);
        assert_eq!(troubles.len(), 1, "{troubles:?}");
    }
}
