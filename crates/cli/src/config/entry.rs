//! A server's entry: what stands in it, in the words of any client, and what it comes to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gateway::{Pattern, ServerOptions, Target};
use jsonc_parser::ast::{ObjectProp, Value};
use transport::client::{Program, Remote};

use super::reader::{Reader, Wrong};
use super::values::{self, Env};
use crate::readers;

/// Keys that mean something here.
pub(super) const KNOWN: &[&str] = &[
    "command",
    "args",
    "env",
    "environment",
    "envFile",
    "env_vars",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "type",
    "transport",
    "disabled",
    "enabled",
    "includeTools",
    "enabled_tools",
    "excludeTools",
    "disabledTools",
    "disabled_tools",
];
/// Keys that other programs use for what has no equal here.
pub(super) const ELSEWHERE: &[&str] = &[
    "alwaysAllow",
    "auth",
    "authProviderType",
    "autoApprove",
    "autoStart",
    "dev",
    "enabledTools",
    "oauth",
    "oauth_scopes",
    "priority",
    "sandbox",
    "sandboxEnabled",
    "settings",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "timeout",
    "tool_timeout_sec",
    "tools",
    "trust",
];
/// Keys that say nothing of how the server is reached or used.
pub(super) const WORDS: &[&str] = &[
    "chat.mcp",
    "description",
    "gallery",
    "icon",
    "iconPath",
    "managedBy",
    "name",
    "note",
    "source",
    "version",
];

/// What stands in a server's entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) env_file: Option<String>,
    /// Variables of our own environment that it gets where they are set.
    pub(crate) env_vars: Vec<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) sse: bool,
    pub(crate) disabled: bool,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    /// Keys that are not known at all, each with what is said of it.
    pub(crate) unknown: Vec<(String, String)>,
    /// Keys of other programs that have no equal here.
    pub(crate) elsewhere: Vec<String>,
    /// It comes from an extension of the editor, which alone knows how it is started.
    pub(crate) of_an_extension: bool,
}

/// Reads an entry. Whether it is disabled is looked at first: then nothing else of it matters.
pub(super) fn read(reader: &mut Reader<'_>, at: &ObjectProp<'_>) -> Result<Entry, Wrong> {
    let object = reader.object(at)?;
    let mut entry = Entry::default();
    for property in &object.properties {
        match property.name.as_str() {
            "disabled" => entry.disabled = reader.flag(property)?,
            "enabled" => entry.disabled = !reader.flag(property)?,
            _ => {}
        }
    }
    if entry.disabled {
        return Ok(entry);
    }
    for property in &object.properties {
        if !matches!(property.value, Value::NullKeyword(_)) {
            entry.take(reader, property)?;
        }
    }
    entry.choose();
    Ok(entry)
}

impl Entry {
    fn take(&mut self, reader: &mut Reader<'_>, at: &ObjectProp<'_>) -> Result<(), Wrong> {
        match at.name.as_str() {
            "command" => self.take_command(reader, at)?,
            "args" => self.args.extend(reader.texts(at)?),
            "env" | "environment" => self.env.extend(reader.map(at)?),
            "envFile" => self.env_file = Some(reader.path(at)?),
            "env_vars" => self.env_vars = reader.names(at)?,
            "cwd" => self.cwd = Some(reader.path(at)?),
            "url" | "serverUrl" | "httpUrl" => self.url = Some(reader.text(at)?),
            "headers" | "http_headers" => self.headers.extend(reader.map(at)?),
            "env_http_headers" => {
                for header in &reader.object(at)?.properties {
                    let value = reader.expand(header, &format!("${{{}}}", reader.plain(header)?))?;
                    self.headers.push((header.name.as_str().to_owned(), value));
                }
            }
            "bearer_token_env_var" => {
                let value = reader.expand(at, &format!("Bearer ${{{}}}", reader.plain(at)?))?;
                self.headers.push(("Authorization".to_owned(), value));
            }
            "type" | "transport" => self.sse = transport(reader, at)?,
            "includeTools" | "enabled_tools" => self.allow.extend(reader.texts(at)?),
            "excludeTools" | "disabledTools" | "disabled_tools" => self.deny.extend(reader.texts(at)?),
            "disabled" | "enabled" => {}
            name => {
                self.of_an_extension |=
                    name == "source" && reader.plain(at).is_ok_and(|source| source == "extension");
                if ELSEWHERE.contains(&name) {
                    self.elsewhere.push(name.to_owned());
                } else if !WORDS.contains(&name) {
                    let said = reader.unknown(at, "in a server", &[KNOWN, ELSEWHERE, WORDS]);
                    self.unknown.push((name.to_owned(), said));
                }
            }
        }
        Ok(())
    }

    /// A program's name; its name and arguments in one array, as opencode has it; or Zed's older form, an object.
    fn take_command(&mut self, reader: &mut Reader<'_>, at: &ObjectProp<'_>) -> Result<(), Wrong> {
        match &at.value {
            Value::Object(command) => {
                for property in &command.properties {
                    match property.name.as_str() {
                        "path" => self.command = Some(reader.path(property)?),
                        "args" => self.args = reader.texts(property)?,
                        "env" => self.env.extend(reader.map(property)?),
                        _ => drop(reader.unknown(property, "in a command", &[&["path", "args", "env"]])),
                    }
                }
            }
            Value::Array(_) => {
                let mut words = reader.texts(at)?.into_iter();
                self.command = Some(reader.at_home(words.next().unwrap_or_default()));
                let behind = std::mem::take(&mut self.args);
                self.args = words.chain(behind).collect();
            }
            _ => self.command = Some(reader.path(at)?),
        }
        Ok(())
    }

