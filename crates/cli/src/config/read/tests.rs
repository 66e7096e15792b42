use std::time::Duration;

use gateway::{Options, Pattern, Pool, Prefix, ServerOptions, Target};
use spec::Era;
use transport::client::Program;

use super::*;
use crate::config::values::tests::env;

fn options(text: &str) -> Options {
    let read = read(text, &env).unwrap();
    assert_eq!((read.warnings, read.unusable), (vec![], vec![]));
    read.options
}

fn program(server: &ServerOptions) -> &Program {
    let Target::Program(program) = &server.target else { panic!("no program: {:?}", server.target) };
    program
}

fn names(options: &Options) -> Vec<&str> {
    options.servers.iter().map(|s| s.name.as_str()).collect()
}

#[test]
fn the_forms_of_clients_and_editors_are_read() {
    let read = options(
        r#"{ // mine
            "mcpServers": {
                "z": {"command": "npx", "args": ["-y", "z"], "env": {"K": "${SET}", "N": null}, "cwd": "${userHome}/x"},
                /* and */ "off": {"command": "off", "disabled": true},
                "far": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${NO:-t}"},
                        "autoApprove": [], "timeout": 5},
            },
            "servers": {"code": {"type": "stdio", "command": "c"}},
            "context_servers": {"zed": {"command": {"path": "p", "args": ["a"]}, "settings": {}}},
            "inputs": [], "globalShortcut": "",
        }"#,
    );
    assert_eq!(read.servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["z", "far", "code", "zed"]);
    let z = program(&read.servers[0]);
    assert_eq!((z.args.len(), z.env.len(), z.env["K"].as_str()), (2, 1, "value"));
    assert_eq!(z.cwd.as_deref(), Some(std::path::Path::new("/home/me/x")));
    let Target::Remote(far) = &read.servers[1].target else { panic!("no remote") };
    assert_eq!(far.headers, [("Authorization".to_owned(), "Bearer t".to_owned())]);
    assert_eq!((program(&read.servers[3]).command.as_str(), program(&read.servers[3]).args.len()), ("p", 1));
}

#[test]
fn the_section_dateline_says_how_servers_are_shown() {
    let read = options(
        r#"{"mcpServers": {"a": {"command": "a", "excludeTools": ["x"]}},
           "dateline": {"prefix": "always", "servers": {"a": {
               "allow": ["read_*"], "deny": ["*_secret"], "tools": {"t": {"title": "T", "description": "D"}},
               "pool": {"min": 0, "max": 3, "idleSeconds": 9}, "callTimeoutSeconds": 7, "era": "legacy"}}}}"#,
    );
    let a = &read.servers[0];
    assert_eq!(read.prefix, Prefix::Always);
    assert_eq!(a.allow, [Pattern::new("read_*")]);
    assert_eq!(a.deny, [Pattern::new("x"), Pattern::new("*_secret")]);
    assert_eq!(a.overrides["t"].description.as_deref(), Some("D"));
    assert_eq!(a.pool, Pool { min: 0, max: 3, idle: Duration::from_secs(9) });
    assert_eq!(a.call_timeout, Some(Duration::from_secs(7)));
    assert_eq!(a.era, Some(Era::Legacy));
}

#[test]
fn servers_of_settings_are_read_in_each_form_and_by_each_name_of_a_transport() {
    let read = options(
        r#"{"mcp.servers": {"a": {"type": "local", "command": "a"}},
            "mcp": {"servers": {"b": {"type": "streamable-http", "url": "https://b/mcp"}}}}"#,
    );
    assert_eq!(names(&read), ["a", "b"]);
    let read = options(
        r#"{"mcp": {
            "local": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"K": "{env:SET}"}, "enabled": true},
            "remote": {"type": "remote", "url": "https://r/mcp"},
            "off": {"type": "local", "command": ["${UNSET}"], "enabled": false}}}"#,
    );
    assert_eq!(names(&read), ["local", "remote"]);
    let local = program(&read.servers[0]);
    assert_eq!((local.command.as_str(), &local.args[..]), ("npx", &["-y".to_owned(), "x".into()][..]));
    assert_eq!(local.env["K"], "value");
    for (of, sse) in [
        ("http", false),
        ("remote", false),
        ("streamable-http", false),
        ("streamableHttp", false),
        ("streamable_http", false),
        ("http-stream", false),
        ("sse", true),
    ] {
        let text = format!("{{\"mcpServers\": {{\"x\": {{\"type\": {of:?}, \"url\": \"https://h/mcp\"}}}}}}");
        let Target::Remote(remote) = &options(&text).servers[0].target else { panic!("no remote") };
        assert_eq!(remote.sse, sse, "{of}");
    }
}

