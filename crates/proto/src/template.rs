//! URI templates (RFC 6570), matched against URIs: which values of the variables give this URI?
//!
//! A template becomes a graph of `Node`s, and a URI becomes a list of `Unit`s. For every node and every place in the URI,
//! from the end to the start, the matcher finds out once whether the rest of the URI can follow there. Then one walk
//! from the start takes the values. The work is the number of nodes times the length of the URI, whatever the URI is.

mod compile;
mod unit;

use compile::{Graph, Node, Take, Variable};
use unit::Unit;

/// A URI template of any level of RFC 6570 that finds the values of its variables in a URI.
///
/// It knows `{a}`, `{+a}`, `{#a}`, `{.a}`, `{/a}`, `{;a}`, `{?a}` and `{&a}` with several variables each, `*` and `:n`.
/// RFC 6570 does not say how values are found. These rules hold:
///
/// - Where a URI can be read in several ways, a variable further left in the template gets as little as possible.
/// - The value of `{a}` ends before `/`, `?` and `#`; the value of `{+a}` may have any character. Neither is empty. An
///   expression with another operator may be absent, and so may the later variables of any expression.
/// - Query and path-style parameters come in any order, each at most once. A URI with a parameter that no variable names
///   does not match.
/// - `{a:3}` has at most three characters. Where a template has a variable twice, both values have to agree.
/// - `{list*}` has any number of values. In a query, each parameter that no other variable names is one value of it,
///   `name=value`.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    /// The beginning of every URI that matches. It refuses most other URIs at once.
    start: Vec<Unit>,
    graph: Graph,
}

/// How many bytes a template may have. A server writes the template and a client the URI, and the lengths of both
/// multiply to the work of a match.
const LONGEST: usize = 2048;
/// How many steps a match may take: nodes of the template times bytes of the URI. Beyond it, no URI matches. It is enough
/// for one variable and a URI of 800 KB, or for the longest template and the longest path of a file.
const WORK: usize = 8 << 20;

/// A variable with the values that a URI gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The name of the variable.
    pub name: String,
    /// Its values without percent-encoding: one value, or any number for a variable with `*`.
    pub values: Vec<String>,
    /// What separates the values where they are written as one text.
    joint: &'static str,
}

impl Found {
    /// Returns the values as one text, separated as in the URI.
    pub fn text(&self) -> String {
        self.values.join(self.joint)
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Where the text is no template, or is longer than 2048 bytes.
    pub fn new(source: &str) -> Result<Template, String> {
        if source.len() > LONGEST {
            return Err(format!("a template has at most {LONGEST} bytes, and this one {}", source.len()));
        }
        let graph = Graph::new(source).map_err(|why| format!("{source:?}: {why}"))?;
        let start = match graph.nodes.first() {
            Some(Node::Literal { units, opens: None, .. }) => units.clone(),
            _ => Vec::new(),
        };
        Ok(Template { source: source.to_owned(), start, graph })
    }

    /// Returns the text of the template.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Iterates over the names of its variables, each once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let all = &self.graph.variables;
        let first = |at: usize| all[..at].iter().all(|before| before.name != all[at].name);
        (0..all.len()).filter(move |at| first(*at)).map(|at| all[at].name.as_str())
    }

    /// Finds the variables of a URI, each with its values as one text. Returns `None` where the URI does not match.
    ///
    /// Percent-encoding is decoded. A variable that is absent in the URI is absent in the list.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        Some(self.find(uri)?.into_iter().map(|found| (found.name.clone(), found.text())).collect())
    }

    /// Finds the variables of a URI, each with its values. Returns `None` where the URI does not match.
    pub fn find(&self, uri: &str) -> Option<Vec<Found>> {
        // Most URIs that do not match already begin otherwise, and are not read to their end.
        let mut begins = unit::units(uri);
        if !self.start.iter().all(|expected| begins.next().is_some_and(|got| got.as_ref() == Ok(expected))) {
            return None;
        }
        if uri.len().saturating_mul(self.graph.nodes.len()) > WORK {
            return None;
        }
        let units = unit::units(uri).collect::<Result<Vec<Unit>, _>>().ok()?;
        let reach = Reach::new(&self.graph, &units);
        self.agreed(reach.walk(&self.graph, &units)?)
    }

    /// Returns the values of each variable, where all places of the same variable agree.
    fn agreed(&self, taken: Vec<Vec<String>>) -> Option<Vec<Found>> {
        let written: Vec<(&Variable, Vec<String>)> = self.graph.variables.iter().zip(taken).collect();
        let mut all: Vec<Found> = Vec::new();
        for (variable, values) in &written {
            if values.is_empty() || all.iter().any(|found| found.name == variable.name) {
                continue;
            }
            let same = || written.iter().filter(|(v, values)| v.name == variable.name && !values.is_empty());
            // The value of a place without `:n` is complete; without such a place, the longest prefix counts.
            let whole = same().max_by_key(|(v, _)| v.prefix.unwrap_or(usize::MAX)).map_or(values, |(_, w)| w);
            let fits = |(v, values): &(&Variable, Vec<String>)| match (v.prefix, &values[..], &whole[..]) {
                (Some(most), [value], [whole]) => whole.chars().take(most).eq(value.chars()),
                _ => values == whole && (v.exploded || values.len() == 1),
            };
            if !same().all(fits) {
                return None;
            }
            let joint = variable.joint;
            all.push(Found { name: variable.name.clone(), values: whole.clone(), joint });
        }
        Some(all)
    }
}

