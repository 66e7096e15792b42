//! Reads the section `dateline` of a configuration: how servers are shown and run.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::{Names, Options, Override, Pattern, Pool, Prefix, ServerOptions};
use jsonc_parser::ast::ObjectProp;
use spec::Era;

use super::reader::{ConfigReader, Problem, nearest};

/// The key of this section.
pub(super) const SECTION: &str = "dateline";

impl ConfigReader<'_> {
    /// Reads the section. An unknown key in it is an error: to ignore it would do something else than was asked.
    pub(super) fn section(&mut self, at: &ObjectProp<'_>, options: &mut Options) -> Result<(), Problem> {
        for property in &self.object(at)?.properties {
            match property.name.as_str() {
                "prefix" => {
                    let known = [
                        ("always", Prefix::Always),
                        ("collision", Prefix::Collision),
                        ("none", Prefix::None),
                    ];
                    options.prefix = self.one_of(property, &known)?;
                }
                "names" => {
                    let known = [("protocol", Names::Protocol), ("strict", Names::Strict)];
                    options.names = self.one_of(property, &known)?;
                }
                "servers" => self.server_sections(property, options)?,
                name => {
                    let nearest = nearest(name, &[&["prefix", "names", "servers"]]);
                    return Err(self.problem(property, format!("is not known in \"{SECTION}\"{nearest}")));
                }
            }
        }
        Ok(())
    }

    /// Reads the options of each server. A mistake makes that server unusable: the option may hide a tool.
    fn server_sections(&mut self, at: &ObjectProp<'_>, options: &mut Options) -> Result<(), Problem> {
        for entry in &self.object(at)?.properties {
            let name = entry.name.as_str();
            match options.servers.iter_mut().find(|server| server.name == name) {
                Some(server) => {
                    if let Err(problem) = self.server_section(entry, server) {
                        *server = self.unusable(name, problem);
                    }
                }
                None if self.disabled.iter().any(|disabled| disabled == name) => {}
                None => self.warn(entry, format!("there is no server {name:?}; these options are ignored")),
            }
        }
        Ok(())
    }

    /// Reads one of a few words, and returns its value.
    fn one_of<T: Copy>(&self, at: &ObjectProp<'_>, known: &[(&str, T)]) -> Result<T, Problem> {
        let word = self.string(at)?;
        if let Some((_, value)) = known.iter().find(|(known, _)| *known == word) {
            return Ok(*value);
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let words = match words.split_last() {
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        };
        Err(self.problem(at, format!("is {word:?}; it must be one of {words}")))
    }

    fn server_section(&self, at: &ObjectProp<'_>, server: &mut ServerOptions) -> Result<(), Problem> {
        let patterns = |names: Vec<String>| names.iter().map(|name| Pattern::new(name)).collect::<Vec<_>>();
        for property in &self.object(at)?.properties {
            match property.name.as_str() {
                "allow" => server.allow = patterns(self.strings(property)?),
                "deny" => server.deny.extend(patterns(self.strings(property)?)),
                "tools" => server.overrides = self.overrides(property)?,
                "pool" => server.pool = self.pool(property)?,
                "callTimeoutSeconds" => {
                    server.call_timeout = Some(Duration::from_secs(self.number(property, 1, 86_400)?));
                }
                "era" => {
                    server.era =
                        Some(self.one_of(property, &[("legacy", Era::Legacy), ("modern", Era::Modern)])?)
                }
                name => {
                    let known: &[&[&str]] =
                        &[&["allow", "deny", "tools", "pool", "callTimeoutSeconds", "era"]];
                    return Err(self
                        .problem(property, format!("is not an option of a server{}", nearest(name, known))));
                }
            }
        }
        Ok(())
    }

    fn overrides(&self, at: &ObjectProp<'_>) -> Result<BTreeMap<String, Override>, Problem> {
        let mut overrides = BTreeMap::new();
        for tool in &self.object(at)?.properties {
            let mut shown = Override::default();
            for property in &self.object(tool)?.properties {
                match property.name.as_str() {
                    "name" => shown.name = Some(self.name(property)?),
                    "title" => shown.title = Some(self.string(property)?),
                    "description" => shown.description = Some(self.string(property)?),
                    name => {
                        let nearest = nearest(name, &[&["name", "title", "description"]]);
                        return Err(self.problem(property, format!("is not an option of a tool{nearest}")));
                    }
                }
            }
            overrides.insert(tool.name.as_str().to_owned(), shown);
        }
        Ok(overrides)
    }

    /// Reads a new name of a tool. `names` may forbid the dot as well; the gateway checks that.
    fn name(&self, at: &ObjectProp<'_>) -> Result<String, Problem> {
        let name = self.string(at)?;
        if !gateway::is_legal(&name, Names::Protocol) {
            return Err(self.problem(
                at,
                format!(
                    "is {name:?}; a name must have 1 to {} characters out of A-Z a-z 0-9 _ - .",
                    gateway::MAX_NAME_LENGTH
                ),
            ));
        }
        Ok(name)
    }

    fn pool(&self, at: &ObjectProp<'_>) -> Result<Pool, Problem> {
        let mut pool = Pool::default();
        for property in &self.object(at)?.properties {
            let number = |least, most| self.number(property, least, most);
            match property.name.as_str() {
                "min" => pool.min = usize::try_from(number(0, 64)?).unwrap_or(1),
                "max" => pool.max = usize::try_from(number(1, 64)?).unwrap_or(1),
                "idleSeconds" => pool.idle = Duration::from_secs(number(1, 86_400)?),
                name => {
                    let nearest = nearest(name, &[&["min", "max", "idleSeconds"]]);
                    return Err(self.problem(property, format!("is not an option of a pool{nearest}")));
                }
            }
        }
        pool.max = pool.max.max(pool.min);
        Ok(pool)
    }
}
