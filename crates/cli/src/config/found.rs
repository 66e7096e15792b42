//! The configurations of the clients on this machine, at the places that they document.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::entry::Entry;
use super::read::{Carried, carry, carry_projects};

/// A server that a client has configured.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The client.
    pub(crate) client: &'static str,
    /// Its file.
    pub(crate) path: PathBuf,
    /// The folder of the project that it is configured for; `None` when it is for all of them.
    pub(crate) project: Option<PathBuf>,
    /// The server's name there.
    pub(crate) name: String,
    /// What it is, or why it cannot be taken over.
    pub(crate) entry: Result<Entry, String>,
}

/// How a client writes its servers.
enum Form {
    /// JSON that [`super::read`] reads.
    Json,
    /// The same, with servers of projects beside those of the user.
    Projects,
    /// The same, with variables as a shell has them.
    Dollars,
    /// A TOML table of servers, with the same keys.
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
        ("Claude Code", ".claude.json", Form::Projects),
        (
            "VS Code",
            pick("Library/Application Support/Code/User/mcp.json", ".config/Code/User/mcp.json"),
            Form::Json,
        ),
        (
            "VS Code",
            pick("Library/Application Support/Code/User/settings.json", ".config/Code/User/settings.json"),
            Form::Json,
        ),
        ("Cursor", ".cursor/mcp.json", Form::Json),
        ("Windsurf", ".codeium/windsurf/mcp_config.json", Form::Json),
        ("Codex", ".codex/config.toml", Form::Toml("mcp_servers")),
        ("Gemini", ".gemini/settings.json", Form::Dollars),
        ("opencode", ".config/opencode/opencode.json", Form::Json),
        ("Zed", ".config/zed/settings.json", Form::Json),
    ]
}

/// The servers of all clients below a home directory, and what could not be read.
pub(crate) fn on_this_machine(home: &Path) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for (client, place, form) in places() {
        let path = home.join(place);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                troubles.push(format!("{client}: cannot read {}: {error}", path.display()));
                continue;
            }
        };
        let carried = match form {
            // A file that was made and never written to.
            _ if text.trim().is_empty() => Ok(Vec::new()),
            Form::Json => carry(&text, false).map(of_the_user),
            Form::Projects => carry(&text, false).and_then(|of_user| {
                let of_projects = carry_projects(&text)?.into_iter().map(|(folder, servers)| {
                    (
                        Some(PathBuf::from(&folder)),
                        servers.into_iter().map(|server| in_folder(server, &folder)).collect(),
                    )
                });
                Ok(of_the_user(of_user).into_iter().chain(of_projects).collect())
            }),
            Form::Dollars => carry(&text, true).map(of_the_user),
            Form::Toml(table) => toml(&text, table).map(of_the_user),
        };
        match carried {
            Ok(carried) => {
                for (project, servers) in carried {
                    found.extend(servers.into_iter().map(|Carried { name, entry }| Found {
                        client,
                        path: path.clone(),
                        project: project.clone(),
                        name,
                        entry,
                    }));
                }
            }
            Err(why) => troubles.push(format!("{client}: {}:{why}", path.display())),
        }
    }
    (found, troubles)
}

/// Servers that are configured for all projects.
fn of_the_user(servers: Vec<Carried>) -> Vec<(Option<PathBuf>, Vec<Carried>)> {
    vec![(None, servers)]
}

/// A program of a project runs in the project's folder, unless it says otherwise.
fn in_folder(mut server: Carried, folder: &str) -> Carried {
    if let Ok(entry) = &mut server.entry
        && entry.command.is_some()
    {
        entry.cwd.get_or_insert_with(|| folder.to_owned());
    }
    server
}

