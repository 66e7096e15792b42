//! Finds the servers that other clients on this machine have configured.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::read::{ImportedServer, import, import_projects};
use super::server_entry::ServerEntry;

/// A server in the configuration of another client.
#[derive(Clone, Debug)]
pub(crate) struct ClientServer {
    /// The client's name.
    pub(crate) client: &'static str,
    /// The client's file.
    pub(crate) path: PathBuf,
    /// The folder of the only project that has the server; `None` when all have it.
    pub(crate) project: Option<PathBuf>,
    /// The server's name there.
    pub(crate) name: String,
    /// Its entry, or why it cannot be imported.
    pub(crate) entry: Result<ServerEntry, String>,
}

/// The format of a client's file.
enum FileFormat {
    /// JSON that [`super::read`] reads.
    Json,
    /// The same JSON, with servers of single projects too.
    JsonWithProjects,
    /// The same JSON, with variables in the form of a shell.
    JsonWithShellVariables,
    /// A TOML table of servers with the same keys, by the table's name.
    Toml(&'static str),
}

/// The files that clients document: the client, the path below the home directory, and the format.
fn client_files() -> Vec<(&'static str, &'static str, FileFormat)> {
    let mac = cfg!(target_os = "macos");
    let pick = |on_mac, elsewhere| if mac { on_mac } else { elsewhere };
    vec![
        (
            "Claude Desktop",
            pick(
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Claude/claude_desktop_config.json",
            ),
            FileFormat::Json,
        ),
        ("Claude Code", ".claude.json", FileFormat::JsonWithProjects),
        (
            "VS Code",
            pick("Library/Application Support/Code/User/mcp.json", ".config/Code/User/mcp.json"),
            FileFormat::Json,
        ),
        (
            "VS Code",
            pick("Library/Application Support/Code/User/settings.json", ".config/Code/User/settings.json"),
            FileFormat::Json,
        ),
        ("Cursor", ".cursor/mcp.json", FileFormat::Json),
        ("Windsurf", ".codeium/windsurf/mcp_config.json", FileFormat::Json),
        ("Codex", ".codex/config.toml", FileFormat::Toml("mcp_servers")),
        ("Gemini", ".gemini/settings.json", FileFormat::JsonWithShellVariables),
        ("opencode", ".config/opencode/opencode.json", FileFormat::Json),
        ("Zed", ".config/zed/settings.json", FileFormat::Json),
    ]
}

/// The servers of all clients that have files below a home directory, and a line for each file that could not be read.
pub(crate) fn servers_of_clients(home: &Path) -> (Vec<ClientServer>, Vec<String>) {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for (client, place, format) in client_files() {
        let path = home.join(place);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                unreadable.push(format!("{client}: cannot read {}: {error}", path.display()));
                continue;
            }
        };
        let imported = match format {
            // Some clients make an empty file first.
            _ if text.trim().is_empty() => Ok(Vec::new()),
            FileFormat::Json => import(&text, false).map(of_the_user),
            FileFormat::JsonWithProjects => import(&text, false).and_then(|of_user| {
                let of_projects = import_projects(&text)?.into_iter().map(|(folder, servers)| {
                    (
                        Some(PathBuf::from(&folder)),
                        servers.into_iter().map(|server| in_folder(server, &folder)).collect(),
                    )
                });
                Ok(of_the_user(of_user).into_iter().chain(of_projects).collect())
            }),
            FileFormat::JsonWithShellVariables => import(&text, true).map(of_the_user),
            FileFormat::Toml(table) => toml(&text, table).map(of_the_user),
        };
        match imported {
            Ok(imported) => {
                for (project, servers) in imported {
                    found.extend(servers.into_iter().map(|ImportedServer { name, entry }| ClientServer {
                        client,
                        path: path.clone(),
                        project: project.clone(),
                        name,
                        entry,
                    }));
                }
            }
            Err(why) => unreadable.push(format!("{client}: {}:{why}", path.display())),
        }
    }
    (found, unreadable)
}

/// Servers of all projects.
fn of_the_user(servers: Vec<ImportedServer>) -> Vec<(Option<PathBuf>, Vec<ImportedServer>)> {
    vec![(None, servers)]
}

/// Lets a program of a project run in the project's folder, as Claude Code does, unless its entry has another `cwd`.
fn in_folder(mut server: ImportedServer, folder: &str) -> ImportedServer {
    if let Ok(entry) = &mut server.entry
        && entry.command.is_some()
    {
        entry.cwd.get_or_insert_with(|| folder.to_owned());
    }
    server
}

/// Reads a TOML table of servers. Its keys mean what they mean in JSON.
fn toml(text: &str, table: &str) -> Result<Vec<ImportedServer>, String> {
    let root: Value = toml::from_str(text).map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{line}: this is not valid TOML: {}", error.message())
    })?;
    match root[table].as_object() {
        Some(servers) => import(&json!({"mcpServers": servers}).to_string(), false),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a home directory with these files.
    fn expand_tilde(files: &[(&str, &str)]) -> (Vec<ClientServer>, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        for (place, text) in files {
            let path = home.path().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        servers_of_clients(home.path())
    }

    #[test]
    fn servers_are_found_where_clients_keep_them() {
        let (found, unreadable) = expand_tilde(&[
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
        assert_eq!(unreadable.len(), 1, "{unreadable:?}");
    }

    #[test]
    fn entries_are_imported_as_they_are_and_one_that_cannot_be_affects_no_other() {
        let (found, unreadable) = expand_tilde(&[
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
        assert_eq!(unreadable, Vec::<String>::new());
        let of = |name: &str| found.iter().find(|found| found.name == name).unwrap().entry.clone();
        for (name, told) in [
            ("asks", "\"K\" contains ${input:key}"),
            ("here", "\"cwd\" contains ${workspaceFolder}"),
            ("off", "disabled"),
            ("ext", "comes from an extension"),
        ] {
            assert!(of(name).unwrap_err().contains(told), "{name}: {:?}", of(name));
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fine = of("fine").unwrap();
        assert_eq!((fine.cwd.as_deref(), fine.env_file.as_deref()), (Some("~/x"), Some("~/.env")));
        assert_eq!(fine.ignored_keys, ["timeout"]);
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
