//! Reads a configuration's text. Comments and trailing commas are fine.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gateway::{Names, Options, Override, Pattern, Pool, Prefix, ServerOptions, Target};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use transport::client::{Program, Remote};

use crate::exit;

/// Something odd that does not stop the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The line.
    pub(crate) line: usize,
    /// What is odd.
    pub(crate) what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// Keys that say where the servers are: of most clients, of VS Code, of Zed.
const SERVERS: &[&str] = &["mcpServers", "servers", "context_servers"];
/// Our own section.
const OURS: &str = "dateline";

/// Keys beside the servers that other programs use; they mean nothing here.
const ELSEWHERE: &[&str] =
    &["$schema", "inputs", "globalShortcut", "preferences", "sandbox", "scale", "theme"];
/// Keys of a server that mean something here.
const OF_A_SERVER: &[&str] = &[
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "type",
    "transport",
    "disabled",
    "enabled",
    "includeTools",
    "excludeTools",
    "disabledTools",
];
/// Keys of a server that other programs use; they mean nothing here.
const OF_ANOTHERS_SERVER: &[&str] = &[
    "alwaysAllow",
    "auth",
    "authProviderType",
    "autoApprove",
    "autoStart",
    "chat.mcp",
    "description",
    "dev",
    "enabledTools",
    "gallery",
    "icon",
    "iconPath",
    "managedBy",
    "name",
    "note",
    "oauth",
    "oauth_scopes",
    "priority",
    "sandbox",
    "sandboxEnabled",
    "settings",
    "source",
    "startup_timeout_sec",
    "timeout",
    "tool_timeout_sec",
    "tools",
    "trust",
    "version",
];

/// Where the environment's variables come from.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads a text.
///
/// # Errors
/// `LINE: what is wrong`.
pub(crate) fn read(text: &str, env: Env<'_>) -> Result<(Options, Vec<Warning>), String> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|e| format!("{}: {}", e.line_display(), e.kind()))?;
    let mut reader = Reader { text, env, warnings: Vec::new() };
    let root = match &parsed.value {
        Some(Value::Object(root)) => root,
        _ => {
            return Err(
                "1: the configuration must be an object: {\"mcpServers\": {NAME: {\"command\": …}}}".into()
            );
        }
    };
    let options = reader.root(root)?;
    Ok((options, reader.warnings))
}

struct Reader<'a> {
    text: &'a str,
    env: Env<'a>,
    warnings: Vec<Warning>,
}

