//! Texts of a configuration: what is put in from the environment, and what can be a URL, a program, a header.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Where the environment's variables come from.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What editors put in for `${…}` and nobody else knows.
const OF_AN_EDITOR: &[&str] = &[
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
/// The same with something behind a colon.
const OF_AN_EDITOR_BY_NAME: &[&str] = &["input:", "command:", "config:", "workspaceFolder:"];

/// A piece of a text.
enum Piece<'a> {
    /// It stays as it is.
    Plain(&'a str),
    /// A variable by its name, its default, and how it is written.
    Variable(&'a str, Option<&'a str>, &'a str),
    /// Something that only an editor can put in.
    Editor(&'a str),
}

/// The pieces of a text: `${NAME}`, `${NAME:-default}`, `${env:NAME}` as editors write it, and opencode's `{env:NAME}`.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${").into_iter().chain(rest.find("{env:")).min() {
        let Some(end) = rest[at..].find('}').map(|end| at + end + 1) else { break };
        let written = &rest[at..end];
        pieces.push(Piece::Plain(&rest[..at]));
        pieces.push(piece(written));
        rest = &rest[end..];
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

fn piece(written: &str) -> Piece<'_> {
    let inside = written.trim_start_matches('$').trim_start_matches('{').trim_end_matches('}');
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if OF_AN_EDITOR_BY_NAME.iter().any(|prefix| name.starts_with(prefix)) {
        Piece::Editor(written)
    } else if plain {
        Piece::Variable(name, default, written)
    } else {
        // What is none of ours is somebody else's, such as a shell's.
        Piece::Plain(written)
    }
}

/// Puts the environment into a text.
pub(crate) fn expand(text: &str, env: Env<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain("${/}") | Piece::Variable("pathSeparator", None, _) => out.push('/'),
            Piece::Plain(text) => out.push_str(text),
            Piece::Editor(written) => return Err(only_an_editor(written)),
            Piece::Variable("userHome", None, _) => out.push_str(&env("HOME").unwrap_or_default()),
            Piece::Variable(name, default, written) => {
                match (env(name).filter(|value| !value.is_empty() || default.is_none()), default) {
                    (Some(value), _) => out.push_str(&value),
                    (None, Some(default)) => out.push_str(default),
                    (None, None) if OF_AN_EDITOR.contains(&name) => return Err(only_an_editor(written)),
                    (None, None) => {
                        return Err(format!(
                            "needs ${{{name}}}, which is not set in the environment; set it, or write ${{{name}:-default}}"
                        ));
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Leaves a text as it is written, for a file of ours; what no file of ours can say is an error.
pub(crate) fn carry(text: &str) -> Result<String, String> {
    for piece in pieces(text) {
        match piece {
            Piece::Editor(written) => return Err(only_an_editor(written)),
            Piece::Variable(name, None, written) if OF_AN_EDITOR.contains(&name) => {
                return Err(only_an_editor(written));
            }
            _ => {}
        }
    }
    Ok(text.to_owned())
}

fn only_an_editor(written: &str) -> String {
    format!("has {written}, which only an editor can put in; write ${{NAME}} and set NAME in the environment")
}

/// A variable as a shell writes it and some clients do, `$NAME`, in the form that is read here. In capitals: anything
/// else is more often a text that has a dollar sign.
pub(crate) fn braced(text: &str) -> String {
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

/// A path whose `~/` is the user's home.
pub(crate) fn at_home(path: String, env: Env<'_>) -> String {
    match (path.strip_prefix('~'), env("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home + rest,
        _ => path,
    }
}

/// What a file of `NAME=value` lines says, and the numbers of lines that are none.
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

/// Whether a text is a URL that can be connected to; an error says what it is instead, and what may be meant.
pub(crate) fn url(text: &str) -> Result<(), String> {
    let shown = transport::shown_url(text);
    if text.trim().is_empty() {
        return Err("is empty".into());
    }
    let Some((scheme, _)) = text.split_once("://") else {
        return Err(format!("is {shown:?}, but a URL begins with http:// or https://{}", meant_url(&shown)));
    };
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return Err(format!("begins with {scheme}://, but it must be http:// or https://"));
    }
    match url::Url::parse(text) {
        Ok(url) if url.has_host() => Ok(()),
        Ok(_) => Err(format!("is {shown:?}, which names no host")),
        Err(why) => Err(format!("is {shown:?}, which is no URL: {why}")),
    }
}

/// The URL that somebody meant by a host and a port, as the end of a sentence; empty where it looks like neither.
pub(crate) fn meant_url(text: &str) -> String {
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
    format!(" (is {scheme}://{authority}{path} meant?)")
}

/// The URL that may be meant by one that names no path.
pub(crate) fn without_path(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok().filter(|url| url.path() == "/" && url.query().is_none())?;
    Some(transport::shown_url(parsed.join("/mcp").ok()?.as_str()))
}

/// Whether a header can be sent.
pub(crate) fn header(name: &str, value: &str) -> Result<(), String> {
    let fine = http::HeaderName::try_from(name).is_ok() && http::HeaderValue::from_str(value).is_ok();
    if fine { Ok(()) } else { Err(format!("has a header {name:?} that HTTP cannot carry")) }
}

/// Where a program is, looked for as the system does.
pub(crate) fn find(command: &str, path: Option<&str>) -> Option<PathBuf> {
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
            ("${input:key}", "has ${input:key}, which only an editor"),
            ("${workspaceFolder}/x", "has ${workspaceFolder}, which only an editor"),
            ("${command:pick}", "only an editor"),
        ] {
            let why = expand(text, &env).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }

    #[test]
    fn what_is_carried_over_stays_as_it_is_written() {
        for text in ["${SET}", "${NO:-d}", "{env:NO}", "~/x", "$5"] {
            assert_eq!(carry(text).as_deref(), Ok(text));
        }
        assert!(carry("x ${input:key}").is_err() && carry("${workspaceFolder}").is_err());
        for (text, read) in
            [("$KEY", "${KEY}"), ("Bearer $A_1.", "Bearer ${A_1}."), ("${KEY} $5 $x $", "${KEY} $5 $x $")]
        {
            assert_eq!(braced(text), read);
        }
    }

    #[test]
    fn a_url_is_checked_and_the_one_that_is_meant_is_named() {
        for fine in ["http://localhost:4400/mcp", "https://h", "HTTP://[::1]:1/x?y"] {
            assert_eq!(url(fine), Ok(()), "{fine}");
        }
        for (text, told) in [
            ("", "is empty"),
            ("notaurl", "begins with http:// or https://"),
            ("ftp://x", "begins with ftp://"),
            ("http://", "no URL"),
            ("http://h:99999/", "no URL"),
            ("localhost:4400", "is http://localhost:4400/mcp meant?"),
            ("127.0.0.1:4400/mcp", "is http://127.0.0.1:4400/mcp meant?"),
            ("example.com/mcp", "is https://example.com/mcp meant?"),
            ("me:secret@example.com/mcp?secret", "is https://example.com/mcp meant?"),
        ] {
            let why = url(text).unwrap_err();
            assert!(why.contains(told) && !why.contains("secret"), "{text}: {why}");
        }
        assert_eq!(without_path("http://127.0.0.1:4400").as_deref(), Some("http://127.0.0.1:4400/mcp"));
        assert_eq!(without_path("http://127.0.0.1:4400/x"), None);
    }
}
