//! The command line: what is printed where, how the program ends, and which configuration it reads.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::matrix::REVISIONS;
use testkit::{Between, Client, LATEST_LEGACY, LEGACY, MODERN, PATIENCE, Program, Wire, covers};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::DATELINE;
use crate::gateway::{Config, demo, scripted};

/// How a run of the program ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, with nothing of the tester's own configuration.
fn dateline(args: &[&str]) -> Command {
    let mut command = Command::new(DATELINE);
    command.args(args).env("HOME", "/dev/null").env_remove("DATELINE_CONFIG").env_remove("XDG_CONFIG_HOME");
    command.env_remove("DATELINE_LOG").stdin(Stdio::null()).kill_on_drop(true);
    command
}

pub(crate) async fn finish(mut command: Command) -> Run {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _traffic = testkit::ScriptedTraffic::of(&child);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.expect("the program ends in time").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) async fn run(args: &[&str]) -> Run {
    let run = finish(dateline(args)).await;
    assert!(!run.err.contains("panicked"), "{args:?}: {}", run.err);
    run
}

/// Runs what must work; gives what it printed.
pub(crate) async fn works(args: &[&str]) -> String {
    let run = run(args).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}: {}", run.out);
    run.out
}

/// Asserts that a run fails with this code and one line on stderr that holds these words.
pub(crate) async fn complains(args: &[&str], code: i32, words: &[&str]) {
    let run = run(args).await;
    let label = format!("{args:?}: {:?} {}", run.code, run.err);
    assert_eq!(run.code, Some(code), "{label}");
    assert_eq!(run.err.lines().count(), 1, "{label}");
    assert!(run.err.starts_with("dateline: ") && run.err.ends_with('\n'), "{label}");
    assert!(words.iter().all(|word| run.err.contains(word)), "{label} lacks one of {words:?}");
    assert_eq!(run.out, "", "{label}");
}

/// A directory that is there as long as this is.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("dateline-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Writes a file, with the directories above it.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A demo over HTTP, for one era or both.
async fn demo_http(era: &[&str]) -> (Program, String) {
    let program = Program::http(DATELINE, &[&["demo", "--listen", "127.0.0.1:0"], era].concat()).await;
    let url = program.url.clone().unwrap();
    (program, url)
}

// Usage.

#[testkit::test]
async fn help_and_version_are_printed_and_are_no_failure() {
    for args in
        [&["--help"][..], &["help"], &["serve", "--help"], &["call", "--help"], &["revisions", "--help"]]
    {
        assert!(works(args).await.contains("Usage:"), "{args:?}");
    }
    for code in ["0 done", "1 the server", "2 wrong usage", "3 a server cannot", "4 the address"] {
        assert!(works(&["--help"]).await.contains(code), "{code}");
    }
    let version = works(&["--version"]).await;
    assert_eq!(version, format!("dateline {}\n", env!("CARGO_PKG_VERSION")));
}

#[testkit::test]
async fn wrong_usage_is_exit_code_2_and_nothing_on_stdout() {
    for (args, word) in [
        (&["frobnicate"][..], "frobnicate"),
        (&[], "Usage"),
        (&["serve", "--nonsense"], "--nonsense"),
        (&["serve", "surplus"], "surplus"),
        (&["demo", "--era", "future"], "future"),
        (&["demo", "--stdio", "--listen", "127.0.0.1:0"], "--listen"),
        (&["list"], "TARGET"),
        (&["call"], "TARGET"),
        (&["serve", "--max-message", "many"], "many"),
    ] {
        let run = run(args).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(word), "{args:?}: {}", run.err);
    }
    complains(&["call", "http://127.0.0.1:1/mcp"], 2, &["name the tool"]).await;
    complains(&["--log-level", "a=b=c", "list", "x"], 2, &["--log-level", "a=b=c"]).await;
    complains(&["list", "nobody"], 2, &["nobody", "neither a URL nor"]).await;
    let config = Config::new(&[("one", demo("modern")), ("two", demo("modern"))]);
    complains(&["list", "nobody", "--config", config.path()], 2, &["nobody", "one, two"]).await;
    complains(&["call", "--config", config.path(), "one", "add", "a"], 2, &["\"a\"", "key=value"]).await;
    complains(&["call", "--config", config.path(), "one", "add", "{\"a\":"], 2, &["JSON"]).await;
}

