//! The entry of one server: read with the keys of any client, checked, and turned into options for the gateway.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gateway::{Pattern, ServerOptions, Target};
use jsonc_parser::ast::{ObjectProp, Value};
use transport::client::{Program, Remote};

use super::reader::{ConfigReader, Problem};
use super::values::{self, Env};
use crate::permissions;

/// Keys that dateline uses.
pub(super) const KNOWN_KEYS: &[&str] = &[
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
/// Keys of other programs for things that dateline does not do.
pub(super) const IGNORED_KEYS: &[&str] = &[
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
/// Keys that only describe the server.
pub(super) const DESCRIPTIVE_KEYS: &[&str] = &[
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

/// The entry of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) env_file: Option<String>,
    /// Variables that the server gets from dateline's environment, when they are set there.
    pub(crate) env_vars: Vec<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the URL is one of HTTP+SSE.
    pub(crate) sse: bool,
    pub(crate) disabled: bool,
    /// Patterns of the tools that are shown; empty means all.
    pub(crate) allow: Vec<String>,
    /// Patterns of the tools that are hidden.
    pub(crate) deny: Vec<String>,
    /// A sentence about each key that is not known at all.
    pub(crate) unknown_keys: Vec<String>,
    /// Those of [`IGNORED_KEYS`] that it has.
    pub(crate) ignored_keys: Vec<String>,
    /// Whether it comes from an extension of an editor. Only the extension knows how to start it.
    pub(crate) from_extension: bool,
}

/// Reads an entry. Nothing but that fact is read of a disabled one.
///
/// # Errors
/// When a key has a value of the wrong kind.
pub(super) fn read(reader: &mut ConfigReader<'_>, at: &ObjectProp<'_>) -> Result<ServerEntry, Problem> {
    let object = reader.object(at)?;
    let mut entry = ServerEntry::default();
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
            entry.read_key(reader, property)?;
        }
    }
    entry.drop_empty_target();
    Ok(entry)
}

impl ServerEntry {
    fn read_key(&mut self, reader: &mut ConfigReader<'_>, at: &ObjectProp<'_>) -> Result<(), Problem> {
        match at.name.as_str() {
            "command" => self.read_command(reader, at)?,
            "args" => self.args.extend(reader.strings(at)?),
            "env" | "environment" => self.env.extend(reader.string_map(at)?),
            "envFile" => self.env_file = Some(reader.path(at)?),
            "env_vars" => self.env_vars = reader.names(at)?,
            "cwd" => self.cwd = Some(reader.path(at)?),
            "url" | "serverUrl" | "httpUrl" => self.url = Some(reader.string(at)?),
            "headers" | "http_headers" => self.headers.extend(reader.string_map(at)?),
            "env_http_headers" => {
                for header in &reader.object(at)?.properties {
                    let value = reader.expand(header, &format!("${{{}}}", reader.literal(header)?))?;
                    self.headers.push((header.name.as_str().to_owned(), value));
                }
            }
            "bearer_token_env_var" => {
                let value = reader.expand(at, &format!("Bearer ${{{}}}", reader.literal(at)?))?;
                self.headers.push(("Authorization".to_owned(), value));
            }
            "type" | "transport" => self.sse = is_sse(reader, at)?,
            "includeTools" | "enabled_tools" => self.allow.extend(reader.strings(at)?),
            "excludeTools" | "disabledTools" | "disabled_tools" => self.deny.extend(reader.strings(at)?),
            "disabled" | "enabled" => {}
            name => {
                self.from_extension |=
                    name == "source" && reader.literal(at).is_ok_and(|source| source == "extension");
                if IGNORED_KEYS.contains(&name) {
                    self.ignored_keys.push(name.to_owned());
                } else if !DESCRIPTIVE_KEYS.contains(&name) {
                    let sentence = reader.warn_of_unknown(
                        at,
                        "in a server",
                        &[KNOWN_KEYS, IGNORED_KEYS, DESCRIPTIVE_KEYS],
                    );
                    self.unknown_keys.push(sentence);
                }
            }
        }
        Ok(())
    }

    /// Reads a command: a string, or an array with its arguments (opencode), or an object (older versions of Zed).
    fn read_command(&mut self, reader: &mut ConfigReader<'_>, at: &ObjectProp<'_>) -> Result<(), Problem> {
        match &at.value {
            Value::Object(command) => {
                for property in &command.properties {
                    match property.name.as_str() {
                        "path" => self.command = Some(reader.path(property)?),
                        "args" => self.args = reader.strings(property)?,
                        "env" => self.env.extend(reader.string_map(property)?),
                        _ => drop(reader.warn_of_unknown(
                            property,
                            "in a command",
                            &[&["path", "args", "env"]],
                        )),
                    }
                }
            }
            Value::Array(_) => {
                let mut strings = reader.strings(at)?.into_iter();
                self.command = Some(reader.expand_tilde(strings.next().unwrap_or_default()));
                let more = std::mem::take(&mut self.args);
                self.args = strings.chain(more).collect();
            }
            _ => self.command = Some(reader.path(at)?),
        }
        Ok(())
    }

