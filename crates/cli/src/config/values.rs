//! Strings of a configuration: their variables, and whether they are right for a URL, a program or a header.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Looks up a variable of the environment.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variables that only editors can replace.
const EDITOR_VARIABLES: &[&str] = &[
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileWorkspaceFolder",
    "relativeFile",
    "cwd",
    "execPath",
    "selectedText",
];
/// The beginnings of other variables that only editors can replace.
const EDITOR_PREFIXES: &[&str] = &["input:", "command:", "config:", "workspaceFolder:"];

/// A part of a string.
enum StringPart<'a> {
    /// Text that stays as it is.
    Plain(&'a str),
    /// A variable: its name, its default, and how it is written.
    Variable(&'a str, Option<&'a str>, &'a str),
    /// A variable that only an editor can replace.
    Editor(&'a str),
}

/// The parts of a string. Variables are `${NAME}`, `${NAME:-default}`, `${env:NAME}` of editors, and `{env:NAME}` of opencode.
fn parts_of(text: &str) -> Vec<StringPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${").into_iter().chain(rest.find("{env:")).min() {
        let Some(end) = rest[at..].find('}').map(|end| at + end + 1) else { break };
        let written = &rest[at..end];
        parts.push(StringPart::Plain(&rest[..at]));
        parts.push(part(written));
        rest = &rest[end..];
    }
    parts.push(StringPart::Plain(rest));
    parts
}

fn part(written: &str) -> StringPart<'_> {
    let inside = written.trim_start_matches('$').trim_start_matches('{').trim_end_matches('}');
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if EDITOR_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        StringPart::Editor(written)
    } else if plain {
        StringPart::Variable(name, default, written)
    } else {
        // Other forms are for somebody else, such as a shell.
        StringPart::Plain(written)
    }
}

/// Replaces the variables of a string.
///
/// # Errors
/// When one is not set and has no default, or only an editor can replace it.
pub(crate) fn expand(text: &str, env: Env<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    for part in parts_of(text) {
        match part {
            StringPart::Plain("${/}") | StringPart::Variable("pathSeparator", None, _) => out.push('/'),
            StringPart::Plain(text) => out.push_str(text),
            StringPart::Editor(written) => return Err(needs_an_editor(written)),
            StringPart::Variable("userHome", None, _) => out.push_str(&env("HOME").unwrap_or_default()),
            StringPart::Variable(name, default, written) => {
                match (env(name).filter(|value| !value.is_empty() || default.is_none()), default) {
                    (Some(value), _) => out.push_str(&value),
                    (None, Some(default)) => out.push_str(default),
                    (None, None) if EDITOR_VARIABLES.contains(&name) => return Err(needs_an_editor(written)),
                    (None, None) => {
                        return Err(format!(
                            "needs ${{{name}}}, which is not set in the environment; set it, or write a default as in ${{{name}:-default}}"
                        ));
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Returns a string as it is written, for another configuration file.
///
/// # Errors
/// When it has a variable that only an editor can replace.
pub(crate) fn unexpanded(text: &str) -> Result<String, String> {
    for part in parts_of(text) {
        match part {
            StringPart::Editor(written) => return Err(needs_an_editor(written)),
            StringPart::Variable(name, None, written) if EDITOR_VARIABLES.contains(&name) => {
                return Err(needs_an_editor(written));
            }
            _ => {}
        }
    }
    Ok(text.to_owned())
}

fn needs_an_editor(written: &str) -> String {
    format!(
        "contains {written}, which only an editor can replace; write ${{NAME}} and set NAME in the environment"
    )
}

/// Replaces variables as a shell writes them, `$NAME`, by `${NAME}`. Only names in capitals count: anything else is more
/// often text with a dollar sign.
pub(crate) fn with_braces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = after.find(|c| !name(c)).unwrap_or(after.len());
        if after.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') {
            out.push_str(&format!("${{{}}}", &after[..end]));
            rest = &after[end..];
        } else {
            out.push('$');
            rest = after;
        }
    }
    out + rest
}

/// Replaces `~/` at the beginning of a path by the user's home.
pub(crate) fn expand_tilde(path: String, env: Env<'_>) -> String {
    match (path.strip_prefix('~'), env("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home + rest,
        _ => path,
    }
}

/// Reads a file of `NAME=value` lines. Returns the variables, and the numbers of lines that have another form.
pub(crate) fn env_file(path: &str) -> Result<(HashMap<String, String>, Vec<usize>), String> {
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("names {path:?}, which cannot be read: {e}"))?;
    let (mut read, mut odd) = (HashMap::new(), Vec::new());
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.strip_prefix("export ").unwrap_or(line).split_once('=') else {
            odd.push(at + 1);
            continue;
        };
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
        read.insert(name.trim().to_owned(), bare.unwrap_or(value).to_owned());
    }
    Ok((read, odd))
}

/// Checks that a string is a URL that can be connected to.
///
/// # Errors
/// When it is not. The error says why, and suggests a URL where it can.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let shown = transport::shown_url(text);
    if text.trim().is_empty() {
        return Err("is empty".into());
    }
    let Some((scheme, _)) = text.split_once("://") else {
        return Err(format!(
            "is {shown:?}, but a URL must begin with http:// or https://{}",
            suggested_url(&shown)
        ));
    };
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return Err(format!("begins with {scheme}://, but it must be http:// or https://"));
    }
    match url::Url::parse(text) {
        Ok(url) if url.has_host() => Ok(()),
        Ok(_) => Err(format!("is {shown:?}, which has no host")),
        Err(why) => Err(format!("is {shown:?}, which is not a URL: {why}")),
    }
}