#[testkit::test]
async fn a_configuration_that_cannot_be_read_is_one_line_with_its_place_and_exit_code_2() {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let commands: [&[&str]; 4] =
        [&serve, &["stdio", "--config"], &["list", "x", "--config"], &["call", "x", "y", "--config"]];
    for (text, words) in [
        ("{ // a comment\n  \"mcpServers\": {\n    \"x\" {}\n  }\n}\n", &[".json:3:"][..]),
        ("{\"mcpServers\": {}} surplus", &[".json:1:"]),
        ("", &["mcpServers"]),
        ("[]", &["must be an object"]),
        ("{\"mcpServers\": []}", &["\"mcpServers\" must be an object"]),
    ] {
        let config = Config::text(text);
        for command in commands {
            let words = [words, &[config.path()]].concat();
            complains(&[command, &[config.path()]].concat(), 2, &words).await;
        }
    }
    // One entry costs itself: only who wants that one is refused.
    for (text, word) in [
        ("{\"mcpServers\": {\"x\": []}}", "\"x\" must be an object"),
        ("{\"mcpServers\": {\"x\": {\"args\": []}}}", "\"x\" has neither a \"command\" nor a \"url\""),
        ("{\"mcpServers\": {\"x\": {\"command\": 1}}}", "\"command\" must be a string"),
        ("{\"mcpServers\": {\"x\": {\"url\": 1}}}", "\"url\" must be a string"),
    ] {
        let config = Config::text(text);
        for command in [commands[2], commands[3]] {
            complains(&[command, &[config.path()]].concat(), 2, &[word, config.path()]).await;
        }
    }
    for command in commands {
        let args = [command, &["/nonexistent/mcp.json"]].concat();
        complains(&args, 2, &["cannot read the configuration /nonexistent/mcp.json"]).await;
        complains(&[command, &["/"]].concat(), 2, &["cannot read the configuration /"]).await;
    }
}

// Addresses.

#[testkit::test]
async fn an_address_that_cannot_be_listened_on_is_exit_code_4() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "demo"] {
        complains(&[command, "--listen", &address], 4, &["cannot listen", &address, "--listen"]).await;
    }
    // With servers running that have to be ended.
    let config = Config::new(&[("one", demo("modern")), ("two", scripted(&[]))]);
    complains(&["serve", "--config", config.path(), "--listen", &address], 4, &["cannot listen"]).await;
}

#[testkit::test]
async fn http_02_an_address_that_others_reach_needs_to_be_allowed() {
    // Who may connect is settled before anybody speaks.
    covers(&REVISIONS, Wire::Http, Between::Nothing);
    for address in ["0.0.0.0:0", "[::]:0", "0.0.0.0:80", "192.0.2.1:0", "example.com:0"] {
        for command in ["serve", "demo"] {
            complains(&[command, "--listen", address], 2, &[address, "--allow-remote"]).await;
        }
    }
    for command in ["serve", "demo"] {
        let program = Program::http(DATELINE, &[command, "--listen", "0.0.0.0:0", "--allow-remote"]).await;
        let url = program.url.clone().unwrap().replace("0.0.0.0", "127.0.0.1");
        assert_eq!(works(&["call", &url, "add", "a=40", "b=2"]).await, "42\n", "{command}");
    }
    for address in ["127.0.0.1:0", "localhost:0", "[::1]:0"] {
        let program = Program::http(DATELINE, &["demo", "--listen", address]).await;
        let url = program.url.clone().unwrap();
        assert!(url.ends_with("/mcp"), "{url}");
        assert_eq!(works(&["call", &url, "add", "a=40", "b=2"]).await, "42\n", "{address}");
    }
}

// The client in the terminal.