    /// Some programs write both keys and leave one empty.
    fn choose(&mut self) {
        let said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        match (said(&self.command), said(&self.url)) {
            (true, false) => self.url = None,
            (false, true) => self.command = None,
            _ => {}
        }
    }

    /// Where the server is, in words. Values that may be secret are not shown.
    pub(crate) fn place(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => [std::slice::from_ref(command), &self.args].concat().join(" "),
            (None, Some(url)) => transport::shown_url(url),
            (None, None) => String::new(),
        }
    }

    /// Says why no server can be had by this entry.
    fn check(&self) -> Result<(), String> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                return Err("has both a \"command\" and a \"url\"; it can be only one of them".into());
            }
            (None, None) if self.of_an_extension => {
                return Err("comes from an extension of the editor, which alone knows how to start it; \
                            write its \"command\" or \"url\""
                    .into());
            }
            (None, None) => {
                let unknown = self.unknown.iter().map(|(_, said)| format!("; {said}"));
                let unknown: String = unknown.collect();
                return Err(format!("has neither a \"command\" nor a \"url\"{unknown}"));
            }
            (Some(command), None) if command.trim().is_empty() => {
                return Err("has an empty \"command\"; it is the program to start".into());
            }
            (None, Some(url)) => values::url(url).map_err(|why| format!("has a \"url\" that {why}"))?,
            (Some(_), None) => {}
        }
        for (name, value) in &self.headers {
            values::header(name, value)?;
        }
        if let Some((name, _)) = self.env.iter().find(|(name, _)| name.is_empty() || name.contains('=')) {
            return Err(format!("has an \"env\" with {name:?}, which is no name of a variable"));
        }
        let texts = self.command.iter().chain(&self.args).chain(self.env.iter().map(|(_, value)| value));
        if texts.chain(&self.cwd).any(|text| text.contains('\0')) {
            return Err("has a zero character in it, which no program can be given".into());
        }
        Ok(())
    }

    /// Where the server is, and what is odd about it.
    fn target(self, name: &str, env: Env<'_>) -> Result<(Target, Vec<String>), String> {
        self.check()?;
        let mut odd = Vec::new();
        if let Some(url) = self.url {
            return Ok((Target::Remote(Remote { url, headers: self.headers, sse: self.sse }), odd));
        }
        let own = self.env_vars.into_iter().filter_map(|name| Some((name.clone(), env(&name)?)));
        let mut variables: HashMap<String, String> = own.collect();
        if let Some(file) = &self.env_file {
            let (said, lines) =
                values::env_file(file).map_err(|why| format!("has an \"envFile\" that {why}"))?;
            odd.extend(
                lines
                    .into_iter()
                    .map(|line| format!("line {line} of {file:?} is no NAME=value; it is ignored")),
            );
            odd.extend(readers::of(Path::new(file)).map(|warning| format!("\"envFile\": {warning}")));
            variables.extend(said);
        }
        variables.extend(self.env);
        let mut program = Program {
            name: name.to_owned(),
            command: self.command.unwrap_or_default(),
            args: self.args,
            env: variables,
            ..Program::default()
        };
        program.cwd = self.cwd.map(PathBuf::from);
        Ok((Target::Program(program), odd))
    }

    /// The server, and what is odd about it.
    pub(super) fn server(mut self, name: &str, env: Env<'_>) -> Result<(ServerOptions, Vec<String>), String> {
        let patterns = |names: Vec<String>| names.iter().map(|name| Pattern::new(name)).collect();
        let (allow, deny) =
            (patterns(std::mem::take(&mut self.allow)), patterns(std::mem::take(&mut self.deny)));
        let (target, odd) = self.target(name, env)?;
        Ok((ServerOptions { allow, deny, ..ServerOptions::new(name, target) }, odd))
    }

    /// Whether no server can be had by this entry, wherever it is read. What comes from the environment is not looked
    /// at: a URL may be all in a variable.
    pub(super) fn carried(&self) -> Result<(), String> {
        let varies = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("${"));
        let settled = Entry { headers: Vec::new(), ..self.clone() };
        if varies(&self.command) || varies(&self.url) { Ok(()) } else { settled.check() }
    }
}

/// Whether the transport is HTTP+SSE; the others are told by what else stands in the entry.
fn transport(reader: &Reader<'_>, at: &ObjectProp<'_>) -> Result<bool, Wrong> {
    match reader.text(at)?.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" | "http" | "remote" | "streamablehttp" | "httpstream" => Ok(false),
        "sse" => Ok(true),
        _ => Err(reader.wrong(
            at,
            format!(
                "is {:?}; it is one of stdio (or local), http (or streamable-http, remote) and sse",
                reader.plain(at)?
            ),
        )),
    }
}
