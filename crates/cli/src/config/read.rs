//! Reads the text of a configuration: JSON with comments and trailing commas.
//!
//! A mistake in the entry of one server makes only that server unusable.

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::reader::{ConfigReader, ParsedConfig, Problem, UnusableServer, nearest};
use super::section::SECTION;
use super::server_entry::{self, ServerEntry};
use super::values::{self, Env};

/// A server in the configuration of another program.
pub(crate) struct ImportedServer {
    /// Its name.
    pub(crate) name: String,
    /// Its entry, with variables as they are written; or why it cannot be imported.
    pub(crate) entry: Result<ServerEntry, String>,
}

/// Keys of the object of servers: in most clients, VS Code, Zed, and settings of VS Code.
pub(super) const SERVERS: &[&str] = &["mcpServers", "servers", "context_servers", "mcp.servers"];
/// A key whose object has the servers in it (opencode) or in one of [`SERVERS`] (settings of VS Code).
pub(super) const NESTED: &str = "mcp";
/// Other keys in that object, of Gemini and VS Code.
const NESTED_KEYS: &[&str] = &["inputs", "allowed", "excluded", "serverCommand"];

/// The key of the projects in Claude Code's file. Each is an object with servers, by the project's folder.
const PROJECTS: &str = "projects";

/// Keys of other programs beside the servers; they are ignored without a warning.
const IGNORED_KEYS: &[&str] =
    &["$schema", "inputs", "globalShortcut", "preferences", "sandbox", "scale", "theme"];
/// A file with at least so many unknown keys is taken for the settings of another program: a typing error is one key,
/// seldom two.
const OTHER_PROGRAM: usize = 4;

/// Reads a configuration.
///
/// # Errors
/// When nothing of it can be used. The error is `LINE: WHAT IS WRONG`.
pub(crate) fn read(text: &str, env: Env<'_>) -> Result<ParsedConfig, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ConfigReader::new(text, Some(env));
    let parsed = parse(text)?;
    let root = root(parsed.as_ref())?;
    let mut section = None;
    let mut found = false;
    reader.warn_of_unknown_keys(root)?;
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
        return Err("1: there is no \"mcpServers\"; write {\"mcpServers\": {NAME: {\"command\": …}}}".into());
    }
    if let Some(section) = section {
        let mut options = std::mem::take(&mut reader.parsed.options);
        reader.section(section, &mut options)?;
        reader.parsed.options = options;
    }
    Ok(reader.parsed)
}

/// Reads the servers in the file of another program, to import them. `shell` says that the program writes variables as a
/// shell does.
///
/// # Errors
/// When nothing of it can be used. The error is `LINE: WHAT IS WRONG`.
pub(crate) fn import(text: &str, shell: bool) -> Result<Vec<ImportedServer>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ConfigReader::new(text, None);
    let parsed = parse(text)?;
    Ok(reader.import(root(parsed.as_ref())?, shell)?)
}

/// Reads the servers of each project in Claude Code's file, by the project's folder.
///
/// # Errors
/// When nothing of it can be used. The error is `LINE: WHAT IS WRONG`.
pub(crate) fn import_projects(text: &str) -> Result<Vec<(String, Vec<ImportedServer>)>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ConfigReader::new(text, None);
    let parsed = parse(text)?;
    let Some(projects) = root(parsed.as_ref())?.get_object(PROJECTS) else { return Ok(Vec::new()) };
    let mut imported = Vec::new();
    for project in &projects.properties {
        if let Value::Object(of_project) = &project.value {
            imported.push((project.name.as_str().to_owned(), reader.import(of_project, false)?));
        }
    }
    Ok(imported)
}

/// Rewrites the variables of an entry from the form of a shell.
fn with_braces(mut entry: ServerEntry) -> ServerEntry {
    let values = entry.env.iter_mut().chain(&mut entry.headers).map(|(_, value)| value);
    for text in
        values.chain(&mut entry.args).chain(&mut entry.command).chain(&mut entry.url).chain(&mut entry.cwd)
    {
        *text = values::with_braces(text);
    }
    entry
}

fn parse(text: &str) -> Result<Option<Value<'_>>, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    parsed.map(|parsed| parsed.value).map_err(|error| {
        let hint = match error.kind() {
            ParseErrorKind::String(_) => {
                "; write each backslash in a string twice, as in \"C:\\\\Users\\\\me\", and end a string on its line"
            }
            _ => "",
        };
        let kind = error.kind().to_string();
        let lower = kind.get(..1).unwrap_or_default().to_lowercase() + kind.get(1..).unwrap_or_default();
        format!("{}: this is not valid JSON: {lower} at column {}{hint}", error.line_display(), error.column_display())
    })
}