#[test]
fn values_are_taken_as_they_are_meant() {
    let read = options(
        r#"{"mcpServers": {
            "x": {"command": "~/bin/x", "args": [1, 2.50, true, "~/stays", "C:\\Users"], "cwd": "~", "url": "",
                  "env": {"N": 8080, "B": false, "Z": null}, "env_vars": ["SET", "UNSET"], "headers": null},
            "y": {"command": "", "url": "https://h/mcp", "http_headers": {"A": 1},
                  "bearer_token_env_var": "SET", "env_http_headers": {"X": "SET"}}}}"#,
    );
    let x = program(&read.servers[0]);
    assert_eq!(
        (x.command.as_str(), x.cwd.as_deref()),
        ("/home/me/bin/x", Some(std::path::Path::new("/home/me")))
    );
    assert_eq!(x.args, ["1", "2.50", "true", "~/stays", "C:\\Users"]);
    let mut env: Vec<_> = x.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    env.sort();
    assert_eq!(env, ["B=false", "N=8080", "SET=value"]);
    let Target::Remote(y) = &read.servers[1].target else { panic!("no remote") };
    let headers: Vec<_> = y.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(headers, ["A: 1", "Authorization: Bearer value", "X: value"]);
}

#[test]
fn a_wrong_entry_affects_only_its_server_and_is_named_with_its_line() {
    for (entry, line, told) in [
        ("{}", 2, "\"x\" has neither a \"command\" nor a \"url\""),
        ("[]", 2, "\"x\" must be an object"),
        (
            "{\"comand\": \"a\"}",
            2,
            "\"x\" has neither a \"command\" nor a \"url\"; \"comand\" is not known in a server (did you mean \"command\"?)",
        ),
        ("{\"source\": \"extension\"}", 2, "\"x\" comes from an extension"),
        ("{\"command\": \"a\",\n \"url\": \"https://h\"}", 2, "\"x\" has both"),
        ("{\n\"command\": 1}", 3, "\"command\" must be a string"),
        ("{\"command\": \" \"}", 2, "\"x\" has an empty \"command\""),
        ("{\"url\": \"\"}", 2, "\"x\" has a \"url\" that is empty"),
        ("{\"url\": \"notaurl\"}", 2, "but a URL must begin with http:// or https://"),
        (
            "{\"url\": \"https://h\", \"headers\": {\"a b\": \"c\"}}",
            2,
            "a header \"a b\" that HTTP cannot carry",
        ),
        ("{\"command\": \"a\", \"args\": [{}]}", 2, "\"args\" may contain only strings, numbers"),
        ("{\"command\": \"a\", \"env\": {\"K\": []}}", 2, "\"K\" must be a string"),
        ("{\"command\": \"a\", \"env\": {\"A=B\": \"c\"}}", 2, "not the name of a variable"),
        ("{\"command\": \"${UNSET}\"}", 2, "needs ${UNSET}"),
        ("{\"command\": \"C:\\Program\"}", 2, "write each backslash twice"),
        ("{\"command\": \"C:\\new\"}", 2, "write each backslash twice"),
        ("{\"command\": \"a\", \"envFile\": \"/nonexistent/.env\"}", 2, "\"envFile\" that names"),
        ("{\"type\": \"ws\", \"url\": \"https://h\"}", 2, "must be one of stdio (or local), http"),
    ] {
        let text = format!("{{\"mcpServers\": {{\"good\": {{\"command\": \"g\"}},\n \"x\": {entry}}}}}");
        let read = read(&text, &env).unwrap();
        assert_eq!(read.unusable.len(), 1, "{text}");
        let UnusableServer { name, problem } = &read.unusable[0];
        assert_eq!((name.as_str(), problem.line), ("x", line), "{text}: {problem}");
        assert!(problem.what.contains(told), "{text}: {problem}");
        assert_eq!(names(&read.options), ["good", "x"], "{text}");
        program(&read.options.servers[0]);
        let Target::Unusable(why) = &read.options.servers[1].target else { panic!("{text}") };
        assert!(why.contains(told) && why.contains(&format!("(line {line})")), "{text}: {why}");
    }
}