impl Reader<'_> {
    fn line(&self, at: &ObjectProp<'_>) -> usize {
        self.text[..at.start().min(self.text.len())].matches('\n').count() + 1
    }

    fn wrong(&self, at: &ObjectProp<'_>, why: impl fmt::Display) -> String {
        format!("{}: {:?} {why}", self.line(at), at.name.as_str())
    }

    fn warn(&mut self, at: &ObjectProp<'_>, what: String) {
        let line = self.line(at);
        self.warnings.push(Warning { line, what });
    }

    fn unknown(&mut self, at: &ObjectProp<'_>, place: &str, known: &[&[&str]]) {
        let name = at.name.as_str().to_owned();
        let nearest = nearest(&name, known);
        self.warn(at, format!("{name:?} is not known {place}{nearest}; it is ignored"));
    }

    fn root(&mut self, root: &Object<'_>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut ours = None;
        let mut found = false;
        for property in &root.properties {
            match property.name.as_str() {
                name if SERVERS.contains(&name) => {
                    found = true;
                    for entry in &self.object(property)?.properties {
                        if let Some(server) = self.server(entry)? {
                            if options.servers.iter().any(|other: &ServerOptions| other.name == server.name) {
                                return Err(
                                    self.wrong(entry, "stands twice: a server's name must be the only one")
                                );
                            }
                            options.servers.push(server);
                        }
                    }
                }
                OURS => ours = Some(property),
                name if ELSEWHERE.contains(&name) => {}
                _ => self.unknown(property, "beside the servers", &[SERVERS, &[OURS], ELSEWHERE]),
            }
        }
        if !found {
            return Err("1: there are no \"mcpServers\": {\"mcpServers\": {NAME: {\"command\": …}}}".into());
        }
        if let Some(ours) = ours {
            self.ours(ours, &mut options)?;
        }
        Ok(options)
    }

    /// One server; `None` where it is disabled.
    fn server(&mut self, at: &ObjectProp<'_>) -> Result<Option<ServerOptions>, String> {
        let name = at.name.as_str().to_owned();
        let entry = self.object(at)?;
        let mut read = Entry::default();
        for property in &entry.properties {
            match property.name.as_str() {
                "command" => match &property.value {
                    // Zed's older form has the program and its arguments in it.
                    Value::Object(command) => {
                        for property in &command.properties {
                            match property.name.as_str() {
                                "path" => read.command = Some(self.text(property)?),
                                "args" => read.args = self.texts(property)?,
                                "env" => read.env.extend(self.map(property)?),
                                _ => self.unknown(property, "in a command", &[&["path", "args", "env"]]),
                            }
                        }
                    }
                    _ => read.command = Some(self.text(property)?),
                },
                "args" => read.args = self.texts(property)?,
                "env" => read.env.extend(self.map(property)?),
                "envFile" => read.env_file = Some(self.text(property)?),
                "cwd" => read.cwd = Some(self.text(property)?),
                "url" | "serverUrl" | "httpUrl" => read.url = Some(self.text(property)?),
                "headers" => read.headers = self.map(property)?,
                "type" | "transport" => read.sse = self.transport(property)?,
                "disabled" => read.disabled = self.flag(property)?,
                "enabled" => read.disabled = !self.flag(property)?,
                "includeTools" => read.allow = self.texts(property)?,
                "excludeTools" | "disabledTools" => read.deny = self.texts(property)?,
                name if OF_ANOTHERS_SERVER.contains(&name) => {}
                _ => self.unknown(property, "in a server", &[OF_A_SERVER, OF_ANOTHERS_SERVER]),
            }
        }
        if read.disabled {
            return Ok(None);
        }
        let target = read.target(&name).map_err(|why| self.wrong(at, why))?;
        let patterns = |names: Vec<String>| names.iter().map(|name| Pattern::new(name)).collect();
        let (allow, deny) = (patterns(read.allow), patterns(read.deny));
        Ok(Some(ServerOptions { allow, deny, ..ServerOptions::new(&name, target) }))
    }

    /// Whether the transport is HTTP+SSE; the others are told by what else stands in the entry.
    fn transport(&self, at: &ObjectProp<'_>) -> Result<bool, String> {
        match self.text(at)?.to_ascii_lowercase().as_str() {
            "stdio" | "http" | "streamable-http" | "streamablehttp" | "streamable_http" => Ok(false),
            "sse" => Ok(true),
            other => Err(self.wrong(at, format!("is {other:?}; it is one of stdio, http and sse"))),
        }
    }

    /// Our own section. Here an unknown key stops the start: it is a wish that would not be heard.
    fn ours(&mut self, at: &ObjectProp<'_>, options: &mut Options) -> Result<(), String> {
        for property in &self.object(at)?.properties {
            match property.name.as_str() {
                "prefix" => {
                    options.prefix = match self.text(property)?.as_str() {
                        "always" => Prefix::Always,
                        "collision" => Prefix::Collision,
                        "none" => Prefix::None,
                        other => {
                            return Err(self.wrong(
                                property,
                                format!("is {other:?}; it is one of always, collision and none"),
                            ));
                        }
                    };
                }
                "names" => {
                    options.names = match self.text(property)?.as_str() {
                        "protocol" => Names::Protocol,
                        "strict" => Names::Strict,
                        other => {
                            return Err(self
                                .wrong(property, format!("is {other:?}; it is one of protocol and strict")));
                        }
                    };
                }
                "servers" => {
                    for entry in &self.object(property)?.properties {
                        let name = entry.name.as_str();
                        let configured = options.servers.iter_mut().find(|server| server.name == name);
                        match configured {
                            Some(server) => self.own_server(entry, server)?,
                            // It may be one that is disabled.
                            None => self.warn(entry, format!("there is no server {name:?} to say this of")),
                        }
                    }
                }
                name => {
                    let known: &[&[&str]] = &[&["prefix", "names", "servers"]];
                    return Err(
                        self.wrong(property, format!("is not known in \"{OURS}\"{}", nearest(name, known)))
                    );
                }
            }
        }
        Ok(())
    }

    fn own_server(&self, at: &ObjectProp<'_>, server: &mut ServerOptions) -> Result<(), String> {
        let patterns = |names: Vec<String>| names.iter().map(|name| Pattern::new(name)).collect::<Vec<_>>();
        for property in &self.object(at)?.properties {
            match property.name.as_str() {
                "allow" => server.allow = patterns(self.texts(property)?),
                "deny" => server.deny.extend(patterns(self.texts(property)?)),
                "tools" => server.overrides = self.overrides(property)?,
                "pool" => server.pool = self.pool(property)?,
                "callTimeoutSeconds" => {
                    server.call_timeout = Some(Duration::from_secs(self.number(property, 1, 86_400)?));
                }
                name => {
                    let known: &[&[&str]] = &[&["allow", "deny", "tools", "pool", "callTimeoutSeconds"]];
                    return Err(self.wrong(property, format!("is not known here{}", nearest(name, known))));
                }
            }
        }
        Ok(())
    }

    fn overrides(&self, at: &ObjectProp<'_>) -> Result<BTreeMap<String, Override>, String> {
        let mut overrides = BTreeMap::new();
        for tool in &self.object(at)?.properties {
            let mut said = Override::default();
            for property in &self.object(tool)?.properties {
                match property.name.as_str() {
                    "name" => said.name = Some(self.name(property)?),
                    "title" => said.title = Some(self.text(property)?),
                    "description" => said.description = Some(self.text(property)?),
                    name => {
                        let nearest = nearest(name, &[&["name", "title", "description"]]);
                        return Err(self.wrong(property, format!("is not known of a tool{nearest}")));
                    }
                }
            }
            overrides.insert(tool.name.as_str().to_owned(), said);
        }
        Ok(overrides)
    }

    /// A name that a tool is to have. Whether it may have a dot too, is said elsewhere; one that has none always can.
    fn name(&self, at: &ObjectProp<'_>) -> Result<String, String> {
        let name = self.text(at)?;
        if !gateway::is_legal(&name, Names::Protocol) {
            return Err(self.wrong(
                at,
                format!(
                    "is {name:?}; a name is 1 to {} characters out of A-Z a-z 0-9 _ - .",
                    gateway::LONGEST_NAME
                ),
            ));
        }
        Ok(name)
    }

    fn pool(&self, at: &ObjectProp<'_>) -> Result<Pool, String> {
        let mut pool = Pool::default();
        for property in &self.object(at)?.properties {
            let number = |least, most| self.number(property, least, most);
            match property.name.as_str() {
                "min" => pool.min = usize::try_from(number(0, 64)?).unwrap_or(1),
                "max" => pool.max = usize::try_from(number(1, 64)?).unwrap_or(1),
                "idleSeconds" => pool.idle = Duration::from_secs(number(1, 86_400)?),
                name => {
                    let nearest = nearest(name, &[&["min", "max", "idleSeconds"]]);
                    return Err(self.wrong(property, format!("is not known of a pool{nearest}")));
                }
            }
        }
        if pool.max < pool.min {
            pool.max = pool.min;
        }
        // Those that are kept at all times are started when calls need them, the first one at once.
        Ok(pool)
    }

    fn object<'a, 'b>(&self, at: &'b ObjectProp<'a>) -> Result<&'b Object<'a>, String> {
        match &at.value {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong(at, "must be an object")),
        }
    }

    fn text(&self, at: &ObjectProp<'_>) -> Result<String, String> {
        match &at.value {
            Value::StringLit(text) => expand(&text.value, self.env).map_err(|why| self.wrong(at, why)),
            _ => Err(self.wrong(at, "must be a text")),
        }
    }

    fn texts(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, String> {
        let Value::Array(array) = &at.value else { return Err(self.wrong(at, "must be an array of texts")) };
        let text = |value: &Value<'_>| match value {
            Value::StringLit(text) => expand(&text.value, self.env).map_err(|why| self.wrong(at, why)),
            _ => Err(self.wrong(at, "must hold texts only")),
        };
        array.elements.iter().map(text).collect()
    }

    fn map(&self, at: &ObjectProp<'_>) -> Result<Vec<(String, String)>, String> {
        let entries = self.object(at)?.properties.iter();
        entries
            .filter(|entry| !matches!(entry.value, Value::NullKeyword(_)))
            .map(|entry| Ok((entry.name.as_str().to_owned(), self.text(entry)?)))
            .collect()
    }

    fn flag(&self, at: &ObjectProp<'_>) -> Result<bool, String> {
        match &at.value {
            Value::BooleanLit(flag) => Ok(flag.value),
            _ => Err(self.wrong(at, "must be true or false")),
        }
    }

    fn number(&self, at: &ObjectProp<'_>, least: u64, most: u64) -> Result<u64, String> {
        let number = match &at.value {
            Value::NumberLit(number) => number.value.parse().ok(),
            _ => None,
        };
        number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| self.wrong(at, format!("must be a whole number from {least} to {most}")))
    }
}