fn root<'a, 'b>(value: Option<&'b Value<'a>>) -> Result<&'b Object<'a>, String> {
    match value {
        Some(Value::Object(root)) => Ok(root),
        None => Err("1: the file is empty; write {\"mcpServers\": {NAME: {\"command\": …}}}".into()),
        _ => {
            Err("1: the configuration must be an object, such as {\"mcpServers\": {NAME: {\"command\": …}}}"
                .into())
        }
    }
}

impl ConfigReader<'_> {
    /// Reads the servers in an object of another program, to import them.
    fn import(&mut self, object: &Object<'_>, shell: bool) -> Result<Vec<ImportedServer>, Problem> {
        let mut imported = Vec::new();
        for property in &object.properties {
            for at in self.servers(property)?.into_iter().flatten() {
                let entry = server_entry::read(self, at).map_err(|problem| problem.what);
                let entry = entry.map(|entry| if shell { with_braces(entry) } else { entry });
                let check = |entry: ServerEntry| match entry.disabled {
                    true => Err("it is disabled there".to_owned()),
                    false => entry.check_unexpanded().map(|()| entry).map_err(|why| format!("it {why}")),
                };
                imported
                    .push(ImportedServer { name: at.name.as_str().to_owned(), entry: entry.and_then(check) });
            }
        }
        Ok(imported)
    }

    /// Warns of unknown keys beside the servers. Many of them are one warning: the file is another program's then.
    fn warn_of_unknown_keys(&mut self, root: &Object<'_>) -> Result<(), String> {
        let known: &[&[&str]] = &[SERVERS, &[SECTION, NESTED], IGNORED_KEYS];
        let unknown = |at: &&ObjectProp<'_>| !known.iter().any(|names| names.contains(&at.name.as_str()));
        let unknown: Vec<_> = root.properties.iter().filter(unknown).collect();
        let many = unknown.len() >= OTHER_PROGRAM;
        for at in &unknown {
            if !many || !nearest(at.name.as_str(), &[SERVERS, &[SECTION]]).is_empty() {
                self.warn_of_unknown(at, "beside the servers", known);
            }
        }
        if let Some(at) = unknown.first().filter(|_| many) {
            let what = format!(
                "{} keys beside the servers are not known; the first is {:?}. They are ignored, as settings of another program",
                unknown.len(),
                at.name.as_str()
            );
            self.warn(at, what);
        }
        Ok(())
    }

    /// The groups of servers that a key has; none for other keys.
    fn servers<'a, 'b>(&mut self, at: &'b ObjectProp<'a>) -> Result<Vec<Vec<&'b ObjectProp<'a>>>, Problem> {
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
                (name, _) if NESTED_KEYS.contains(&name) => {
                    if name != "inputs" {
                        self.warn(
                            below,
                            format!("{name:?} in {NESTED:?} is ignored: every server is served"),
                        );
                    }
                }
                (name, Value::Object(entries)) if SERVERS.contains(&name) && !is_entry(entries) => {
                    found.push(entries.properties.iter().collect());
                }
                (_, Value::Object(_)) => direct.push(below),
                _ => drop(self.warn_of_unknown(below, &format!("in {NESTED:?}"), &[SERVERS])),
            }
        }
        if !direct.is_empty() {
            found.push(direct);
        }
        Ok(found)
    }

    /// Reads one server. A disabled one is left out; one that cannot be used is kept with the reason.
    fn server(&mut self, at: &ObjectProp<'_>) {
        let name = at.name.as_str().to_owned();
        let read = server_entry::read(self, at).and_then(|entry| {
            if entry.disabled {
                return Ok(None);
            }
            let env: Env<'_> = self.env.unwrap_or(&|_| None);
            self.warn_of_shell_variables(at, &entry);
            entry.server(&name, env).map(Some).map_err(|why| self.problem(at, why))
        });
        let twice = self.parsed.options.servers.iter().any(|other| other.name == name);
        let server = match read {
            Ok(None) => return self.disabled.push(name),
            _ if twice => {
                let problem =
                    self.problem(at, "is the name of an earlier server; give this one another name");
                return self.parsed.unusable.push(UnusableServer { name, problem });
            }
            Ok(Some((server, warnings))) => {
                for what in warnings {
                    self.warn(at, what);
                }
                server
            }
            Err(problem) => self.unusable(&name, problem),
        };
        self.parsed.options.servers.push(server);
    }

    /// Warns of a variable in the form of a shell, `$NAME`: it is not replaced.
    fn warn_of_shell_variables(&mut self, at: &ObjectProp<'_>, entry: &ServerEntry) {
        let odd = entry.env.iter().chain(&entry.headers).find_map(|(name, value)| {
            let rest = value.strip_prefix('$')?;
            let name_of_one = values::with_braces(value) == format!("${{{rest}}}");
            name_of_one.then(|| (name.clone(), rest.to_owned()))
        });
        if let Some((name, rest)) = odd {
            self.warn(
                at,
                format!("{name:?} is the text ${rest} itself; to use the variable, write ${{{rest}}}"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