#[testkit::test]
async fn what_is_no_server_s_url_is_wrong_usage_and_what_cannot_be_reached_is_exit_code_3() {
    for url in ["ftp://127.0.0.1/mcp", "http://", "http://[::1/mcp", "://x"] {
        complains(&["list", url], 2, &["cannot use the URL", url]).await;
        complains(&["call", url, "add"], 2, &["cannot use the URL", url]).await;
    }
    // A port that is taken, so that nobody else gets it, but not listened on.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp", deaf.local_addr().unwrap());
    complains(&["list", &url], 3, &["cannot reach", &url, "refused"]).await;
    complains(&["call", &url, "add", "a=1"], 3, &["cannot reach", &url]).await;
    complains(&["list", "--", "/nonexistent/program"], 3, &["cannot start", "/nonexistent/program"]).await;
    complains(&["call", "add", "--", "/nonexistent/program"], 3, &["cannot start"]).await;
    complains(&["list", "--", "sh", "-c", "echo no luck today >&2"], 3, &["closed", "no luck today"]).await;
    let config = Config::new(&[("gone", json!({"command": "/nonexistent/program"}))]);
    complains(&["list", "gone", "--config", config.path()], 3, &["cannot start"]).await;
}

#[testkit::test]
async fn a_web_server_that_is_no_mcp_server_is_exit_code_3() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = "<html>\n<body>It works!</body>\n</html>\n";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let response = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    complains(&["list", &url], 3, &[&url, "does not speak the protocol"]).await;
    serving.abort();
}

#[testkit::test]
async fn an_error_of_the_server_is_exit_code_1() {
    for era in [&[][..], &["--era", "legacy"], &["--era", "modern"]] {
        let (_program, url) = demo_http(era).await;
        complains(&["call", &url, "no_such_tool"], 1, &["no_such_tool"]).await;
        complains(&["call", &url, "test_error_handling"], 1, &["intentionally returns an error"]).await;
        complains(&["call", &url, "add", "a=1"], 1, &["\"b\""]).await;
        complains(&["call", &url, "test_elicitation", "message=hi"], 1, &[]).await;
        let program = [&["demo", "--stdio"], era].concat();
        let args = [&["call", "no_such_tool", "--", DATELINE], &program[..]].concat();
        complains(&args, 1, &["no_such_tool"]).await;
        // What a tool says of its failure can be read by programs too.
        let run = run(&["call", "--json", &url, "test_error_handling"]).await;
        assert_eq!((run.code, run.err.lines().count()), (Some(1), 1), "{}", run.err);
        let result: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(result["isError"], true);
    }
}

#[testkit::test]
async fn a_tool_is_called_at_a_url_by_a_configured_name_and_by_a_command() {
    for (era, flags) in
        [("both", &[][..]), ("legacy", &["--era", "legacy"]), ("modern", &["--era", "modern"])]
    {
        let (_program, url) = demo_http(flags).await;
        let args = [&["demo", "--stdio"], flags].concat();
        let config = Config::new(&[("mine", json!({"command": DATELINE, "args": args}))]);
        let tool = ["add", "a=40", "b=2"];
        for args in [
            [&["call", &url], &tool[..]].concat(),
            [&["call", "mine", "--config", config.path()], &tool[..]].concat(),
            [&["call"], &tool[..], &["--", DATELINE], &args[..]].concat(),
        ] {
            assert_eq!(works(&args).await, "42\n", "{era} {args:?}");
        }
        let text = works(&["call", &url, "add", "a=40", "b=2", "--json"]).await;
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["structuredContent"], json!({"sum": 42}), "{era}");
        assert_eq!(result["content"][0]["type"], "text", "{era}");
    }
}

#[testkit::test]
async fn arguments_are_json_or_keys_with_values_and_text_is_what_the_schema_says_is_text() {
    let (_program, url) = demo_http(&[]).await;
    for (tool, said) in [
        (&["add", "{\"a\": 40, \"b\": 2}"][..], "42\n"),
        (&["add", "a=0.5", "b=0.25"], "0.75\n"),
        (&["echo", "message=42"], "42\n"),
        (&["echo", "message=a=b \u{e9}"], "a=b \u{e9}\n"),
        (&["test_simple_text"], "This is a simple text response for testing.\n"),
        (&["query_region", "region=eu", "query=what?"], "eu: what?\n"),
    ] {
        assert_eq!(works(&[&["call", &url], tool].concat()).await, said, "{tool:?}");
    }
}