/// What stands in a server's entry.
#[derive(Default)]
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    env_file: Option<String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    sse: bool,
    disabled: bool,
    allow: Vec<String>,
    deny: Vec<String>,
}

impl Entry {
    fn target(&mut self, name: &str) -> Result<Target, String> {
        match (self.command.take(), self.url.take()) {
            (Some(_), Some(_)) => {
                Err("has both a \"command\" and a \"url\"; it can be only one of them".into())
            }
            (None, None) => Err("has neither a \"command\" nor a \"url\"".into()),
            (None, Some(url)) => {
                let headers = std::mem::take(&mut self.headers);
                Ok(Target::Remote(Remote { url, headers, sse: self.sse }))
            }
            (Some(command), None) => {
                let mut env: HashMap<String, String> = match &self.env_file {
                    Some(file) => env_file(file)?,
                    None => HashMap::new(),
                };
                env.extend(std::mem::take(&mut self.env));
                let (args, cwd) = (std::mem::take(&mut self.args), self.cwd.take().map(PathBuf::from));
                Ok(Target::Program(Program { name: name.to_owned(), command, args, env, cwd }))
            }
        }
    }
}

/// Reads a file of `NAME=value` lines.
fn env_file(path: &str) -> Result<HashMap<String, String>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("has an \"envFile\" that cannot be read: {e}"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
        Some((name.trim().to_owned(), bare.unwrap_or(value).to_owned()))
    };
    Ok(lines.filter_map(entry).collect())
}

