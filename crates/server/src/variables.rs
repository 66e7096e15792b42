//! The variables of a URI that matches a template.

use std::collections::HashMap;

use proto::template::Found;

/// The URI that a client reads, and the values of its template's variables.
///
/// A handler of a [`ResourceTemplate`](crate::ResourceTemplate) takes it.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The whole URI.
    pub uri: String,
    values: HashMap<String, String>,
    lists: HashMap<String, Vec<String>>,
}

impl Variables {
    pub(crate) fn new(uri: &str, found: Vec<Found>) -> Variables {
        let values = found.iter().map(|found| (found.name.clone(), found.text())).collect();
        let lists = found.into_iter().map(|found| (found.name, found.values)).collect();
        Variables { uri: uri.to_owned(), values, lists }
    }

    /// Gives a variable's value, percent-decoded; empty where the URI has none. Several values of an exploded variable
    /// are joined as the template writes them: `/` between segments of a path, `,` elsewhere.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Gives the values of an exploded variable such as `{/path*}`, percent-decoded one by one; of any other variable
    /// one, or none where the URI has none.
    pub fn list(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// Gives whether the URI has the variable, even with an empty value.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn values(&self) -> &HashMap<String, String> {
        &self.values
    }
}