    /// Removes an empty `command` beside a `url`, and the other way round: some programs write both.
    fn drop_empty_target(&mut self) {
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        match (is_set(&self.command), is_set(&self.url)) {
            (true, false) => self.url = None,
            (false, true) => self.command = None,
            _ => {}
        }
    }

    /// The command line or the URL, for people. Parts of a URL that may be secret are left out.
    pub(crate) fn shown_target(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => [std::slice::from_ref(command), &self.args].concat().join(" "),
            (None, Some(url)) => transport::shown_url(url),
            (None, None) => String::new(),
        }
    }

    /// Checks that the entry can be used.
    ///
    /// # Errors
    /// When it cannot. The error goes on after the name of the server.
    fn check(&self) -> Result<(), String> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                return Err("has both a \"command\" and a \"url\"; remove one of them".into());
            }
            (None, None) if self.from_extension => {
                return Err(
                    "comes from an extension of an editor, and only the extension knows how to start it; \
                            add its \"command\" or \"url\""
                        .into(),
                );
            }
            (None, None) => {
                let unknown: String =
                    self.unknown_keys.iter().map(|sentence| format!("; {sentence}")).collect();
                return Err(format!("has neither a \"command\" nor a \"url\"{unknown}"));
            }
            (Some(command), None) if command.trim().is_empty() => {
                return Err("has an empty \"command\"; it must name the program to start".into());
            }
            (None, Some(url)) => values::check_url(url).map_err(|why| format!("has a \"url\" that {why}"))?,
            (Some(_), None) => {}
        }
        for (name, value) in &self.headers {
            values::check_header(name, value)?;
        }
        if let Some((name, _)) = self.env.iter().find(|(name, _)| name.is_empty() || name.contains('=')) {
            return Err(format!("has an \"env\" with {name:?}, which is not the name of a variable"));
        }
        let texts = self.command.iter().chain(&self.args).chain(self.env.iter().map(|(_, value)| value));
        if texts.chain(&self.cwd).any(|text| text.contains('\0')) {
            return Err("contains a zero character, which a program cannot be given".into());
        }
        Ok(())
    }

    /// The target of the server, and warnings.
    fn target(self, name: &str, env: Env<'_>) -> Result<(Target, Vec<String>), String> {
        self.check()?;
        let mut warnings = Vec::new();
        if let Some(url) = self.url {
            return Ok((Target::Remote(Remote { url, headers: self.headers, sse: self.sse }), warnings));
        }
        let own = self.env_vars.into_iter().filter_map(|name| Some((name.clone(), env(&name)?)));
        let mut variables: HashMap<String, String> = own.collect();
        if let Some(file) = &self.env_file {
            let (read, lines) =
                values::env_file(file).map_err(|why| format!("has an \"envFile\" that {why}"))?;
            warnings.extend(
                lines
                    .into_iter()
                    .map(|line| format!("line {line} of {file:?} is not NAME=value; it is ignored")),
            );
            warnings.extend(
                permissions::warning(Path::new(file)).map(|warning| format!("\"envFile\": {warning}")),
            );
            variables.extend(read);
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
        Ok((Target::Program(program), warnings))
    }

    /// The options for the gateway, and warnings.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(super) fn server(mut self, name: &str, env: Env<'_>) -> Result<(ServerOptions, Vec<String>), String> {
        let patterns = |names: Vec<String>| names.iter().map(|name| Pattern::new(name)).collect();
        let (allow, deny) =
            (patterns(std::mem::take(&mut self.allow)), patterns(std::mem::take(&mut self.deny)));
        let (target, warnings) = self.target(name, env)?;
        Ok((ServerOptions { allow, deny, ..ServerOptions::new(name, target) }, warnings))
    }

    /// Checks that the entry can be used in some environment: a whole URL may be in a variable.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn check_unexpanded(&self) -> Result<(), String> {
        let has_variable = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("${"));
        let without_headers = ServerEntry { headers: Vec::new(), ..self.clone() };
        if has_variable(&self.command) || has_variable(&self.url) { Ok(()) } else { without_headers.check() }
    }
}

/// Whether a transport is HTTP+SSE. For the others, `command` or `url` says enough.
fn is_sse(reader: &ConfigReader<'_>, at: &ObjectProp<'_>) -> Result<bool, Problem> {
    match reader.string(at)?.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" | "http" | "remote" | "streamablehttp" | "httpstream" => Ok(false),
        "sse" => Ok(true),
        _ => Err(reader.problem(
            at,
            format!(
                "is {:?}; it must be one of stdio (or local), http (or streamable-http, remote) and sse",
                reader.literal(at)?
            ),
        )),
    }
}