/// The URL that somebody may have meant by a host and a port, as the end of a sentence; empty for other texts.
pub(crate) fn suggested_url(text: &str) -> String {
    let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let parsed = url::Url::parse(&format!("http://{authority}/")).ok();
    let Some(host) = parsed.as_ref().and_then(url::Url::host_str) else { return String::new() };
    let port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let local = host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if authority.contains(char::is_whitespace) || !(port || local || host.contains('.')) {
        return String::new();
    }
    let scheme = if local || port { "http" } else { "https" };
    let path = if path.len() > 1 { path } else { "/mcp" };
    format!(" (did you mean {scheme}://{authority}{path}?)")
}

/// The URL with the usual path, for one that has no path.
pub(crate) fn suggested_path(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok().filter(|url| url.path() == "/" && url.query().is_none())?;
    Some(transport::shown_url(parsed.join("/mcp").ok()?.as_str()))
}

/// Checks that HTTP can carry a header.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let fine = http::HeaderName::try_from(name).is_ok() && http::HeaderValue::from_str(value).is_ok();
    if fine {
        Ok(())
    } else {
        Err(format!(
            "has a header {name:?} that HTTP cannot carry; check its name and value for spaces and control characters"
        ))
    }
}

/// The path of the program that a command starts, by the rules of the system.
pub(crate) fn find_program(command: &str, path: Option<&str>) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(runs);
    }
    let own = || std::env::var("PATH").ok();
    let path = path.map(str::to_owned).or_else(own).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    path.split(':').map(|folder| Path::new(folder).join(command)).find(runs)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An environment for tests.
    pub(in crate::config) fn env(name: &str) -> Option<String> {
        match name {
            "SET" => Some("value".into()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/me".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_put_in() {
        for (text, expanded) in [
            ("${SET}", "value"),
            ("a${env:SET}b${SET}", "avaluebvalue"),
            ("{env:SET}/{x}", "value/{x}"),
            ("${NO:-d}", "d"),
            ("${EMPTY:-d}", "d"),
            ("${EMPTY}", ""),
            ("${userHome}${/}x", "/home/me/x"),
            ("$HOME", "$HOME"),
            ("${", "${"),
            ("${a[1]} ${x%y}", "${a[1]} ${x%y}"),
        ] {
            assert_eq!(expand(text, &env).unwrap(), expanded, "{text}");
        }
        for (text, told) in [
            ("${NO}", "needs ${NO}, which is not set"),
            ("{env:NO}", "needs ${NO}, which is not set"),
            ("${input:key}", "contains ${input:key}, which only an editor"),
            ("${workspaceFolder}/x", "contains ${workspaceFolder}, which only an editor"),
            ("${command:pick}", "only an editor"),
        ] {
            let why = expand(text, &env).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }

    #[test]
    fn what_is_imported_stays_as_it_is_written() {
        for text in ["${SET}", "${NO:-d}", "{env:NO}", "~/x", "$5"] {
            assert_eq!(unexpanded(text).as_deref(), Ok(text));
        }
        assert!(unexpanded("x ${input:key}").is_err() && unexpanded("${workspaceFolder}").is_err());
        for (text, read) in
            [("$KEY", "${KEY}"), ("Bearer $A_1.", "Bearer ${A_1}."), ("${KEY} $5 $x $", "${KEY} $5 $x $")]
        {
            assert_eq!(with_braces(text), read);
        }
    }

    #[test]
    fn a_url_is_checked_and_the_one_that_is_meant_is_named() {
        for fine in ["http://localhost:4400/mcp", "https://h", "HTTP://[::1]:1/x?y"] {
            assert_eq!(check_url(fine), Ok(()), "{fine}");
        }
        for (text, told) in [
            ("", "is empty"),
            ("notaurl", "must begin with http:// or https://"),
            ("ftp://x", "begins with ftp://"),
            ("http://", "not a URL"),
            ("http://h:99999/", "not a URL"),
            ("localhost:4400", "did you mean http://localhost:4400/mcp?"),
            ("127.0.0.1:4400/mcp", "did you mean http://127.0.0.1:4400/mcp?"),
            ("example.com/mcp", "did you mean https://example.com/mcp?"),
            ("me:secret@example.com/mcp?secret", "did you mean https://example.com/mcp?"),
        ] {
            let why = check_url(text).unwrap_err();
            assert!(why.contains(told) && !why.contains("secret"), "{text}: {why}");
        }
        assert_eq!(suggested_path("http://127.0.0.1:4400").as_deref(), Some("http://127.0.0.1:4400/mcp"));
        assert_eq!(suggested_path("http://127.0.0.1:4400/x"), None);
    }
}
