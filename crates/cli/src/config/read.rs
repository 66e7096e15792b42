//! Reads a configuration's text. Comments and trailing commas are fine. One entry that is wrong costs itself only.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::{Names, Options, Override, Pattern, Pool, Prefix, ServerOptions, Target};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use spec::Era;

use super::entry::{self, Entry};
use super::reader::{Broken, Read, Reader, Wrong, nearest};
use super::values::{self, Env};

/// A server as another program has it, for a file of ours.
pub(crate) struct Carried {
    /// Its name.
    pub(crate) name: String,
    /// Its entry, with variables as they are written; or why no file of ours can have it.
    pub(crate) entry: Result<Entry, String>,
}

/// Keys that say where the servers are: of most clients, of VS Code and of Zed.
pub(super) const SERVERS: &[&str] = &["mcpServers", "servers", "context_servers", "mcp.servers"];
/// The key of settings of VS Code, which have the servers below it, and of opencode, which has them in it.
pub(super) const NESTED: &str = "mcp";
/// What else may stand in it: Gemini's.
const IN_NESTED: &[&str] = &["inputs", "allowed", "excluded", "serverCommand"];
/// Our own section.
const OURS: &str = "dateline";

/// Keys beside the servers that other programs use; they mean nothing here.
const ELSEWHERE: &[&str] =
    &["$schema", "inputs", "globalShortcut", "preferences", "sandbox", "scale", "theme"];
/// From so many unknown keys on a file is taken for the settings of another program.
const ANOTHERS: usize = 4;

/// Reads a text.
///
/// # Errors
/// `LINE: what is wrong`, where nothing of it can be used.
pub(crate) fn read(text: &str, env: Env<'_>) -> Result<Read, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::new(text, Some(env));
    let parsed = parse(text)?;
    let root = root(parsed.as_ref())?;
    let mut ours = None;
    let mut found = false;
    reader.beside(root)?;
    for property in &root.properties {
        if property.name.as_str() == OURS {
            ours = Some(property);
        }
        for entries in reader.servers(property)? {
            found = true;
            for entry in entries {
                reader.server(entry);
            }
        }
    }
    if !found {
        return Err("1: there are no \"mcpServers\": {\"mcpServers\": {NAME: {\"command\": …}}}".into());
    }
    if let Some(ours) = ours {
        let mut options = std::mem::take(&mut reader.read.options);
        reader.ours(ours, &mut options)?;
        reader.read.options = options;
    }
    Ok(reader.read)
}

/// Reads the servers of another program's file, to be carried over into one of ours. `shell` says that it writes
/// variables as a shell does.
///
/// # Errors
/// `LINE: what is wrong`, where nothing of it can be used.
pub(crate) fn carry(text: &str, shell: bool) -> Result<Vec<Carried>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::new(text, None);
    let parsed = parse(text)?;
    let mut carried = Vec::new();
    for property in &root(parsed.as_ref())?.properties {
        for at in reader.servers(property)?.into_iter().flatten() {
            let entry = entry::read(&mut reader, at).map_err(|wrong| wrong.what);
            let entry = entry.map(|entry| if shell { braced(entry) } else { entry });
            let fit = |entry: Entry| match entry.disabled {
                true => Err("it is disabled there".to_owned()),
                false => entry.carried().map(|()| entry).map_err(|why| format!("it {why}")),
            };
            carried.push(Carried { name: at.name.as_str().to_owned(), entry: entry.and_then(fit) });
        }
    }
    Ok(carried)
}

/// An entry whose variables are written as a shell's.
fn braced(mut entry: Entry) -> Entry {
    let values = entry.env.iter_mut().chain(&mut entry.headers).map(|(_, value)| value);
    for text in
        values.chain(&mut entry.args).chain(&mut entry.command).chain(&mut entry.url).chain(&mut entry.cwd)
    {
        *text = values::braced(text);
    }
    entry
}

fn parse(text: &str) -> Result<Option<Value<'_>>, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    parsed.map(|parsed| parsed.value).map_err(|error| {
        let hint = match error.kind() {
            ParseErrorKind::String(_) => {
                "; a backslash in a text is written twice, as in \"C:\\\\Users\\\\me\", and a text ends on its line"
            }
            _ => "",
        };
        let kind = error.kind().to_string();
        let lower = kind.get(..1).unwrap_or_default().to_lowercase() + kind.get(1..).unwrap_or_default();
        format!("{}: this is no JSON: {lower} at column {}{hint}", error.line_display(), error.column_display())
    })
}