#[test]
fn wrong_options_make_their_server_unusable_and_a_second_server_of_a_name_is_ignored() {
    let text = "{\"mcpServers\": {\"x\": {\"command\": \"a\"}, \"y\": {\"command\": \"b\"}, \"off\": {\"disabled\": true}},\n\
                \"servers\": {\"x\": {\"command\": \"c\"}},\n\
                \"dateline\": {\"servers\": {\"off\": {},\n\"y\": {\"dney\": [\"*\"]}}}}";
    let read = read(text, &env).unwrap();
    assert_eq!((names(&read.options), read.warnings), (vec!["x", "y"], vec![]));
    assert_eq!(program(&read.options.servers[0]).command, "a", "the first counts");
    assert!(
        matches!(read.options.servers[1].target, Target::Unusable(_)),
        "what should be hidden is not shown"
    );
    let unusable: Vec<_> =
        read.unusable.iter().map(|server| (server.name.as_str(), server.problem.line)).collect();
    assert_eq!(unusable, [("x", 2), ("y", 4)]);
    assert!(read.unusable[1].problem.what.contains("did you mean \"deny\"?"), "{:?}", read.unusable[1]);
}

#[test]
fn what_is_wrong_as_a_whole_is_named_with_its_line() {
    for (text, told) in [
        ("", "1: the file is empty"),
        ("[]", "1: the configuration must be an object"),
        ("{}", "1: there is no \"mcpServers\""),
        ("{\"mcpServers\": []}", "1: \"mcpServers\" must be an object"),
        ("{\"mcpServers\": {},\n\n \"dateline\": {\"prefixx\": \"always\"}}", "3: \"prefixx\" is not known"),
        ("{\"mcpServers\": {}, \"dateline\": {\"prefix\": \"some\"}}", "always, collision and none"),
        ("{\n  \"mcpServers\": {\n    oops", "3: this is not valid JSON"),
        ("{\"mcpServers\": {\"x\": {\"command\": \"C:\\users\"}}}", "write each backslash in a string twice"),
    ] {
        let why = read(text, &env).unwrap_err();
        assert!(why.contains(told), "{text}: {why}");
    }
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_name() {
    let warnings = |text: &str| read(text, &env).unwrap().warnings;
    let odd = warnings("{\"mcpServers\": {\"x\": {\"command\": \"a\",\n \"arsg\": []}}}");
    assert_eq!((odd.len(), odd[0].line), (1, 2));
    assert!(odd[0].what.contains("did you mean \"args\"?"), "{}", odd[0]);
    assert_eq!(warnings("\u{feff}{\"mcpServers\": {}, \"theme\": \"dark\"}"), []);
    // The settings of an editor are not gone through key by key.
    let settings =
        "{\"a.b\": 1, \"c.d\": 2, \"e.f\": 3, \"g.h\": 4,\n \"mcpServer\": {}, \"mcpServers\": {}}";
    let odd = warnings(settings);
    assert_eq!(odd.len(), 2, "{odd:?}");
    assert!(
        odd[0].what.contains("did you mean \"mcpServers\"?") && odd[1].what.contains("5 keys"),
        "{odd:?}"
    );
    let literal = warnings("{\"mcpServers\": {\"x\": {\"command\": \"a\", \"env\": {\"K\": \"$KEY\"}}}}");
    assert!(literal[0].what.contains("write ${KEY}"), "{literal:?}");
}
