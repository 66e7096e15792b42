//! Reads a configuration's text. Comments and trailing commas are fine. One entry that is wrong costs itself only.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use gateway::{Options, Override, Pattern, Pool, Prefix, ServerOptions, Target};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::entry::{self, Entry};
use super::values::{self, Env};
use crate::exit;

/// Something odd that does not stop the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The line.
    pub(crate) line: usize,
    /// What is odd.
    pub(crate) what: String,
}

/// Something wrong: it stops the start where it concerns all, and costs a server where it concerns that one.
pub(crate) type Wrong = Warning;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> String {
        wrong.to_string()
    }
}

/// A server whose entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Its name.
    pub(crate) name: String,
    /// What is wrong, and where.
    pub(crate) wrong: Wrong,
}

/// What a text says.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// What is to be served; servers whose entries cannot be used are in it as such.
    pub(crate) options: Options,
    /// Those servers, and those that are not in it since their name is another one's.
    pub(crate) broken: Vec<Broken>,
    /// What is odd.
    pub(crate) warnings: Vec<Warning>,
}

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
    let mut reader = Reader { text, env: Some(env), read: Read::default(), disabled: Vec::new() };
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
    let mut reader = Reader { text, env: None, read: Read::default(), disabled: Vec::new() };
    let parsed = parse(text)?;
    let mut carried = Vec::new();
    for property in &root(parsed.as_ref())?.properties {
        for at in reader.servers(property)?.into_iter().flatten() {
            let entry = entry::read(&mut reader, at).map_err(|wrong| wrong.what);
            let entry = entry.map(|entry| if shell { braced(entry) } else { entry });
            let fit = |entry: Entry| match entry.disabled {
                true => Err("it is disabled there".to_owned()),
                false => entry.carried().map(|()| entry),
            };
            carried.push(Carried { name: at.name.as_str().to_owned(), entry: entry.and_then(fit) });
        }
    }
    Ok(carried)
}

/// An entry whose variables are written as a shell's.
fn braced(mut entry: Entry) -> Entry {
    let values = entry.env.iter_mut().chain(&mut entry.headers).map(|(_, value)| value);
    for text in values.chain(&mut entry.args).chain(&mut entry.command).chain(&mut entry.url).chain(&mut entry.cwd) {
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
        None => Err("1: it is empty; it must have \"mcpServers\": {\"mcpServers\": {NAME: {\"command\": …}}}".into()),
        _ => Err("1: the configuration must be an object: {\"mcpServers\": {NAME: {\"command\": …}}}".into()),
    }
}

/// Reads what stands at a place of the text.
pub(super) struct Reader<'a> {
    text: &'a str,
    /// Without it variables stay as they are written.
    env: Option<Env<'a>>,
    read: Read,
    disabled: Vec<String>,
}

