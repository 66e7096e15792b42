//! Reads a configuration's text. Comments and trailing commas are fine. One entry that is wrong costs itself only.

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::entry::{self, Entry};
use super::reader::{Broken, Read, Reader, Wrong, nearest};
use super::section::SECTION;
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

/// The key of the projects in Claude Code's file: each by its folder, with servers of its own.
const PROJECTS: &str = "projects";

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
    let mut section = None;
    let mut found = false;
    reader.beside(root)?;
    for property in &root.properties {
        if property.name.as_str() == SECTION {
            section = Some(property);
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
    if let Some(section) = section {
        let mut options = std::mem::take(&mut reader.read.options);
        reader.section(section, &mut options)?;
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
    Ok(reader.carry(root(parsed.as_ref())?, shell)?)
}

/// Reads the servers of each project in Claude Code's file, by the project's folder.
///
/// # Errors
/// `LINE: what is wrong`, where nothing of it can be used.
pub(crate) fn carry_projects(text: &str) -> Result<Vec<(String, Vec<Carried>)>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::new(text, None);
    let parsed = parse(text)?;
    let Some(projects) = root(parsed.as_ref())?.get_object(PROJECTS) else { return Ok(Vec::new()) };
    let mut carried = Vec::new();
    for project in &projects.properties {
        if let Value::Object(of_project) = &project.value {
            carried.push((project.name.as_str().to_owned(), reader.carry(of_project, false)?));
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
    /// The servers of an object of another program, to be carried over.
    fn carry(&mut self, object: &Object<'_>, shell: bool) -> Result<Vec<Carried>, Wrong> {
        let mut carried = Vec::new();
        for property in &object.properties {
            for at in self.servers(property)?.into_iter().flatten() {
                let entry = entry::read(self, at).map_err(|wrong| wrong.what);
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

    /// Warns of keys that are nobody's beside the servers. Where there are many, the file is another program's.
    fn beside(&mut self, root: &Object<'_>) -> Result<(), String> {
        let known: &[&[&str]] = &[SERVERS, &[SECTION, NESTED], ELSEWHERE];
        let unknown = |at: &&ObjectProp<'_>| !known.iter().any(|names| names.contains(&at.name.as_str()));
        let unknown: Vec<_> = root.properties.iter().filter(unknown).collect();
        let many = unknown.len() >= ANOTHERS;
        for at in &unknown {
            if !many || !nearest(at.name.as_str(), &[SERVERS, &[SECTION]]).is_empty() {
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
                    self.warn(at, what);
                }
                server
            }
            Err(wrong) => self.unusable(&name, wrong),
        };
        self.read.options.servers.push(server);
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
}

#[cfg(test)]
mod tests;
