//! URI templates (RFC 6570), read backwards: which values make a template this URI?
//!
//! A template becomes a graph of `Node`s, and a URI a list of `Unit`s. For every node and place it is worked out
//! once, from the end, whether the rest of the URI can follow there; then one walk from the start takes the values.
//! Whatever the URI is, the work is the number of nodes times its length: nothing is tried twice.

mod compile;
mod unit;

use compile::{Graph, Node, Take, Variable};
use unit::Unit;

/// A URI template of any level of RFC 6570, read backwards.
///
/// `{a}`, `{+a}`, `{#a}`, `{.a}`, `{/a}`, `{;a}`, `{?a}` and `{&a}` with several variables each, `*` and `:n`. What a
/// URI says is taken as follows where RFC 6570 leaves it open:
///
/// - Where a URI can be read in several ways, what stands further left in the template takes as little as it can.
/// - `{a}` stops at `/`, `?` and `#`, `{+a}` at nothing; both are never empty. An expression of any other operator may
///   be absent altogether, and of several variables in one expression the later ones.
/// - Query and path-style parameters come in any order, each at most once; of one that no variable names no value is
///   known, and the URI does not match.
/// - `{a:3}` has at most three characters. Where the same variable stands elsewhere too, both have to agree.
/// - `{list*}` has any number of values. In a query that includes parameters that no other variable names, each as one
///   value `name=value`.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    /// What every URI that matches begins with, for a quick no.
    start: Vec<Unit>,
    graph: Graph,
}

/// How long a template may be, in bytes. Its parts times the length of a URI are the work of matching, and who writes the
/// one need not be who writes the other.
const LONGEST: usize = 2048;
/// How many parts times characters are looked at: what makes more matches no template. It has room for a URI of 800 KB and
/// one variable, or for the longest path of a file and a template of the longest kind.
const WORK: usize = 8 << 20;

/// A variable that a URI has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its values, percent-decoded: one, or any number where it is exploded.
    pub values: Vec<String>,
    /// What stands between values in one text.
    joint: &'static str,
}

impl Found {
    /// The values as one text.
    pub fn text(&self) -> String {
        self.values.join(self.joint)
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what is wrong with it.
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

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of its variables, each once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let all = &self.graph.variables;
        let first = |at: usize| all[..at].iter().all(|before| before.name != all[at].name);
        (0..all.len()).filter(move |at| first(*at)).map(|at| all[at].name.as_str())
    }

    /// The values that make the template this URI, percent-decoded. Variables that it does not have are not there; the
    /// values of an exploded one are joined as the template writes them.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        Some(self.find(uri)?.into_iter().map(|found| (found.name.clone(), found.text())).collect())
    }

    /// The variables that make the template this URI.
    pub fn find(&self, uri: &str) -> Option<Vec<Found>> {
        // A URI is not read as a whole where its beginning already is another one.
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

    /// The values by variable, where what is said twice says the same.
    fn agreed(&self, taken: Vec<Vec<String>>) -> Option<Vec<Found>> {
        let written: Vec<(&Variable, Vec<String>)> = self.graph.variables.iter().zip(taken).collect();
        let mut all: Vec<Found> = Vec::new();
        for (variable, values) in &written {
            if values.is_empty() || all.iter().any(|found| found.name == variable.name) {
                continue;
            }
            let same = || written.iter().filter(|(v, values)| v.name == variable.name && !values.is_empty());
            // The whole value is what is not cut, or else the longest beginning that there is.
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

/// Whether the end can be reached from a node at a place of the URI.
struct Reach {
    /// For each node a bit for each place.
    bits: Vec<Vec<u64>>,
    /// How many times a node was looked at, and a unit compared.
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
        // For each run: how far its characters go from here, and the nearest place where it could end.
        let mut ends = vec![units.len(); graph.nodes.len()];
        let mut nearest = vec![usize::MAX; graph.nodes.len()];
        for place in (0..=units.len()).rev() {
            // A node refers to later ones, and to earlier ones only behind something that it takes.
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

    /// The values of each variable, on the one way from the start to the end that takes as little as it can at each
    /// node.
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