impl Reader<'_> {
    fn line(&self, at: &ObjectProp<'_>) -> usize {
        self.text[..at.start().min(self.text.len())].matches('\n').count() + 1
    }

    pub(super) fn wrong(&self, at: &ObjectProp<'_>, why: impl fmt::Display) -> Wrong {
        Wrong { line: self.line(at), what: format!("{:?} {why}", at.name.as_str()) }
    }

    fn warn(&mut self, at: &ObjectProp<'_>, what: String) {
        let line = self.line(at);
        self.read.warnings.push(Warning { line, what });
    }

    /// Warns of a key; gives what is said of it.
    pub(super) fn unknown(&mut self, at: &ObjectProp<'_>, place: &str, known: &[&[&str]]) -> String {
        let name = at.name.as_str().to_owned();
        let said = format!("{name:?} is not known {place}{}", nearest(&name, known));
        self.warn(at, format!("{said}; it is ignored"));
        said
    }

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
                ["command", "url", "type", "enabled", "disabled"].iter().any(|key| has(key))
            };
            match (below.name.as_str(), &below.value) {
                (name, _) if IN_NESTED.contains(&name) => {
                    if name != "inputs" {
                        self.warn(below, format!("{name:?} of {NESTED:?} says nothing here: every server is served"));
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
                let wrong = self.wrong(at, "stands twice: the first one counts, and this one needs another name");
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
                    let known: &[&[&str]] = &[&["prefix", "servers"]];
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
                name => {
                    let known: &[&[&str]] = &[&["allow", "deny", "tools", "pool", "callTimeoutSeconds"]];
                    return Err(self.wrong(property, format!("is not known here{}", nearest(name, known))));
                }
            }
        }
        Ok(())
    }

    fn overrides(&self, at: &ObjectProp<'_>) -> Result<BTreeMap<String, Override>, Wrong> {
        let mut overrides = BTreeMap::new();
        for tool in &self.object(at)?.properties {
            let mut said = Override::default();
            for property in &self.object(tool)?.properties {
                match property.name.as_str() {
                    "title" => said.title = Some(self.text(property)?),
                    "description" => said.description = Some(self.text(property)?),
                    name => {
                        let nearest = nearest(name, &[&["title", "description"]]);
                        return Err(self.wrong(property, format!("is not known of a tool{nearest}")));
                    }
                }
            }
            overrides.insert(tool.name.as_str().to_owned(), said);
        }
        Ok(overrides)
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

    pub(super) fn object<'a, 'b>(&self, at: &'b ObjectProp<'a>) -> Result<&'b Object<'a>, Wrong> {
        match &at.value {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong(at, "must be an object")),
        }
    }

    /// A text, with the environment in it.
    pub(super) fn text(&self, at: &ObjectProp<'_>) -> Result<String, Wrong> {
        self.expand(at, &self.plain(at)?)
    }

    /// A text as it is written.
    pub(super) fn plain(&self, at: &ObjectProp<'_>) -> Result<String, Wrong> {
        match &at.value {
            Value::StringLit(text) => {
                self.escapes(at, text.range.start, text.range.end)?;
                Ok(text.value.clone().into_owned())
            }
            _ => Err(self.wrong(at, "must be a text")),
        }
    }

    /// The path of a file or folder.
    pub(super) fn path(&self, at: &ObjectProp<'_>) -> Result<String, Wrong> {
        let path = self.text(at)?;
        if path.contains(['\t', '\n', '\r', '\u{8}', '\u{c}']) {
            return Err(self.wrong(at, "has a control character in it; a backslash is written twice, as in \"C:\\\\new\""));
        }
        Ok(self.at_home(path))
    }

    /// A path whose `~/` is the user's home, unless it is carried over as it is written.
    pub(super) fn at_home(&self, path: String) -> String {
        match self.env {
            Some(env) => values::at_home(path, env),
            None => path,
        }
    }

    /// Puts the environment into a text.
    pub(super) fn expand(&self, at: &ObjectProp<'_>, text: &str) -> Result<String, Wrong> {
        let expanded = match self.env {
            Some(env) => values::expand(text, env),
            None => values::carry(text),
        };
        expanded.map_err(|why| self.wrong(at, why))
    }

    /// A text, or a number or word of JSON, which programs are given as text.
    fn as_text(&self, at: &ObjectProp<'_>, value: &Value<'_>) -> Result<Option<String>, Wrong> {
        match value {
            Value::StringLit(text) => {
                self.escapes(at, text.range.start, text.range.end)?;
                self.expand(at, &text.value).map(Some)
            }
            Value::NumberLit(number) => Ok(Some(number.value.to_owned())),
            Value::BooleanLit(word) => Ok(Some(word.value.to_string())),
            _ => Ok(None),
        }
    }

    /// Refuses escapes that JSON does not have: they would vanish from a Windows path without a word.
    fn escapes(&self, at: &ObjectProp<'_>, start: usize, end: usize) -> Result<(), Wrong> {
        let mut written = self.text.get(start..end).unwrap_or_default().chars();
        while let Some(c) = written.next() {
            if c == '\\' && written.next().is_some_and(|c| !"\\\"'/bfnrtu\n".contains(c)) {
                return Err(self.wrong(at, "has a single backslash; it is written twice, as in \"C:\\\\Users\\\\me\""));
            }
        }
        Ok(())
    }

    pub(super) fn texts(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Wrong> {
        let Value::Array(array) = &at.value else { return Err(self.wrong(at, "must be an array of texts")) };
        let text = |value| {
            self.as_text(at, value)?.ok_or_else(|| self.wrong(at, "must hold texts, numbers, true or false only"))
        };
        array.elements.iter().map(text).collect()
    }

    /// Names of variables: texts, or objects that have one as their name.
    pub(super) fn names(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Wrong> {
        let Value::Array(array) = &at.value else { return Err(self.wrong(at, "must be an array of names")) };
        let name = |value: &Value<'_>| {
            let name = match value {
                Value::Object(object) => object.properties.iter().find(|p| p.name.as_str() == "name").map(|p| &p.value),
                value => Some(value),
            };
            let name = name.and_then(Value::as_string_lit).map(|name| name.value.clone().into_owned());
            name.ok_or_else(|| self.wrong(at, "must hold names of variables only"))
        };
        array.elements.iter().map(name).collect()
    }

    pub(super) fn map(&self, at: &ObjectProp<'_>) -> Result<Vec<(String, String)>, Wrong> {
        let entries = self.object(at)?.properties.iter();
        let entry = |entry: &ObjectProp<'_>| {
            let value = self.as_text(entry, &entry.value)?;
            let value = value.ok_or_else(|| self.wrong(entry, "must be a text, a number, true or false"))?;
            Ok((entry.name.as_str().to_owned(), value))
        };
        entries.filter(|entry| !matches!(entry.value, Value::NullKeyword(_))).map(entry).collect()
    }

    pub(super) fn flag(&self, at: &ObjectProp<'_>) -> Result<bool, Wrong> {
        match &at.value {
            Value::BooleanLit(flag) => Ok(flag.value),
            _ => Err(self.wrong(at, "must be true or false")),
        }
    }

    fn number(&self, at: &ObjectProp<'_>, least: u64, most: u64) -> Result<u64, Wrong> {
        let number = match &at.value {
            Value::NumberLit(number) => number.value.parse().ok(),
            _ => None,
        };
        number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| self.wrong(at, format!("must be a whole number from {least} to {most}")))
    }
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
