//! What whoever runs dateline types, edits and sees, where files, terminals and readers are as they are.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Client, PATIENCE, Program};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::DATELINE;
use crate::gateway::{demo, scripted};
use crate::program::{Run, finish};

/// A user of this machine, with a home of their own.
struct User(TempDir);

impl User {
    fn new() -> User {
        User(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Where this user's configuration is.
    fn config(&self) -> String {
        self.path(".config/dateline/config.json")
    }

    /// Writes a file, with the folders above it.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.path(name)
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env("HOME", self.0.path()).env("DATELINE_ADMIN_SOCKET", self.path("admin.sock"));
        for variable in
            ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "DATELINE_CONFIG", "DATELINE_LOG"]
        {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn types(&self, args: &[&str]) -> Run {
        finish(self.command(DATELINE, args)).await
    }

    /// Types what must work; gives what is printed.
    async fn works(&self, args: &[&str]) -> String {
        let run = self.types(args).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}: {}", run.out);
        run.out
    }

    /// Types what must fail; gives what is said of it.
    async fn fails(&self, code: i32, args: &[&str]) -> String {
        let run = self.types(args).await;
        assert_eq!(run.code, Some(code), "{args:?}: {} {}", run.out, run.err);
        run.err
    }

    async fn serves(&self, args: &[&str]) -> Program {
        Program::of(self.command(DATELINE, &[&["serve", "--listen", "127.0.0.1:0"], args].concat())).await
    }

    /// Waits until the running dateline has a server that fits.
    async fn until(&self, server: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let status = self.types(&["status", "--json"]).await.out;
                let status: Value = serde_json::from_str(&status).unwrap_or_default();
                let servers = status["servers"].as_array().into_iter().flatten();
                if let Some(found) = servers.clone().find(|s| s["name"] == server && fits(s)) {
                    return found.clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{server} is never {what}"))
    }
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn signal(program: &Program, name: &str) {
    let pid = program.child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status();
    assert!(sent.unwrap().success());
}

// Files.

#[testkit::test]
async fn what_changes_the_configuration_keeps_its_mode_and_its_link() {
    let user = User::new();
    user.works(&["add", "first", "--env", "TOKEN=secret", "--", DATELINE, "demo", "--stdio"]).await;
    assert_eq!(mode(&user.config()), 0o600, "a new one may hold secrets");
    // As those have it who keep their files in a repository.
    let real = user.path("dotfiles/dateline.json");
    std::fs::create_dir_all(user.path("dotfiles")).unwrap();
    std::fs::rename(user.config(), &real).unwrap();
    symlink("../../dotfiles/dateline.json", user.config()).unwrap();
    user.write(".cursor/mcp.json", &json!({"mcpServers": {"found": demo("modern")}}).to_string());
    for kept in [0o600, 0o640] {
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(kept)).unwrap();
        user.works(&["add", "second", "https://example.com/mcp"]).await;
        user.works(&["import", "--apply"]).await;
        assert!(std::fs::read_to_string(&real).unwrap().contains("found"));
        user.works(&["remove", "second"]).await;
        user.works(&["remove", "found"]).await;
        assert!(std::fs::symlink_metadata(user.config()).unwrap().is_symlink(), "{kept:o}");
        assert_eq!(mode(&real), kept);
        let text = std::fs::read_to_string(&real).unwrap();
        assert!(text.contains("secret") && !text.contains("second"), "{text}");
    }
    assert_eq!(std::fs::read_dir(user.path("dotfiles")).unwrap().count(), 1, "nothing is left beside");
}

#[testkit::test]
async fn servers_that_are_added_and_removed_at_the_same_time_are_all_added_and_removed() {
    let user = User::new();
    let names: Vec<String> = (0..12).map(|n| format!("server{n}")).collect();
    // The file and its folder are made by whichever comes first.
    let adding: Vec<_> = names.iter().map(|name| ["add", name, "https://example.com/mcp"]).collect();
    futures_util::future::join_all(adding.iter().map(|args| user.works(args))).await;
    let configured = || -> Vec<String> {
        let text = std::fs::read_to_string(user.config()).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let mut names: Vec<String> = config["mcpServers"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let mut all = names.clone();
    all.sort();
    assert_eq!(configured(), all);
    let removing: Vec<_> = names.iter().map(|name| ["remove", name.as_str()]).collect();
    futures_util::future::join_all(removing.iter().map(|args| user.works(args))).await;
    assert_eq!(configured(), [""; 0]);
}

// Entries as they are.

#[testkit::test]
async fn one_bad_entry_costs_itself_and_comes_back_when_it_is_mended() {
    let user = User::new();
    let config = |bad: Value| {
        json!({"mcpServers": {"good": demo("modern"), "bad": bad,
            "off": {"command": "${UNSET}", "disabled": true}}})
        .to_string()
    };
    user.write(".config/dateline/config.json", &config(json!({"command": "${UNSET_TOKEN}"})));
    let program = user.serves(&[]).await;
    user.until("good", "up", |s| s["state"] == "up").await;
    let bad = user.until("bad", "down", |s| s["state"] == "down").await;
    assert!(bad["why"].as_str().unwrap().contains("needs ${UNSET_TOKEN}"), "{bad}");
    let mut client = Client::connect(program.url.as_deref().unwrap());
    assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi");
    // Its owner sees it wherever they look, and the good one can be used by its name.
    assert!(user.works(&["logs", "bad"]).await.contains("needs ${UNSET_TOKEN}"));
    assert_eq!(user.works(&["call", "good", "add", "a=1", "b=2"]).await, "3\n");
    let said = user.fails(2, &["list", "bad"]).await;
    assert!(said.contains("config.json:1: the server \"bad\" cannot be used: \"command\" needs"), "{said}");
    let checked = user.types(&["check-config"]).await;
    assert_eq!(checked.code, Some(2));
    assert!(
        checked.out.contains("1 server that can be used") && checked.out.contains("needs ${UNSET_TOKEN}")
    );
    assert!(checked.err.contains("1 server in "), "{}", checked.err);
    let checked = user.types(&["check-config", "--json"]).await;
    let shown: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!((checked.code, &shown["unusable"][0]["name"]), (Some(2), &json!("bad")));
    // Mended, broken again while it runs, and taken away.
    for (entry, state) in [
        (demo("legacy"), Some("up")),
        (json!({"url": "notaurl"}), Some("down")),
        (json!({"comand": "x"}), Some("down")),
        (demo("modern"), Some("up")),
    ] {
        user.write(".config/dateline/config.json", &config(entry.clone()));
        let wanted =
            |s: &Value| s["state"] == state.unwrap() && (state != Some("down") || s["why"] != bad["why"]);
        user.until("bad", &format!("as by {entry}"), wanted).await;
    }
    let good = user.until("good", "up", |s| s["state"] == "up").await;
    assert_eq!(good["restarts"], 0, "the others ran all the time");
}

#[testkit::test]
async fn what_is_imported_can_always_be_served_and_what_was_left_out_is_named() {
    let user = User::new();
    user.write(
        ".config/Code/User/mcp.json",
        r#"{"servers": {"asks": {"command": "x", "env": {"KEY": "${input:key}"}},
                        "off": {"command": "${TOK}", "disabled": true},
                        "later": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${LATER_TOK}"}, "timeout": 9}}}"#,
    );
    user.write(
        ".config/zed/settings.json",
        r#"{"context_servers": {"ext": {"source": "extension", "settings": {}}}}"#,
    );
    user.write(
        ".codex/config.toml",
        &format!("[mcp_servers.fine]\ncommand = {DATELINE:?}\nargs = [\"demo\", \"--stdio\"]\ncwd = \"/\"\nenv_vars = [\"X\"]\n"),
    );
    user.write(".cursor/mcp.json", "{\"mcpServers\": {\"a\": oops");
    let shown = user.works(&["import", "--apply"]).await;
    for told in [
        "- asks from VS Code: not imported: its \"KEY\" contains ${input:key}",
        "- off from VS Code: not imported: it is disabled there",
        "- ext from Zed: not imported: it comes from an extension",
        "+ later  https://example.com/mcp",
        "not imported, since dateline does not use it: timeout",
        "it cannot be used yet: \"Authorization\" needs ${LATER_TOK}",
        "+ fine  ",
        "! Cursor: ",
        "added 2 servers to",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let text = std::fs::read_to_string(user.config()).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["mcpServers"]["fine"]["cwd"], "/");
    assert_eq!(kept["mcpServers"]["fine"]["env_vars"], json!(["X"]));
    let _program = user.serves(&[]).await;
    user.until("fine", "up", |s| s["state"] == "up").await;
    user.until("later", "down", |s| s["state"] == "down").await;
}

#[testkit::test]
async fn servers_of_a_project_are_listed_with_it_and_imported_when_asked() {
    let user = User::new();
    let (shop, blog) = (user.path("shop"), user.path("blog"));
    std::fs::create_dir_all(&shop).unwrap();
    let server = json!({"type": "stdio", "command": "sh", "args": ["-c", format!("pwd > seen; exec {DATELINE} demo --stdio")]});
    let projects = json!({
        &shop: {"allowedTools": [], "mcpServers": {"db": server, "api": {"type": "http", "url": "https://example.com/mcp"}}},
        &blog: {"mcpServers": {"db": {"command": "other"}}, "history": []},
        "/nowhere": {"mcpServers": {}},
    });
    let all = json!({"mcpServers": {"everywhere": {"command": "x"}}, "projects": projects});
    user.write(".claude.json", &all.to_string());
    let shown = user.works(&["import"]).await;
    let left_out = format!(
        "- db from Claude Code (project {shop}): not imported: it is for that project only; `--project"
    );
    for told in
        ["+ everywhere  x", &left_out, &format!("- db from Claude Code (project {blog}): not imported")]
    {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(shown.contains("1 server would be added"), "{shown}");
    let listed: Value = serde_json::from_str(&user.works(&["import", "--json"]).await).unwrap();
    let listed = listed["servers"].as_array().unwrap();
    let of_shop = listed.iter().filter(|server| server["project"] == shop.as_str()).count();
    assert_eq!((listed.len(), of_shop), (4, 2), "{listed:?}");
    let said = user.fails(2, &["import", "--project", "/nowhere"]).await;
    assert!(
        said.contains(&format!("no servers for the project /nowhere; it has some for {blog}, {shop}")),
        "{said}"
    );
    let shown = user.works(&["import", "--apply", "--project", &format!("{shop}/.")]).await;
    assert!(shown.contains(&format!("(from Claude Code (project {shop})")), "{shown}");
    assert!(shown.contains("added 3 servers"), "{shown}");
    let text = std::fs::read_to_string(user.config()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let servers = &config["mcpServers"];
    assert_eq!((&servers["db"]["cwd"], &servers["api"]["cwd"]), (&json!(shop), &Value::Null), "{text}");
    assert_eq!(servers["everywhere"]["cwd"], Value::Null, "{text}");
    user.works(&["list", "db"]).await;
    let seen = std::fs::read_to_string(user.path("shop/seen")).unwrap();
    assert_eq!(
        std::path::Path::new(seen.trim()).canonicalize().unwrap(),
        std::path::Path::new(&shop).canonicalize().unwrap()
    );
    // The other project's server has a name that is taken.
    let shown = user.works(&["import", "--project", &blog]).await;
    assert!(
        shown.contains(&format!(
            "- db from Claude Code (project {blog}): not imported: there is a server with this name"
        )),
        "{shown}"
    );
}

#[testkit::test]
async fn what_cannot_work_is_not_added_and_what_may_not_is_said() {
    let user = User::new();
    for (args, told) in [
        (&["x", "localhost:4400"][..], "did you mean http://localhost:4400/mcp?"),
        (&["x", "ftp://h/mcp"], "http:// or https://"),
        (&["x", "uvx"], "dateline add x -- uvx"),
        (&["x", "--", ""], "empty \"command\""),
        (&["x", "https://h/mcp", "--env", "A=b"], "--header"),
        (&["x", "--header", "A=b", "--", "npx"], "--env"),
        (&["x", "https://h/mcp", "--header", "A"], "NAME=VALUE"),
        (&["", "https://h/mcp"], "needs a name"),
    ] {
        let said = user.fails(2, &[&["add"], args].concat()).await;
        assert!(said.contains(told), "{args:?}: {said}");
    }
    assert!(!std::path::Path::new(&user.config()).exists(), "nothing was written");
    let said = user.works(&["add", "gone", "--", "dateline-no-such-program"]).await;
    assert!(
        said.contains("no dateline is running") && said.contains("warning: there is no program"),
        "{said}"
    );
    let said = user
        .works(&["add", "far", "https://example.com", "--header", "Authorization: Bearer ${UNSET}"])
        .await;
    assert!(said.contains("warning: it cannot be used yet: \"Authorization\" needs ${UNSET}"), "{said}");
    let text = std::fs::read_to_string(user.config()).unwrap();
    assert!(text.contains("\"Authorization\": \"Bearer ${UNSET}\""), "{text}");
}

#[testkit::test]
async fn a_file_of_variables_that_others_can_read_is_warned_of_and_used() {
    let user = User::new();
    let variables = user.write("notes/.env", "API_TOKEN=hush-hush\n");
    let seen = user.path("seen");
    let script = format!("echo $API_TOKEN > {seen}; exec {DATELINE} demo --stdio");
    let server = json!({"command": "sh", "args": ["-c", script], "envFile": "~/notes/.env"});
    user.write(".config/dateline/config.json", &json!({"mcpServers": {"notes": server}}).to_string());
    for (mode, open) in [(0o644, true), (0o620, true), (0o600, false)] {
        std::fs::set_permissions(&variables, std::fs::Permissions::from_mode(mode)).unwrap();
        let warning =
            format!("other users can read or write {variables}; to prevent that: chmod 600 {variables}");
        let checked = user.works(&["check-config"]).await;
        assert_eq!(checked.contains(&warning), open, "{mode:o}: {checked}");
        let mut client =
            Client::pipe("env", &[&format!("HOME={}", user.0.path().display()), DATELINE, "stdio"]);
        assert_eq!(client.call("echo", json!({"message": "hi"})).await.said(), "hi", "{mode:o}");
        if open {
            let said = client.program.as_mut().unwrap().line("warning").await;
            assert!(said.contains(&warning) && !said.contains("hush"), "{mode:o}: {said}");
        }
        assert_eq!(
            std::fs::read_to_string(&seen).unwrap(),
            "hush-hush\n",
            "{mode:o}: it is used all the same"
        );
    }
}

// From the demo to the first server.

#[testkit::test]
async fn a_dateline_without_configuration_serves_the_first_one_that_appears_and_keeps_it_when_it_goes() {
    let user = User::new();
    let program = user.serves(&[]).await;
    let mut client = Client::connect(program.url.as_deref().unwrap());
    client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    client.next("notifications/subscriptions/acknowledged").await;
    user.until("demo", "up", |s| s["state"] == "up").await;
    let server = scripted(&["--tools", "mine"]);
    let mut words: Vec<&str> = vec!["add", "mine"];
    let env = format!("DATELINE_TRAFFIC={}", server["env"]["DATELINE_TRAFFIC"].as_str().unwrap());
    words.extend(["--env", &env, "--", server["command"].as_str().unwrap()]);
    words.extend(server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()));
    let said = user.works(&words).await;
    assert!(said.contains("the running dateline serves it"), "{said}");
    client.next("notifications/tools/list_changed").await;
    user.until("mine", "up", |s| s["state"] == "up").await;
    let listed = client.request("tools/list", json!({})).await;
    let names: Vec<_> =
        listed.result()["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["mine"], "the demo is gone");
    // A file that goes takes nothing with it; one that comes back is served.
    let text = std::fs::read_to_string(user.config()).unwrap();
    std::fs::remove_dir_all(user.path(".config")).unwrap();
    user.write(".config/dateline/config.json", &text.replace("\"mine\": {", "\"again\": {"));
    user.until("again", "up", |s| s["state"] == "up").await;
    std::fs::remove_file(user.config()).unwrap();
    signal(&program, "HUP");
    let said = user.works(&["add", "another", "--config", &user.path("other.json"), "https://h/mcp"]).await;
    assert!(
        said.contains("the running dateline has another configuration: ")
            && said.contains(".config/dateline/config.json"),
        "{said}"
    );
    user.until("again", "up", |s| s["state"] == "up").await;
    user.write(".config/dateline/config.json", &text);
    user.until("mine", "up", |s| s["state"] == "up").await;
    let said = user.works(&["remove", "mine"]).await;
    assert!(said.contains("the running dateline does not serve it either"), "{said}");
}

#[testkit::test]
async fn a_linked_configuration_is_watched_where_it_is() {
    let user = User::new();
    let config = |name: &str| json!({"mcpServers": {name: demo("modern")}}).to_string();
    let real = user.write("dotfiles/dateline.json", &config("one"));
    std::fs::create_dir_all(user.path(".config/dateline")).unwrap();
    symlink(&real, user.config()).unwrap();
    let _program = user.serves(&[]).await;
    user.until("one", "up", |s| s["state"] == "up").await;
    user.write("dotfiles/dateline.json", &config("two"));
    user.until("two", "up", |s| s["state"] == "up").await;
    // The link is turned to another file, in another folder, which is watched from then on.
    let other = user.write("elsewhere/dateline.json", &config("three"));
    symlink(&other, user.path("link")).unwrap();
    std::fs::rename(user.path("link"), user.config()).unwrap();
    user.until("three", "up", |s| s["state"] == "up").await;
    user.write("elsewhere/dateline.json", &config("four"));
    user.until("four", "up", |s| s["state"] == "up").await;
}

// Questions and their answers.

#[testkit::test]
async fn what_was_meant_is_named() {
    let user = User::new();
    let config = json!({"mcpServers": {"notes": demo("modern"), "other": demo("legacy")}});
    user.write(".config/dateline/config.json", &config.to_string());
    let program = user.serves(&[]).await;
    let url = program.url.clone().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    user.until("notes", "up", |s| s["state"] == "up").await;
    for (code, args, told) in [
        (2, &["logs", "nots"][..], "has no server \"nots\" (did you mean \"notes\"?); it has: notes, other"),
        (2, &["logs", "-f", "nobody"], "it has: notes, other"),
        (2, &["list", address], &format!("did you mean http://{address}/mcp?")),
        (2, &["list", "nots"], "did you mean \"notes\"?"),
        (3, &["list", &format!("http://{address}")], &format!("did you mean http://{address}/mcp?")),
        (2, &["call", "notes", "add", "a=[1,"], "it ends too early"),
        (2, &["call", "notes", "add", "{\"a\": 1,"], "it ends too early"),
        (1, &["call", "notes", "ad", "a=1", "b=2"], "did you mean \"add\"?"),
        (2, &["demo", "--listen", "localhost"], "has no port"),
        (2, &["check-config", &user.path("none.json")], "cannot read"),
    ] {
        let said = user.fails(code, args).await;
        assert!(said.contains(told), "{args:?}: {said}");
        assert!(!said.contains("EOF") && !said.contains("expected value"), "{args:?}: {said}");
    }
    let checked = user.works(&["check-config"]).await;
    assert!(checked.contains("is valid, with 2 servers\n"), "{checked}");
    user.works(&["remove", "other"]).await;
    let checked = user.works(&["check-config"]).await;
    assert!(checked.contains("is valid, with 1 server\n"), "{checked}");
}

#[testkit::test]
async fn a_port_by_itself_is_listened_on_at_this_machine() {
    let user = User::new();
    let program = Program::of(user.command(DATELINE, &["demo", "--listen", "0"])).await;
    assert!(program.url.as_deref().unwrap().starts_with("http://127.0.0.1:"), "{:?}", program.url);
}

#[testkit::test]
async fn on_a_terminal_it_is_said_what_is_waited_for_and_taken_back() {
    let user = User::new();
    let go = user.path("go");
    let slow = format!("while ! [ -e '{go}' ]; do sleep 0.1; done; exec '{DATELINE}' demo --stdio");
    let typed = format!("'{DATELINE}' list -- sh -c \"{slow}\"");
    let mut command = user.command("script", &["-qec", &typed, "/dev/null"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (mut seen, mut chunk) = (String::new(), [0; 4096]);
    let watching = async {
        loop {
            let read = screen.read(&mut chunk).await.unwrap_or(0);
            seen += &String::from_utf8_lossy(&chunk[..read]);
            if seen.contains("waiting for sh to answer") && !std::path::Path::new(&go).exists() {
                std::fs::write(&go, "").unwrap();
            }
            if read == 0 {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, watching).await.expect("it ends");
    let at = seen.find("waiting for").unwrap_or_else(|| panic!("{seen}"));
    let taken_back = seen[at..].find("\r\u{1b}[K").unwrap_or_else(|| panic!("{seen:?}"));
    assert!(seen[at + taken_back..].contains("Tools"), "{seen:?}");
}

// What servers say.

/// Everything in it that steers a terminal or is not seen; line ends are counted by who calls.
fn hidden(text: &str) -> Vec<char> {
    text.chars()
        .filter(|c| {
            (c.is_control() && *c != '\n')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
        })
        .collect()
}

#[testkit::test]
async fn nothing_that_a_server_says_steers_the_terminal_or_forges_a_row() {
    let no = Vec::<char>::new();
    let evil = "red\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{2066}\u{200b}\u{e0041}\u{2028}\r\nforged  up";
    let definition =
        json!({"name": evil, "description": evil, "inputSchema": {"type": "object"}}).to_string();
    let server = scripted(&["--name", evil, "--definition", &definition]);
    let dying = json!({"command": "sh", "args": ["-c", "printf 'red\\033[31m\\302\\2332J\\342\\200\\256 \\nforged up\\n' >&2; exit 3"]});
    let user = User::new();
    let config =
        json!({"mcpServers": {"one": server, "dying": dying, "x\nforged up": {"url": "\u{202e}no"}}});
    user.write(".config/dateline/config.json", &config.to_string());
    let _program = user.serves(&[]).await;
    user.until("one", "up", |s| s["state"] == "up").await;
    user.until("dying", "down", |s| s["state"] == "down").await;
    let result =
        json!({"result": json!({"content": [{"type": "text", "text": evil}]}).to_string()}).to_string();
    let failure =
        json!({"result": json!({"isError": true, "content": [{"type": "text", "text": evil}]}).to_string()})
            .to_string();
    let error = json!({"error": json!({"code": 1, "message": evil}).to_string()}).to_string();
    for (args, lines_of_its_own) in [
        (&["list", "one"][..], false),
        (&["call", "one", "raw", &result], true),
        (&["call", "one", "raw", &failure], true),
        (&["call", "one", "fail", &error], false),
        (&["status"], false),
        (&["logs"], false),
        (&["check-config"], false),
    ] {
        for json in [false, true] {
            let args = [args, if json { &["--json"] } else { &[] }].concat();
            let run = user.types(&args).await;
            let text = format!("{}{}", run.out, run.err);
            assert_eq!(hidden(&text), no, "{args:?}: {text:?}");
            let forged = text.lines().any(|line| line.trim_start().starts_with("forged"));
            assert_eq!(forged, lines_of_its_own && !json, "{args:?}: {text:?}");
            assert!(text.contains("red"), "{args:?}: {text:?}");
        }
    }
    // Programs read the same again.
    let listed: Value = serde_json::from_str(&user.works(&["list", "one", "--json"]).await).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == evil), "{listed}");
    // Nor in what dateline logs itself.
    for format in ["text", "json"] {
        let mut command = user.command(DATELINE, &["stdio", "--log-level", "trace", "--log-format", format]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = child.stderr.take().unwrap();
        let (mut seen, mut chunk) = (String::new(), [0; 4096]);
        let reading = async {
            while seen.matches("red").count() < 1 || !seen.contains("exit status") {
                let read = log.read(&mut chunk).await.unwrap();
                assert_ne!(read, 0, "{seen}");
                seen += &String::from_utf8_lossy(&chunk[..read]);
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("it is logged");
        assert_eq!(hidden(&seen), no, "{format}: {seen:?}");
        assert!(!seen.lines().any(|line| line.starts_with("forged")), "{format}: {seen}");
    }
}

// Readers that are not there.

/// A shell's words that open descriptor 4 onto a pipe: one that is full and never read, or one whose reader is gone.
fn onto_pipe(full: bool, user: &User) -> String {
    let pipe = user.path("pipe");
    if full {
        format!("mkfifo {pipe}; exec 4<>{pipe}; dd if=/dev/zero of={pipe} bs=4096 oflag=nonblock 2>&-; ")
    } else {
        format!("mkfifo {pipe}; exec 3<>{pipe} 4>{pipe} 3<&-; ")
    }
}

#[testkit::test]
async fn a_standard_error_that_is_full_closed_or_not_read_stops_nothing() {
    for (what, prepared, stderr) in [
        ("full", true, "2>&4"),
        ("without a reader", false, "2>&4"),
        ("on a full disk", false, "2>/dev/full"),
        ("closed", false, "2>&-"),
    ] {
        for serve in [true, false] {
            let label = format!("{what}, serve: {serve}");
            let user = User::new();
            let mut server = demo("modern");
            server["arsg"] = json!([]);
            let noisy = format!(
                "i=0; while [ $i -lt 300 ]; do echo a line of a server that talks $i >&2; i=$((i+1)); done; exec {DATELINE} demo --stdio"
            );
            let noisy = json!({"command": "sh", "args": ["-c", noisy]});
            let config = json!({"mcpServers": {"one": server, "two": noisy, "bad": {"command": "${UNSET}"}}});
            let config = user.write("config.json", &config.to_string());
            let socket = user.path("socket");
            let how = if serve { format!("serve --listen unix:{socket}") } else { "stdio".to_owned() };
            let script = format!(
                "{}exec {DATELINE} {how} --config {config} --log-level trace {stderr}",
                onto_pipe(prepared, &user)
            );
            let mut client = if serve {
                let mut command = user.command("bash", &["-c", &script]);
                let child = command.stdout(Stdio::null()).spawn().unwrap();
                let listening = async {
                    while !std::path::Path::new(&socket).exists() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                };
                tokio::time::timeout(PATIENCE, listening)
                    .await
                    .unwrap_or_else(|_| panic!("{label}: it listens"));
                let client = Client::socket(&format!("unix:{socket}")).await;
                ends(client, child, &label).await;
                continue;
            } else {
                Client::pipe("bash", &["-c", &script])
            };
            assert_eq!(client.call("one_echo", json!({"message": "hi"})).await.said(), "hi", "{label}");
            client.close_input();
            assert_eq!(client.exit().await, Some(0), "{label}");
        }
    }
}

async fn ends(mut client: Client, mut child: tokio::process::Child, label: &str) {
    assert_eq!(client.call("one_echo", json!({"message": "hi"})).await.said(), "hi", "{label}");
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
    let ended =
        tokio::time::timeout(PATIENCE, child.wait()).await.unwrap_or_else(|_| panic!("{label}: it ends"));
    assert_eq!(ended.unwrap().code(), Some(0), "{label}");
}

#[testkit::test]
async fn a_reader_of_standard_output_that_went_away_is_no_failure() {
    let user = User::new();
    let config = json!({"mcpServers": {"one": demo("modern")}});
    user.write(".config/dateline/config.json", &config.to_string());
    let _program = user.serves(&[]).await;
    user.until("one", "up", |s| s["state"] == "up").await;
    for args in [
        "list one",
        "list one --json",
        "call one echo message=hi",
        "status",
        "status --json",
        "logs",
        "logs -f",
        "revisions",
        "check-config",
        "import",
        "key",
        "--help",
        "add x https://h/mcp",
        "remove x",
    ] {
        let elsewhere = User::new();
        let script = format!("{}exec {DATELINE} {args} >&4", onto_pipe(false, &elsewhere));
        let run = finish(user.command("bash", &["-c", &script])).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args}");
    }
    // What cannot be written is one all the same.
    let run = finish(user.command("bash", &["-c", &format!("exec {DATELINE} list one >/dev/full")])).await;
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("standard output cannot be written"), "{}", run.err);
}