/// Puts the environment into a text: `${NAME}`, `${NAME:-default}`, and `${env:NAME}` as editors write it.
fn expand(text: &str, env: Env<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else { break };
        let inside = &rest[at + 2..at + end];
        rest = &rest[at + end + 1..];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match name {
            "userHome" => out.push_str(&env("HOME").unwrap_or_default()),
            _ if name.starts_with("input:") => {
                return Err(format!(
                    "asks for ${{{inside}}}, which only an editor can ask for; write ${{NAME}} and set NAME in the environment"
                ));
            }
            // What is none of ours is somebody else's, such as a shell's.
            _ if name.is_empty() || !name.chars().all(plain) => {
                out.push_str("${");
                out.push_str(inside);
                out.push('}');
            }
            _ => match (env(name).filter(|value| !value.is_empty() || default.is_none()), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => {
                    return Err(format!(
                        "needs ${{{name}}}, which is not set in the environment; set it, or write ${{{name}:-default}}"
                    ));
                }
            },
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The known name that is meant, as the end of a sentence; empty where none is near.
fn nearest(name: &str, known: &[&[&str]]) -> String {
    exit::meant(name, known.iter().flat_map(|names| names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "SET" => Some("value".into()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/me".into()),
            _ => None,
        }
    }

    fn options(text: &str) -> Options {
        let (options, warnings) = read(text, &env).unwrap();
        assert_eq!(warnings, []);
        options
    }

    fn program(server: &ServerOptions) -> &Program {
        let Target::Program(program) = &server.target else { panic!("no program") };
        program
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
        assert_eq!(
            read.servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            ["z", "far", "code", "zed"]
        );
        let z = program(&read.servers[0]);
        assert_eq!((z.args.len(), z.env.len(), z.env["K"].as_str()), (2, 1, "value"));
        assert_eq!(z.cwd.as_deref(), Some(std::path::Path::new("/home/me/x")));
        let Target::Remote(far) = &read.servers[1].target else { panic!("no remote") };
        assert_eq!(far.headers, [("Authorization".to_owned(), "Bearer t".to_owned())]);
        assert_eq!(
            (program(&read.servers[3]).command.as_str(), program(&read.servers[3]).args.len()),
            ("p", 1)
        );
    }

    #[test]
    fn our_own_section_says_how_servers_are_shown() {
        let read = options(
            r#"{"mcpServers": {"a": {"command": "a", "excludeTools": ["x"]}},
               "dateline": {"prefix": "always", "servers": {"a": {
                   "allow": ["read_*"], "deny": ["*_secret"], "tools": {"t": {"title": "T", "description": "D"}},
                   "pool": {"min": 0, "max": 3, "idleSeconds": 9}, "callTimeoutSeconds": 7}}}}"#,
        );
        let a = &read.servers[0];
        assert_eq!(read.prefix, Prefix::Always);
        assert_eq!(a.allow, [Pattern::new("read_*")]);
        assert_eq!(a.deny, [Pattern::new("x"), Pattern::new("*_secret")]);
        assert_eq!(a.overrides["t"].description.as_deref(), Some("D"));
        assert_eq!(a.pool, Pool { min: 0, max: 3, idle: Duration::from_secs(9) });
        assert_eq!(a.call_timeout, Some(Duration::from_secs(7)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, told) in [
            ("[]", "1: the configuration must be an object"),
            ("{}", "1: there are no \"mcpServers\""),
            ("{\"mcpServers\":\n {\"x\": {}}}", "2: \"x\" has neither a \"command\" nor a \"url\""),
            ("{\"mcpServers\": {\"x\": {\"command\": \"a\",\n \"url\": \"b\"}}}", "1: \"x\" has both"),
            ("{\"mcpServers\": {\"x\": {\n\"command\": 1}}}", "2: \"command\" must be a text"),
            (
                "{\"mcpServers\": {\"x\": {\"command\": \"a\", \"args\": [1]}}}",
                "\"args\" must hold texts only",
            ),
            ("{\"mcpServers\": {\"x\": {\"command\": \"${UNSET}\"}}}", "needs ${UNSET}"),
            ("{\"mcpServers\": {\"x\": {\"command\": \"${input:key}\"}}}", "only an editor"),
            ("{\"mcpServers\": {\"x\": {\"type\": \"ws\", \"url\": \"u\"}}}", "one of stdio, http and sse"),
            (
                "{\"mcpServers\": {},\n\n \"dateline\": {\"prefixx\": \"always\"}}",
                "3: \"prefixx\" is not known",
            ),
            ("{\"mcpServers\": {}, \"dateline\": {\"prefix\": \"some\"}}", "always, collision and none"),
            ("{\n  \"mcpServers\": {\n    oops", "3"),
        ] {
            let why = read(text, &env).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }

    #[test]
    fn an_unknown_key_is_a_warning_with_the_nearest_name() {
        let text = "{\"mcpServers\": {\"x\": {\"command\": \"a\",\n \"arsg\": []}}}";
        let (_, warnings) = read(text, &env).unwrap();
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].line, 2);
        assert!(warnings[0].what.contains("is \"args\" meant?"), "{}", warnings[0]);
        read("\u{feff}{\"mcpServers\": {}}", &env).unwrap();
        let (_, none) = read("{\"mcpServers\": {}, \"theme\": \"dark\"}", &env).unwrap();
        assert_eq!(none, []);
    }

    #[test]
    fn variables_are_put_in() {
        for (text, expanded) in [
            ("${SET}", "value"),
            ("a${env:SET}b${SET}", "avaluebvalue"),
            ("${NO:-d}", "d"),
            ("${EMPTY:-d}", "d"),
            ("${EMPTY}", ""),
            ("$HOME", "$HOME"),
            ("${", "${"),
        ] {
            assert_eq!(expand(text, &env).unwrap(), expanded, "{text}");
        }
        assert_eq!(expand("${a[1]}", &env).unwrap(), "${a[1]}");
    }
}
