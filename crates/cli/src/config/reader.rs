//! What stands at a place of a configuration's text, by its kind, and what is wrong with it, by its line.

use std::fmt;

use gateway::{Options, ServerOptions, Target};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;

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

/// Reads what stands at a place of the text.
pub(super) struct Reader<'a> {
    text: &'a str,
    /// Without it variables stay as they are written.
    pub(super) env: Option<Env<'a>>,
    /// What was read so far.
    pub(super) read: Read,
    /// Servers that are disabled.
    pub(super) disabled: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, env: Option<Env<'a>>) -> Reader<'a> {
        Reader { text, env, read: Read::default(), disabled: Vec::new() }
    }

    fn line(&self, at: &ObjectProp<'_>) -> usize {
        self.text[..at.start().min(self.text.len())].matches('\n').count() + 1
    }

    pub(super) fn wrong(&self, at: &ObjectProp<'_>, why: impl fmt::Display) -> Wrong {
        Wrong { line: self.line(at), what: format!("{:?} {why}", at.name.as_str()) }
    }

    pub(super) fn warn(&mut self, at: &ObjectProp<'_>, what: String) {
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

    /// Notes that the entry of a server is wrong; returns the server as one that cannot be used.
    pub(super) fn unusable(&mut self, name: &str, wrong: Wrong) -> ServerOptions {
        let why = format!("its configuration cannot be used: {} (line {})", wrong.what, wrong.line);
        self.read.broken.push(Broken { name: name.to_owned(), wrong });
        ServerOptions::new(name, Target::Unusable(why))
    }

    pub(super) fn object<'b, 'c>(&self, at: &'c ObjectProp<'b>) -> Result<&'c Object<'b>, Wrong> {
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
            return Err(self.wrong(
                at,
                "has a control character in it; a backslash is written twice, as in \"C:\\\\new\"",
            ));
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
                return Err(self
                    .wrong(at, "has a single backslash; it is written twice, as in \"C:\\\\Users\\\\me\""));
            }
        }
        Ok(())
    }

    pub(super) fn texts(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Wrong> {
        let Value::Array(array) = &at.value else { return Err(self.wrong(at, "must be an array of texts")) };
        let text = |value| {
            self.as_text(at, value)?
                .ok_or_else(|| self.wrong(at, "must hold texts, numbers, true or false only"))
        };
        array.elements.iter().map(text).collect()
    }

    /// Names of variables: texts, or objects that have one as their name.
    pub(super) fn names(&self, at: &ObjectProp<'_>) -> Result<Vec<String>, Wrong> {
        let Value::Array(array) = &at.value else { return Err(self.wrong(at, "must be an array of names")) };
        let name = |value: &Value<'_>| {
            let name = match value {
                Value::Object(object) => {
                    object.properties.iter().find(|p| p.name.as_str() == "name").map(|p| &p.value)
                }
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

    pub(super) fn number(&self, at: &ObjectProp<'_>, least: u64, most: u64) -> Result<u64, Wrong> {
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
pub(super) fn nearest(name: &str, known: &[&[&str]]) -> String {
    exit::meant(name, known.iter().flat_map(|names| names.iter().copied()))
}
