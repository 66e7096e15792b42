//! Reads single values of a configuration, and says on which line one is wrong.

use std::fmt;

use gateway::{Options, ServerOptions, Target};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;

use super::values::{self, Env};
use crate::exit;

/// Something that is wrong or odd, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// What is wrong, with the key that it is wrong with.
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> String {
        problem.to_string()
    }
}

/// A server whose entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusableServer {
    /// Its name.
    pub(crate) name: String,
    /// Why its entry cannot be used.
    pub(crate) problem: Problem,
}

/// What the text of a configuration says.
#[derive(Debug, Default)]
pub(crate) struct ParsedConfig {
    /// The options for the gateway. Servers whose entries cannot be used are in them, as such.
    pub(crate) options: Options,
    /// The entries that cannot be used: those servers, and entries whose name an earlier one has.
    pub(crate) unusable: Vec<UnusableServer>,
    /// What is odd and is ignored.
    pub(crate) warnings: Vec<Problem>,
}

/// Reads values out of the text of a configuration.
pub(super) struct ConfigReader<'a> {
    text: &'a str,
    /// The environment for `${NAME}`. Without one, variables stay as they are written.
    pub(super) env: Option<Env<'a>>,
    /// What was read so far.
    pub(super) parsed: ParsedConfig,
    /// The names of disabled servers.
    pub(super) disabled: Vec<String>,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(text: &'a str, env: Option<Env<'a>>) -> ConfigReader<'a> {
        ConfigReader { text, env, parsed: ParsedConfig::default(), disabled: Vec::new() }
    }

    fn line(&self, at: &ObjectProp<'_>) -> usize {
        self.text[..at.start().min(self.text.len())].matches('\n').count() + 1
    }

    /// The problem that a key has, as the end of a sentence that begins with the key.
    pub(super) fn problem(&self, at: &ObjectProp<'_>, why: impl fmt::Display) -> Problem {
        Problem { line: self.line(at), what: format!("{:?} {why}", at.name.as_str()) }
    }

    /// Adds a warning with the line of a key.
    pub(super) fn warn(&mut self, at: &ObjectProp<'_>, what: String) {
        let line = self.line(at);
        self.parsed.warnings.push(Problem { line, what });
    }

    /// Warns of an unknown key. Returns the sentence that says so.
    pub(super) fn warn_of_unknown(&mut self, at: &ObjectProp<'_>, place: &str, known: &[&[&str]]) -> String {
        let name = at.name.as_str().to_owned();
        let sentence = format!("{name:?} is not known {place}{}", nearest(&name, known));
        self.warn(at, format!("{sentence}; it is ignored"));
        sentence
    }

    /// Notes that a server's entry cannot be used. Returns the server as one that is down for this reason.
    pub(super) fn unusable(&mut self, name: &str, problem: Problem) -> ServerOptions {
        let why = format!("its configuration cannot be used: {} (line {})", problem.what, problem.line);
        self.parsed.unusable.push(UnusableServer { name: name.to_owned(), problem });
        ServerOptions::new(name, Target::Unusable(why))
    }

    pub(super) fn object<'b, 'c>(&self, at: &'c ObjectProp<'b>) -> Result<&'c Object<'b>, Problem> {
        match &at.value {
            Value::Object(object) => Ok(object),
            _ => Err(self.problem(at, "must be an object")),
        }
    }

    /// A string, with its variables replaced.
    pub(super) fn string(&self, at: &ObjectProp<'_>) -> Result<String, Problem> {
        self.expand(at, &self.literal(at)?)
    }

    /// A string as it is written.
    pub(super) fn literal(&self, at: &ObjectProp<'_>) -> Result<String, Problem> {
        match &at.value {
            Value::StringLit(text) => {
                self.check_escapes(at, text.range.start, text.range.end)?;
                Ok(text.value.clone().into_owned())
            }
            _ => Err(self.problem(at, "must be a string")),
        }
    }

    /// The path of a file or folder.
    pub(super) fn path(&self, at: &ObjectProp<'_>) -> Result<String, Problem> {
        let path = self.string(at)?;
        if path.contains(['\t', '\n', '\r', '\u{8}', '\u{c}']) {
            return Err(self.problem(
                at,
                "contains a control character; write each backslash twice, as in \"C:\\\\new\"",
            ));
        }
        Ok(self.expand_tilde(path))
    }

    /// Replaces `~/` at the beginning of a path by the user's home, where variables are replaced too.
    pub(super) fn expand_tilde(&self, path: String) -> String {
        match self.env {
            Some(env) => values::expand_tilde(path, env),
            None => path,
        }
    }

    /// Replaces the variables of a string.
    pub(super) fn expand(&self, at: &ObjectProp<'_>, text: &str) -> Result<String, Problem> {
        let expanded = match self.env {
            Some(env) => values::expand(text, env),
            None => values::unexpanded(text),
        };
        expanded.map_err(|why| self.problem(at, why))
    }

    /// A string; or a number, `true` or `false`, which a program gets as text.
    fn scalar(&self, at: &ObjectProp<'_>, value: &Value<'_>) -> Result<Option<String>, Problem> {
        match value {
            Value::StringLit(text) => {
                self.check_escapes(at, text.range.start, text.range.end)?;
                self.expand(at, &text.value).map(Some)
            }
            Value::NumberLit(number) => Ok(Some(number.value.to_owned())),
            Value::BooleanLit(word) => Ok(Some(word.value.to_string())),
            _ => Ok(None),
        }
    }

    /// Refuses escapes that JSON does not have: the parser would drop their backslashes from a Windows path.
    fn check_escapes(&self, at: &ObjectProp<'_>, start: usize, end: usize) -> Result<(), Problem> {
        let mut written = self.text.get(start..end).unwrap_or_default().chars();
        while let Some(c) = written.next() {
            if c == '\\' && written.next().is_some_and(|c| !"\\\"'/bfnrtu\n".contains(c)) {
                return Err(self.problem(
                    at,
                    "contains a single backslash; write each backslash twice, as in \"C:\\\\Users\\\\me\"",
                ));
            }
        }
        Ok(())
    }

    /// An array of strings.
    pub(super) fn strings(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Problem> {
        let Value::Array(array) = &at.value else {
            return Err(self.problem(at, "must be an array of strings"));
        };
        let string = |value| {
            self.scalar(at, value)?
                .ok_or_else(|| self.problem(at, "may contain only strings, numbers, true and false"))
        };
        array.elements.iter().map(string).collect()
    }

    /// An array of names of variables: strings, or objects with a `name`.
    pub(super) fn names(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Problem> {
        let Value::Array(array) = &at.value else {
            return Err(self.problem(at, "must be an array of names"));
        };
        let name = |value: &Value<'_>| {
            let name = match value {
                Value::Object(object) => {
                    object.properties.iter().find(|p| p.name.as_str() == "name").map(|p| &p.value)
                }
                value => Some(value),
            };
            let name = name.and_then(Value::as_string_lit).map(|name| name.value.clone().into_owned());
            name.ok_or_else(|| self.problem(at, "may contain only names of variables"))
        };
        array.elements.iter().map(name).collect()
    }

    /// An object of strings, in their order. Members that are `null` count as absent.
    pub(super) fn string_map(&self, at: &ObjectProp<'_>) -> Result<Vec<(String, String)>, Problem> {
        let entries = self.object(at)?.properties.iter();
        let entry = |entry: &ObjectProp<'_>| {
            let value = self.scalar(entry, &entry.value)?;
            let value =
                value.ok_or_else(|| self.problem(entry, "must be a string, a number, true or false"))?;
            Ok((entry.name.as_str().to_owned(), value))
        };
        entries.filter(|entry| !matches!(entry.value, Value::NullKeyword(_))).map(entry).collect()
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, at: &ObjectProp<'_>) -> Result<bool, Problem> {
        match &at.value {
            Value::BooleanLit(flag) => Ok(flag.value),
            _ => Err(self.problem(at, "must be true or false")),
        }
    }

    /// A whole number between two others.
    pub(super) fn number(&self, at: &ObjectProp<'_>, least: u64, most: u64) -> Result<u64, Problem> {
        let number = match &at.value {
            Value::NumberLit(number) => number.value.parse().ok(),
            _ => None,
        };
        number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| self.problem(at, format!("must be a whole number from {least} to {most}")))
    }
}

/// The known name that is most similar to an unknown one, as the end of a sentence; empty when none is similar.
pub(super) fn nearest(name: &str, known: &[&[&str]]) -> String {
    exit::suggestion(name, known.iter().flat_map(|names| names.iter().copied()))
}