#[testkit::test]
async fn a_server_is_listed_at_a_url_by_a_configured_name_and_by_a_command() {
    for (flags, revision) in
        [(&[][..], MODERN), (&["--era", "legacy"], LATEST_LEGACY), (&["--era", "modern"], MODERN)]
    {
        let (_program, url) = demo_http(flags).await;
        let args = [&["demo", "--stdio"], flags].concat();
        let config = Config::new(&[("mine", json!({"command": DATELINE, "args": args}))]);
        let by_command = [&["list", "--", DATELINE], &args[..]].concat();
        for target in [&["list", &url][..], &["list", "mine", "--config", config.path()], &by_command] {
            let text = works(target).await;
            let first = format!("dateline-demo {}, revision {revision}", env!("CARGO_PKG_VERSION"));
            assert_eq!(text.lines().next(), Some(&*first), "{target:?}");
            for word in ["\nTools\n", "\nPrompts\n", "\nResources\n", "\nResource templates\n"] {
                assert!(text.contains(word), "{target:?}: {text}");
            }
            for entry in ["  add ", "  haiku ", "  demo://welcome ", "  test://template/{id}/data "] {
                assert_eq!(text.matches(entry).count(), 1, "{target:?} {entry}: {text}");
            }
            let text = works(&[&["--json"], target].concat()).await;
            let found: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(found["server"]["name"], "dateline-demo", "{target:?}");
            assert_eq!(found["revision"], revision, "{target:?}");
            for (list, by, one) in [
                ("tools", "name", "countdown"),
                ("prompts", "name", "haiku"),
                ("resources", "uri", "demo://welcome"),
                ("resourceTemplates", "uriTemplate", "test://template/{id}/data"),
            ] {
                let entries = found[list].as_array().unwrap();
                assert!(entries.iter().any(|entry| entry[by] == one), "{target:?}: {text}");
            }
        }
    }
}

#[testkit::test]
async fn a_server_cannot_steer_the_terminal() {
    let name = "\u{1b}[31mred\u{7}";
    let definition =
        json!({"name": "red", "description": name, "inputSchema": {"type": "object"}}).to_string();
    let server = scripted(&["--name", name, "--definition", &definition]);
    let config = Config::new(&[("one", server)]);
    let result =
        json!({"result": json!({"content": [{"type": "text", "text": name}]}).to_string()}).to_string();
    let error = json!({"error": json!({"code": 1, "message": name}).to_string()}).to_string();
    for args in [&["list", "one"][..], &["call", "one", "raw", &result], &["call", "one", "fail", &error]] {
        let run = run(&[args, &["--config", config.path()]].concat()).await;
        let text = run.out + &run.err;
        assert!(text.contains("red") && !text.contains(['\u{1b}', '\u{7}']), "{args:?}: {text:?}");
    }
}

// Configuration.

/// A configuration of one scripted server with one tool.
fn marked(tool: &str) -> String {
    json!({"mcpServers": {"mine": scripted(&["--tools", tool])}}).to_string()
}