fn root<'a, 'b>(value: Option<&'b Value<'a>>) -> Result<&'b Object<'a>, String> {
    match value {
        Some(Value::Object(root)) => Ok(root),
        None => {
            Err("1: it is empty; it must have \"mcpServers\": {\"mcpServers\": {NAME: {\"command\": …}}}"
                .into())
        }
        _ => Err("1: the configuration must be an object: {\"mcpServers\": {NAME: {\"command\": …}}}".into()),
    }
}

impl Reader<'_> {
    /// Warns of keys that are nobody's beside the servers. Where there are many, the file is another program's.
    fn beside(&mut self, root: &Object<'_>) -> Result<(), String> {
        let known: &[&[&str]] = &[SERVERS, &[OURS, NESTED], ELSEWHERE];
        let unknown = |at: &&ObjectProp<'_>| !known.iter().any(|names| names.contains(&at.name.as_str()));
        let unknown: Vec<_> = root.properties.iter().filter(unknown).collect();
        let many = unknown.len() >= ANOTHERS;
        for at in &unknown {
            if !many || !nearest(at.name.as_str(), &[SERVERS, &[OURS]]).is_empty() {
                self.unknown(at, "beside the servers", known);
            }
        }
        if let Some(at) = unknown.first().filter(|_| many) {
            let what = format!(
                "{} keys beside the servers are not known, {:?} the first: they are taken for another program's",
                unknown.len(),
                at.name.as_str()
            );
            self.warn(at, what);
        }
        Ok(())
    }

    /// The entries of servers below a key, where it is one that has servers.
    fn servers<'a, 'b>(&mut self, at: &'b ObjectProp<'a>) -> Result<Vec<Vec<&'b ObjectProp<'a>>>, Wrong> {
        let name = at.name.as_str();
        if SERVERS.contains(&name) {
            return Ok(vec![self.object(at)?.properties.iter().collect()]);
        }
        let (NESTED, Value::Object(nested)) = (name, &at.value) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut direct = Vec::new();
        for below in &nested.properties {
            let is_entry = |object: &Object<'_>| {
                let has = |key: &&str| object.properties.iter().any(|p| p.name.as_str() == *key);
                ["command", "url", "type", "enabled", "disabled"].iter().any(has)
            };
            match (below.name.as_str(), &below.value) {
                (name, _) if IN_NESTED.contains(&name) => {
                    if name != "inputs" {
                        self.warn(
                            below,
                            format!("{name:?} of {NESTED:?} says nothing here: every server is served"),
                        );
                    }
                }
                (name, Value::Object(entries)) if SERVERS.contains(&name) && !is_entry(entries) => {
                    found.push(entries.properties.iter().collect());
                }
                (_, Value::Object(_)) => direct.push(below),
                _ => drop(self.unknown(below, &format!("in {NESTED:?}"), &[SERVERS])),
            }
        }
        if !direct.is_empty() {
            found.push(direct);
        }
        Ok(found)
    }

    /// Reads one server. One that is disabled is left out, one that cannot be used has its reason in its place.
    fn server(&mut self, at: &ObjectProp<'_>) {
        let name = at.name.as_str().to_owned();
        let read = entry::read(self, at).and_then(|entry| {
            if entry.disabled {
                return Ok(None);
            }
            let env: Env<'_> = self.env.unwrap_or(&|_| None);
            self.literal_dollars(at, &entry);
            entry.server(&name, env).map(Some).map_err(|why| self.wrong(at, why))
        });
        let twice = self.read.options.servers.iter().any(|other| other.name == name);
        let server = match read {
            Ok(None) => return self.disabled.push(name),
            _ if twice => {
                let wrong =
                    self.wrong(at, "stands twice: the first one counts, and this one needs another name");
                return self.read.broken.push(Broken { name, wrong });
            }
            Ok(Some((server, odd))) => {
                for what in odd {
                    self.warn(at, format!("{what}; it is ignored"));
                }
                server
            }
            Err(wrong) => self.unusable(&name, wrong),
        };
        self.read.options.servers.push(server);
    }

    /// A server whose entry is wrong.
    fn unusable(&mut self, name: &str, wrong: Wrong) -> ServerOptions {
        let why = format!("its configuration cannot be used: {} (line {})", wrong.what, wrong.line);
        self.read.broken.push(Broken { name: name.to_owned(), wrong });
        ServerOptions::new(name, Target::Unusable(why))
    }

    /// Warns of variables in the form of a shell, which stay as they are written.
    fn literal_dollars(&mut self, at: &ObjectProp<'_>, entry: &Entry) {
        let odd = entry.env.iter().chain(&entry.headers).find_map(|(name, value)| {
            let rest = value.strip_prefix('$')?;
            let name_of_one = values::braced(value) == format!("${{{rest}}}");
            name_of_one.then(|| (name.clone(), rest.to_owned()))
        });
        if let Some((name, rest)) = odd {
            self.warn(at, format!("{name:?} is ${rest} to the letter; for the variable write ${{{rest}}}"));
        }
    }

    /// Our own section. Here an unknown key stops the start: it is a wish that would not be heard.
    fn ours(&mut self, at: &ObjectProp<'_>, options: &mut Options) -> Result<(), Wrong> {
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
                            // A wish that would not be heard, such as what to hide, costs the server it is of.
                            Some(server) => {
                                if let Err(wrong) = self.own_server(entry, server) {
                                    *server = self.unusable(name, wrong);
                                }
                            }
                            None if self.disabled.iter().any(|disabled| disabled == name) => {}
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

    fn own_server(&self, at: &ObjectProp<'_>, server: &mut ServerOptions) -> Result<(), Wrong> {
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
                "era" => server.era = Some(self.era(property)?),
                name => {
                    let known: &[&[&str]] =
                        &[&["allow", "deny", "tools", "pool", "callTimeoutSeconds", "era"]];
                    return Err(self.wrong(property, format!("is not known here{}", nearest(name, known))));
                }
            }
        }
        Ok(())
    }

    fn era(&self, at: &ObjectProp<'_>) -> Result<Era, Wrong> {
        match self.text(at)?.as_str() {
            "legacy" => Ok(Era::Legacy),
            "modern" => Ok(Era::Modern),
            other => Err(self.wrong(at, format!("is {other:?}; it is one of legacy and modern"))),
        }
    }

    fn overrides(&self, at: &ObjectProp<'_>) -> Result<BTreeMap<String, Override>, Wrong> {
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
    fn name(&self, at: &ObjectProp<'_>) -> Result<String, Wrong> {
        let name = self.text(at)?;
        if !gateway::is_legal(&name, Names::Protocol) {
            return Err(self.wrong(
                at,
                format!(
                    "is {name:?}; a name is 1 to {} characters out of A-Z a-z 0-9 _ - .",
                    gateway::MAX_NAME_LENGTH
                ),
            ));
        }
        Ok(name)
    }

    fn pool(&self, at: &ObjectProp<'_>) -> Result<Pool, Wrong> {
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
}

#[cfg(test)]
mod tests {
    use transport::client::Program;

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
        let read = read(text, &env).unwrap();
        assert_eq!((read.warnings, read.broken), (vec![], vec![]));
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
            let text =
                format!("{{\"mcpServers\": {{\"x\": {{\"type\": {of:?}, \"url\": \"https://h/mcp\"}}}}}}");
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
    fn an_entry_that_is_wrong_costs_itself_and_is_named_with_its_line() {
        for (entry, line, told) in [
            ("{}", 2, "\"x\" has neither a \"command\" nor a \"url\""),
            ("[]", 2, "\"x\" must be an object"),
            (
                "{\"comand\": \"a\"}",
                2,
                "\"x\" has neither a \"command\" nor a \"url\"; \"comand\" is not known in a server (is \"command\" meant?)",
            ),
            ("{\"source\": \"extension\"}", 2, "\"x\" comes from an extension"),
            ("{\"command\": \"a\",\n \"url\": \"https://h\"}", 2, "\"x\" has both"),
            ("{\n\"command\": 1}", 3, "\"command\" must be a text"),
            ("{\"command\": \" \"}", 2, "\"x\" has an empty \"command\""),
            ("{\"url\": \"\"}", 2, "\"x\" has a \"url\" that is empty"),
            ("{\"url\": \"notaurl\"}", 2, "but a URL begins with http:// or https://"),
            ("{\"url\": \"ftp://x\"}", 2, "begins with ftp://"),
            ("{\"url\": \"localhost:1\"}", 2, "is http://localhost:1/mcp meant?"),
            (
                "{\"url\": \"https://h\", \"headers\": {\"a b\": \"c\"}}",
                2,
                "a header \"a b\" that HTTP cannot carry",
            ),
            ("{\"command\": \"a\", \"args\": [{}]}", 2, "\"args\" must hold texts, numbers"),
            ("{\"command\": \"a\", \"env\": {\"K\": []}}", 2, "\"K\" must be a text"),
            ("{\"command\": \"a\", \"env\": {\"A=B\": \"c\"}}", 2, "no name of a variable"),
            ("{\"command\": \"${UNSET}\"}", 2, "needs ${UNSET}"),
            ("{\"command\": \"${input:key}\"}", 2, "only an editor"),
            ("{\"command\": \"C:\\Program\"}", 2, "it is written twice"),
            ("{\"command\": \"C:\\new\"}", 2, "a backslash is written twice"),
            ("{\"command\": \"a\", \"envFile\": \"/nonexistent/.env\"}", 2, "\"envFile\" that names"),
            ("{\"type\": \"ws\", \"url\": \"https://h\"}", 2, "one of stdio (or local), http"),
        ] {
            let text = format!("{{\"mcpServers\": {{\"good\": {{\"command\": \"g\"}},\n \"x\": {entry}}}}}");
            let read = read(&text, &env).unwrap();
            assert_eq!(read.broken.len(), 1, "{text}");
            let Broken { name, wrong } = &read.broken[0];
            assert_eq!((name.as_str(), wrong.line), ("x", line), "{text}: {wrong}");
            assert!(wrong.what.contains(told), "{text}: {wrong}");
            assert_eq!(names(&read.options), ["good", "x"], "{text}");
            program(&read.options.servers[0]);
            let Target::Unusable(why) = &read.options.servers[1].target else { panic!("{text}") };
            assert!(why.contains(told) && why.contains(&format!("(line {line})")), "{text}: {why}");
        }
    }

    #[test]
    fn a_server_s_own_section_that_is_wrong_costs_it_and_a_second_one_of_a_name_costs_itself() {
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
        let broken: Vec<_> = read.broken.iter().map(|b| (b.name.as_str(), b.wrong.line)).collect();
        assert_eq!(broken, [("x", 2), ("y", 4)]);
        assert!(read.broken[1].wrong.what.contains("is \"deny\" meant?"), "{:?}", read.broken[1]);
    }

    #[test]
    fn what_is_wrong_as_a_whole_is_named_with_its_line() {
        for (text, told) in [
            ("", "1: it is empty"),
            ("[]", "1: the configuration must be an object"),
            ("{}", "1: there are no \"mcpServers\""),
            ("{\"mcpServers\": []}", "1: \"mcpServers\" must be an object"),
            (
                "{\"mcpServers\": {},\n\n \"dateline\": {\"prefixx\": \"always\"}}",
                "3: \"prefixx\" is not known",
            ),
            ("{\"mcpServers\": {}, \"dateline\": {\"prefix\": \"some\"}}", "always, collision and none"),
            ("{\n  \"mcpServers\": {\n    oops", "3: this is no JSON"),
            (
                "{\"mcpServers\": {\"x\": {\"command\": \"C:\\users\"}}}",
                "a backslash in a text is written twice",
            ),
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
        assert!(odd[0].what.contains("is \"args\" meant?"), "{}", odd[0]);
        assert_eq!(warnings("\u{feff}{\"mcpServers\": {}, \"theme\": \"dark\"}"), []);
        // The settings of an editor are not gone through key by key.
        let settings =
            "{\"a.b\": 1, \"c.d\": 2, \"e.f\": 3, \"g.h\": 4,\n \"mcpServer\": {}, \"mcpServers\": {}}";
        let odd = warnings(settings);
        assert_eq!(odd.len(), 2, "{odd:?}");
        assert!(
            odd[0].what.contains("is \"mcpServers\" meant?") && odd[1].what.contains("5 keys"),
            "{odd:?}"
        );
        let literal = warnings("{\"mcpServers\": {\"x\": {\"command\": \"a\", \"env\": {\"K\": \"$KEY\"}}}}");
        assert!(literal[0].what.contains("write ${KEY}"), "{literal:?}");
    }
}