/// Whether the end of the template can be reached from each node at each place in the URI.
struct Reach {
    /// For each node, one bit for each place.
    bits: Vec<Vec<u64>>,
    /// How often a node was looked at or a unit was compared.
    #[cfg(test)]
    steps: usize,
}

impl Reach {
    fn new(graph: &Graph, units: &[Unit]) -> Reach {
        let words = units.len() / 64 + 1;
        let mut reach = Reach {
            bits: vec![vec![0; words]; graph.nodes.len()],
            #[cfg(test)]
            steps: 0,
        };
        // For each run: where its characters end at the latest, and the nearest place where it can end.
        let mut ends = vec![units.len(); graph.nodes.len()];
        let mut nearest = vec![usize::MAX; graph.nodes.len()];
        for place in (0..=units.len()).rev() {
            // A node leads to later nodes. It leads to an earlier node only at a later place in the URI.
            for (at, node) in graph.nodes.iter().enumerate().rev() {
                let reached = match node {
                    Node::End => place == units.len(),
                    Node::Literal { units: text, next, .. } => {
                        #[cfg(test)]
                        {
                            reach.steps += text.len();
                        }
                        units[place..].starts_with(text) && reach.get(*next, place + text.len())
                    }
                    Node::Either(first, second) => reach.get(*first, place) || reach.get(*second, place),
                    Node::Run { without, least, most, next, .. } => {
                        if units.get(place).is_some_and(|unit| !unit.is_of(without)) {
                            ends[at] = place;
                        }
                        let end = ends[at].min(place.saturating_add(*most));
                        let from = place + least;
                        if from <= units.len() && reach.get(*next, from) {
                            nearest[at] = from;
                        }
                        from <= end && nearest[at] <= end
                    }
                };
                #[cfg(test)]
                {
                    reach.steps += 1;
                }
                if reached {
                    reach.bits[at][place / 64] |= 1 << (place % 64);
                }
            }
        }
        reach
    }

    fn get(&self, node: usize, place: usize) -> bool {
        self.bits[node].get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Walks from the start to the end and returns the values of each variable. Each variable gets as little as possible.
    fn walk(&self, graph: &Graph, units: &[Unit]) -> Option<Vec<Vec<String>>> {
        if !self.get(0, 0) {
            return None;
        }
        let mut taken: Vec<Vec<String>> = vec![Vec::new(); graph.variables.len()];
        let (mut at, mut place) = (0, 0);
        loop {
            match &graph.nodes[at] {
                Node::End => return Some(taken),
                Node::Either(first, second) => at = if self.get(*first, place) { *first } else { *second },
                Node::Literal { units: text, next, opens } => {
                    if let Some(variable) = opens {
                        taken[*variable].push(String::new());
                    }
                    (at, place) = (*next, place + text.len());
                }
                Node::Run { least, next, variable, take, .. } => {
                    let end = (place + least..=units.len()).find(|end| self.get(*next, *end))?;
                    let text = units[place..end].iter().map(|unit| unit.char());
                    let values = &mut taken[*variable];
                    match take {
                        Take::Value => values.push(text.collect()),
                        Take::Rest => values.last_mut()?.extend(text),
                        Take::Behind(joint) => values.last_mut()?.extend(std::iter::once(*joint).chain(text)),
                    }
                    (at, place) = (*next, end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