/// The tools that `dateline stdio` serves with these variables in this working directory.
async fn served(variables: &[(&str, &Path)], directory: &Path) -> Vec<String> {
    let variables: Vec<String> = variables.iter().map(|(k, v)| format!("{k}={}", v.display())).collect();
    let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
    let args = [&["-C", directory.to_str().unwrap()], &variables[..], &[DATELINE, "stdio"]].concat();
    let mut client = Client::pipe("env", &args);
    let reply = client.request("tools/list", json!({})).await;
    let tools = reply.result()["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[testkit::test]
async fn the_configuration_is_the_named_one_else_the_variable_s_else_the_user_s_and_never_the_directory_s() {
    let here = Directory::new("here");
    for name in [
        "config.json",
        "dateline.json",
        ".dateline.json",
        "mcp.json",
        ".mcp.json",
        "dateline/config.json",
        ".dateline/config.json",
        ".config/dateline/config.json",
        ".vscode/mcp.json",
        ".cursor/mcp.json",
    ] {
        here.file(name, &marked("from_the_directory"));
    }
    let xdg = Directory::new("xdg");
    xdg.file("dateline/config.json", &marked("from_xdg"));
    let home = Directory::new("home");
    home.file(".config/dateline/config.json", &marked("from_home"));
    let named = home.file("named.json", &marked("from_the_variable"));
    let (variable, from_xdg, from_home) =
        (("DATELINE_CONFIG", &*named), ("XDG_CONFIG_HOME", &*xdg.0), ("HOME", &*home.0));
    for (variables, wanted) in [
        (&[variable, from_xdg, from_home][..], "from_the_variable"),
        (&[from_xdg, from_home], "from_xdg"),
        (&[from_home], "from_home"),
        // An XDG directory that is not absolute does not count.
        (&[("XDG_CONFIG_HOME", Path::new("."))], "echo"),
        (&[("XDG_CONFIG_HOME", Path::new("")), from_home], "from_home"),
        (&[], "echo"),
    ] {
        let tools = served(variables, &here.0).await;
        assert_eq!(tools[0], wanted, "{variables:?}");
        assert!(!tools.contains(&"from_the_directory".to_owned()), "{variables:?}");
    }
    let config = Config::text(&marked("from_the_flag"));
    let mut command = dateline(&["list", "mine", "--json", "--config", config.path()]);
    command.env("DATELINE_CONFIG", &named);
    let found: Value = serde_json::from_str(&finish(command).await.out).unwrap();
    assert_eq!(found["tools"][0]["name"], "from_the_flag");
    let mut command = dateline(&["list", "mine", "--json"]);
    command.env("DATELINE_CONFIG", &named);
    let found: Value = serde_json::from_str(&finish(command).await.out).unwrap();
    assert_eq!(found["tools"][0]["name"], "from_the_variable");
}

#[testkit::test]
async fn a_variable_that_names_no_file_is_wrong_configuration() {
    let mut command = dateline(&["stdio"]);
    command.env("DATELINE_CONFIG", "/nonexistent/mcp.json");
    let run = finish(command).await;
    assert_eq!((run.code, run.err.lines().count()), (Some(2), 1), "{}", run.err);
    assert!(run.err.contains("/nonexistent/mcp.json"), "{}", run.err);
}

#[testkit::test]
async fn a_configured_program_gets_its_arguments_its_environment_and_its_directory() {
    let directory = Directory::new("cwd");
    let script = "import os; open('seen', 'w').write('\\n'.join([os.environ['GIVEN'], os.environ.get('SECRET', '-')]))";
    let server =
        json!({"command": "python3", "args": ["-c", script], "env": {"GIVEN": "given"}, "cwd": directory.0});
    let config = Config::new(&[("one", server)]);
    let mut command = dateline(&["list", "one", "--config", config.path()]);
    command.env("SECRET", "of the user's shell");
    assert_eq!(finish(command).await.code, Some(3));
    assert_eq!(std::fs::read_to_string(directory.0.join("seen")).unwrap(), "given\n-");
}

#[testkit::test]
async fn without_a_configuration_the_demo_is_served_to_clients_of_every_revision() {
    let program = Program::http(DATELINE, &["serve", "--listen", "127.0.0.1:0"]).await;
    let url = program.url.clone().unwrap();
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = Client::connect(&url);
        if revision != MODERN {
            let reply = client.handshake(revision, json!({})).await;
            assert_eq!(reply.result()["protocolVersion"], revision);
        }
        let reply = client.request("tools/list", json!({})).await;
        let tools = reply.result()["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"echo") && names.contains(&"add"), "{revision}: {names:?}");
        assert!(!names.iter().any(|name| name.starts_with("test_")), "{revision}: {names:?}");
        let reply = client.call("echo", json!({"message": revision})).await;
        assert_eq!(reply.said(), revision);
    }
    assert_eq!(works(&["call", &url, "add", "a=40", "b=2"]).await, "42\n");
}

#[testkit::test]
async fn what_is_served_is_said_as_it_is() {
    let (one, two) = (
        Config::new(&[("demo", demo("modern"))]),
        Config::new(&[("a", demo("modern")), ("b", demo("modern"))]),
    );
    let none = Config::new(&[]);
    for (config, wanted) in [
        (Some(&one), Ok("1 server")),
        (Some(&two), Ok("2 servers")),
        (Some(&none), Err("demo")),
        (None, Ok("demo")),
    ] {
        let mut command = dateline(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(config.iter().flat_map(|config| ["--config", config.path()]));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("it says something in time").unwrap().unwrap();
        match wanted {
            Ok(word) => assert!(line.contains(&format!(" {word}")), "{line}"),
            Err(word) => assert!(!line.contains(&format!(" {word}")), "{line}"),
        }
    }
}

// The end.

pub(crate) async fn signal(client: &Client, name: &str) {
    let pid = client.program.as_ref().unwrap().child.id().unwrap().to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status().await;
    assert!(status.unwrap().success());
}

/// Every way of serving, with a client of its own.
async fn serving(config: &Config) -> Vec<(&'static str, Wire, Client)> {
    let (serve, stdio) = (["serve", "--config", config.path()], ["stdio", "--config", config.path()]);
    let listen = |mut client: Client, program| {
        client.program = Some(program);
        client
    };
    let mut all = Vec::new();
    for (name, args) in
        [("serve", &serve[..]), ("serve without configuration", &["serve"]), ("demo", &["demo"])]
    {
        let program = Program::http(DATELINE, &[args, &["--listen", "127.0.0.1:0"]].concat()).await;
        let client = Client::connect(program.url.as_deref().unwrap());
        all.push((name, Wire::Http, listen(client, program)));
    }
    all.push(("stdio", Wire::Stdio, Client::pipe(DATELINE, &stdio)));
    all.push(("stdio without configuration", Wire::Stdio, Client::pipe(DATELINE, &["stdio"])));
    all.push(("demo --stdio", Wire::Stdio, Client::pipe(DATELINE, &["demo", "--stdio"])));
    all
}

#[testkit::test]
async fn a_signal_ends_every_way_of_serving_with_exit_code_0_and_a_listen_in_good_order() {
    let config = Config::new(&[("old", demo("legacy")), ("new", demo("modern"))]);
    for name in ["TERM", "INT"] {
        for (what, wire, mut client) in serving(&config).await {
            let label = format!("{what}, SIG{name}");
            client.request("tools/list", json!({})).await.result();
            let id = json!("listen");
            let filter = json!({"notifications": {"toolsListChanged": true}});
            let exchange = client.begin_as(id.clone(), "subscriptions/listen", filter).await;
            client.next("notifications/subscriptions/acknowledged").await;
            signal(&client, name).await;
            let reply = client.reply(&id).await;
            let told = reply.notifications("notifications/cancelled");
            assert_eq!(told.len(), 1, "{label}: {reply:?}");
            assert_eq!(told[0]["params"]["requestId"], id, "{label}");
            let key = "io.modelcontextprotocol/subscriptionId";
            assert_eq!(told[0]["params"]["_meta"][key], id, "{label}");
            assert_eq!(reply.result()["_meta"][key], id, "{label}");
            assert_eq!(reply.result()["resultType"], "complete", "{label}");
            if wire == Wire::Http {
                client
                    .wait(
                        "the end of the stream",
                        |a| matches!(a, testkit::Arrival::End(of) if *of == exchange),
                    )
                    .await;
            }
            assert_eq!(client.exit().await, Some(0), "{label}");
        }
    }
}

#[testkit::test]
async fn a_signal_ends_every_way_of_serving_a_legacy_session_too() {
    let config = Config::new(&[("old", demo("legacy")), ("new", demo("modern"))]);
    for (what, wire, mut client) in serving(&config).await {
        client.handshake(LATEST_LEGACY, json!({})).await.result();
        client.request("tools/list", json!({})).await.result();
        if wire == Wire::Http {
            let get =
                client.exchange("GET", &[("accept", "text/event-stream"), ("content-type", "")], Vec::new());
            assert_eq!(client.head(get).await.status, 200, "{what}");
        }
        signal(&client, "TERM").await;
        assert_eq!(client.exit().await, Some(0), "{what}");
    }
}

#[testkit::test]
async fn the_end_of_the_input_ends_a_pipe_with_exit_code_0() {
    let config = Config::new(&[("old", demo("legacy")), ("new", demo("modern"))]);
    for (what, wire, mut client) in serving(&config).await {
        if wire == Wire::Stdio {
            client.request("tools/list", json!({})).await.result();
            client.close_input();
            assert_eq!(client.exit().await, Some(0), "{what}");
        }
    }
}

#[testkit::test]
async fn a_call_that_runs_at_a_signal_is_brought_to_its_end() {
    let config = Config::new(&[("one", demo("legacy"))]);
    for (what, _, mut client) in serving(&config).await {
        let call = json!({
            "name": "countdown", "arguments": {"from": 3, "intervalMs": 100}, "_meta": {"progressToken": "t"},
        });
        let id = client.begin("tools/call", call).await;
        client.next("notifications/progress").await;
        signal(&client, "TERM").await;
        assert_eq!(client.reply(&id).await.said(), "counted down from 3", "{what}");
        assert_eq!(client.exit().await, Some(0), "{what}");
    }
}

#[testkit::test]
async fn a_second_signal_ends_it_at_once() {
    let config = Config::new(&[("one", demo("modern"))]);
    for (what, _, mut client) in serving(&config).await {
        // Its listen ends at the first signal, which therefore has arrived; the call goes on.
        let filter = json!({"notifications": {"toolsListChanged": true}});
        let listen = client.begin("subscriptions/listen", filter).await;
        client.next("notifications/subscriptions/acknowledged").await;
        client.begin("tools/call", crate::long_countdown()).await;
        client.next("notifications/progress").await;
        signal(&client, "INT").await;
        client.reply(&listen).await.result();
        signal(&client, "INT").await;
        let started = std::time::Instant::now();
        assert!(client.exit().await.is_some_and(|code| code != 0), "{what}");
        assert!(started.elapsed() < PATIENCE / 4, "{what}");
    }
}

#[testkit::test]
async fn a_configuration_with_secrets_that_others_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = |more: Value| {
        let mut server = demo("modern");
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server
    };
    let remote = |more: Value| {
        let mut server = json!({"url": "http://127.0.0.1:1/mcp"});
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server
    };
    for (place, entry) in [
        ("mcpServers.a.env.API_TOKEN", server(json!({"env": {"MODE": "x", "API_TOKEN": "hush-hush"}}))),
        (
            "mcpServers.a.headers.Authorization",
            remote(json!({"headers": {"Authorization": "Bearer hush-hush"}})),
        ),
        ("mcpServers.a.url", json!({"url": "http://me:hush-hush@127.0.0.1:1/mcp"})),
        ("mcpServers.a.url", json!({"url": "http://127.0.0.1:1/mcp?api_key=hush-hush"})),
        ("mcpServers.a.args.--api-key", json!({"command": "true", "args": ["--api-key=hush-hush"]})),
        ("mcpServers.a.args", json!({"command": "true", "args": ["--token", "hush-hush"]})),
        ("variables", server(json!({"env": {"API_TOKEN": "${DATELINE_NO_SUCH:-}", "MODE": "fast"}}))),
        ("no secret", server(json!({"env": {"LEVEL": "debug"}}))),
    ] {
        let config = Config::new(&[("a", entry)]);
        for (mode, open) in [(0o644, true), (0o640, true), (0o600, false)] {
            std::fs::set_permissions(config.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let run = run(&["stdio", "--config", config.path()]).await;
            let told = format!("{place} {mode:o}: {}", run.err);
            assert!(!run.err.contains("hush"), "{told}");
            let warning = format!("{place} looks like a secret, and other users can read or write");
            let warned =
                run.err.contains(&warning) && run.err.contains(&format!("chmod 600 {}", config.path()));
            assert_eq!(warned, open && place.contains('.'), "{told}");
            assert!(warned || !run.err.contains("chmod"), "{told}");
        }
    }
}