/// The table means what it would in JSON.
fn toml(text: &str, table: &str) -> Result<Vec<Carried>, String> {
    let root: Value = toml::from_str(text).map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{line}: this is no TOML: {}", error.message())
    })?;
    match root[table].as_object() {
        Some(servers) => carry(&json!({"mcpServers": servers}).to_string(), false),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a home with these files.
    fn at_home(files: &[(&str, &str)]) -> (Vec<Found>, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        for (place, text) in files {
            let path = home.path().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        on_this_machine(home.path())
    }

    #[test]
    fn servers_are_found_where_clients_keep_them() {
        let (found, troubles) = at_home(&[
            (".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${SECRET:-d}"}}}}"#),
            (".claude.json", r#"{"numStartups": 3}"#),
            (".codeium/windsurf/mcp_config.json", ""),
            (
                ".codex/config.toml",
                "model = \"m\"\n[mcp_servers.b]\ncommand = \"y\"\nargs = [\"z\"]\n[mcp_servers.b.env]\nK = \"v\"\n",
            ),
            (".gemini/settings.json", r#"{"mcpServers": {"c": {"httpUrl": "https://h/mcp"}}, "theme": "x"}"#),
            (".config/Code/User/settings.json", r#"{"mcp": {"servers": {"d": {"command": "v"}}}}"#),
            (".config/opencode/opencode.json", r#"{"mcp": {"e": {"type": "local", "command": ["o", "p"]}}}"#),
            (".config/zed/settings.json", "{ oops"),
        ]);
        let names: Vec<_> = found.iter().map(|f| (f.client, f.name.as_str())).collect();
        let due = [("VS Code", "d"), ("Cursor", "a"), ("Codex", "b"), ("Gemini", "c"), ("opencode", "e")];
        assert_eq!(names, due);
        let env = &found[1].entry.as_ref().unwrap().env;
        assert_eq!(env, &[("K".to_owned(), "${SECRET:-d}".to_owned())]);
        assert_eq!(found[4].entry.as_ref().unwrap().args, ["p"]);
        assert_eq!(troubles.len(), 1, "{troubles:?}");
    }

    #[test]
    fn what_clients_say_of_a_server_is_carried_over_and_one_that_cannot_be_costs_itself() {
        let (found, troubles) = at_home(&[
            (
                ".config/Code/User/mcp.json",
                r#"{"servers": {"asks": {"command": "x", "env": {"K": "${input:key}"}},
                    "here": {"command": "x", "cwd": "${workspaceFolder}"},
                    "fine": {"command": "x", "cwd": "~/x", "envFile": "~/.env", "timeout": 5}}, "inputs": []}"#,
            ),
            (
                ".codex/config.toml",
                "[mcp_servers.far]\nurl = \"https://h/mcp\"\nbearer_token_env_var = \"TOK\"\nhttp_headers = { A = \"b\" }\n\
                 env_http_headers = { X = \"VAR\" }\ndisabled_tools = [\"rm\"]\n\
                 [mcp_servers.near]\ncommand = \"y\"\ncwd = \"/w\"\nenv_vars = [\"P\", {name = \"Q\"}]\nargs = [1, true]\n\
                 [mcp_servers.off]\ncommand = \"y\"\nenabled = false\n",
            ),
            (
                ".gemini/settings.json",
                r#"{"mcpServers": {"g": {"command": "x", "args": ["$5"], "env": {"K": "$KEY", "L": "a${L}"}}}}"#,
            ),
            (
                ".config/zed/settings.json",
                r#"{"context_servers": {"ext": {"source": "extension", "enabled": true, "settings": {}},
                    "own": {"source": "custom", "command": "z"}}}"#,
            ),
        ]);
        assert_eq!(troubles, Vec::<String>::new());
        let of = |name: &str| found.iter().find(|found| found.name == name).unwrap().entry.clone();
        for (name, told) in [
            ("asks", "\"K\" has ${input:key}"),
            ("here", "\"cwd\" has ${workspaceFolder}"),
            ("off", "disabled"),
            ("ext", "comes from an extension"),
        ] {
            assert!(of(name).unwrap_err().contains(told), "{name}: {:?}", of(name));
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fine = of("fine").unwrap();
        assert_eq!((fine.cwd.as_deref(), fine.env_file.as_deref()), (Some("~/x"), Some("~/.env")));
        assert_eq!(fine.elsewhere, ["timeout"]);
        let far = of("far").unwrap();
        let headers = [pair("Authorization", "Bearer ${TOK}"), pair("A", "b"), pair("X", "${VAR}")];
        assert_eq!(far.headers.len(), 3);
        assert!(headers.iter().all(|header| far.headers.contains(header)), "{:?}", far.headers);
        assert_eq!(far.deny, ["rm"]);
        let near = of("near").unwrap();
        assert_eq!(
            (near.env_vars, near.args),
            (vec!["P".to_owned(), "Q".into()], vec!["1".to_owned(), "true".into()])
        );
        assert_eq!(near.cwd.as_deref(), Some("/w"));
        let gemini = of("g").unwrap();
        assert_eq!(
            (gemini.env, gemini.args),
            (vec![pair("K", "${KEY}"), pair("L", "a${L}")], vec!["$5".to_owned()])
        );
        assert_eq!(of("own").unwrap().command.as_deref(), Some("z"));
    }
}
