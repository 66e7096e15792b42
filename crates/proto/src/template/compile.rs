//! How a template becomes a graph.

use super::unit::{self, Unit};

/// The longest prefix that RFC 6570 allows.
const LONGEST: usize = 9999;

/// The graph of a template. It begins at the first node.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// The variables in the order of the template. A variable that the template has twice is here twice.
    pub(super) variables: Vec<Variable>,
}

/// A variable at one place of the template.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The variable has a `*`: it has any number of values.
    pub(super) exploded: bool,
    /// The number after `:`: the place holds only so many characters of the value.
    pub(super) prefix: Option<usize>,
    /// What separates the values where they are written as one text.
    pub(super) joint: &'static str,
}

/// What a URI can have next. A number names a node by its place in the graph. A node that may take nothing leads to a
/// later node.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// The URI ends.
    End,
    /// These characters. Where `opens` names a variable, they are the name of its parameter; the value is empty unless a
    /// value follows.
    Literal { units: Vec<Unit>, next: usize, opens: Option<usize> },
    /// The first of two nodes, or the second where the first does not lead to the end.
    Either(usize, usize),
    /// As few characters as lead to the end, none of them in `without`.
    Run { without: &'static str, least: usize, most: usize, next: usize, variable: usize, take: Take },
}

/// What the characters of a run are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take {
    /// They are a value.
    Value,
    /// They continue the last value.
    Rest,
    /// They continue the last value, after this character.
    Behind(char),
}

/// How an operator writes its variables (RFC 6570, appendix A).
struct Operator {
    /// The beginning of the expression, where the URI has the expression.
    first: &'static str,
    /// What separates the variables.
    between: &'static str,
    /// The name of a variable comes before its value.
    named: bool,
    /// The characters that a value has only in percent-encoded form.
    without: &'static str,
}

const fn list(first: &'static str, between: &'static str, without: &'static str) -> Operator {
    Operator { first, between, named: false, without }
}

const fn named(first: &'static str, between: &'static str, without: &'static str) -> Operator {
    Operator { first, between, named: true, without }
}

static SIMPLE: Operator = list("", ",", "/?#");
static RESERVED: Operator = list("", ",", "");
static FRAGMENT: Operator = list("#", ",", "");
static LABEL: Operator = list(".", ".", "/?#");
static PATH: Operator = list("/", "/", "/?#");
static PARAMETERS: Operator = named(";", ";", "/?#;");
static QUERY: Operator = named("?", "&", "#&");
static CONTINUED: Operator = named("&", "&", "#&");

fn operator(expression: &str) -> Result<(&'static Operator, &str), String> {
    let operator = match expression.chars().next() {
        Some('+') => &RESERVED,
        Some('#') => &FRAGMENT,
        Some('.') => &LABEL,
        Some('/') => &PATH,
        Some(';') => &PARAMETERS,
        Some('?') => &QUERY,
        Some('&') => &CONTINUED,
        Some(kept @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(format!("{{{expression}}}: the operator {kept:?} is reserved and means nothing yet"));
        }
        _ => return Ok((&SIMPLE, expression)),
    };
    Ok((operator, &expression[1..]))
}

/// A variable of an expression.
struct Spec {
    variable: usize,
    most: usize,
    exploded: bool,
}

impl Graph {
    pub(super) fn new(source: &str) -> Result<Graph, String> {
        let mut graph = Graph { nodes: Vec::new(), variables: Vec::new() };
        let mut rest = source;
        while !rest.is_empty() {
            let open = rest.find(['{', '}']).unwrap_or(rest.len());
            graph.literal(&rest[..open])?;
            rest = &rest[open..];
            if rest.starts_with('}') {
                return Err("a brace is closed that was not opened".into());
            }
            let Some(inner) = rest.strip_prefix('{') else { break };
            let close = inner.find('}').ok_or("a brace is not closed")?;
            let (operator, list) = operator(&inner[..close])?;
            let mut specs = graph.specs(list, operator, &inner[..close])?;
            rest = &inner[close + 1..];
            // A query that continues in a second expression is one query, and its parameters have no order.
            let before = specs.len();
            while operator.between == "&" && rest.starts_with("{&") {
                let close = rest.find('}').ok_or("a brace is not closed")?;
                specs.extend(graph.specs(&rest[2..close], &CONTINUED, &rest[1..close])?);
                rest = &rest[close + 1..];
            }
            if operator.named {
                graph.named(operator, specs.len() > before, &specs);
            } else {
                graph.list(operator, &specs);
            }
        }
        graph.nodes.push(Node::End);
        graph.consistent()?;
        Ok(graph)
    }

    fn specs(&mut self, list: &str, operator: &'static Operator, whole: &str) -> Result<Vec<Spec>, String> {
        list.split(',').map(|text| self.spec(text, operator, whole)).collect()
    }

    fn spec(&mut self, text: &str, operator: &'static Operator, whole: &str) -> Result<Spec, String> {
        let wrong = |why: &str| format!("{{{whole}}}: {why}");
        let (name, exploded) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (name, prefix) = match name.split_once(':') {
            None => (name, None),
            Some(_) if exploded => return Err(wrong("a variable has one modifier, * or :n")),
            Some((name, length)) => {
                let digits = !length.starts_with('0') && length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length.parse().ok().filter(|length| digits && (1..=LONGEST).contains(length));
                (name, Some(length.ok_or_else(|| wrong("a prefix is a number from 1 to 9999"))?))
            }
        };
        let plain = |part: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
            !part.is_empty() && part.chars().all(known) && unit::units(part).all(|unit| unit.is_ok())
        };
        if !name.split('.').all(plain) {
            return Err(wrong(&format!(
                "{name:?} is no name of a variable: letters, digits and _, with single dots between"
            )));
        }
        let joint = if operator.named { "," } else { operator.between };
        let variable = Variable { name: name.to_owned(), exploded, prefix, joint };
        self.variables.push(variable);
        Ok(Spec { variable: self.variables.len() - 1, most: prefix.unwrap_or(usize::MAX), exploded })
    }

    /// Checks that a variable has a `*` at all of its places or at none.
    fn consistent(&self) -> Result<(), String> {
        for variable in &self.variables {
            let other = |v: &&Variable| v.name == variable.name && v.exploded != variable.exploded;
            if let Some(other) = self.variables.iter().find(other) {
                return Err(format!("{:?} is exploded in one place and not in another", other.name));
            }
        }
        Ok(())
    }

    /// Adds a node and returns its place.
    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns the place of the node that is added next.
    fn here(&self) -> usize {
        self.nodes.len()
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(wrong) = text.chars().find(|c| c.is_control() || " \"<>\\^`|".contains(*c)) {
            return Err(format!("{wrong:?} cannot stand in a URI"));
        }
        let units: Result<Vec<Unit>, _> = unit::units(text).collect();
        let units = units.map_err(|_| format!("{text:?} has a percent sign that encodes nothing"))?;
        let next = self.here() + 1;
        self.add(Node::Literal { units, next, opens: None });
        Ok(())
    }

    /// Adds the characters of an operator.
    fn fixed(&mut self, text: &str, next: usize) -> usize {
        let units = unit::units(text).filter_map(Result::ok).collect();
        self.add(Node::Literal { units, next, opens: None })
    }

    /// Adds an alternative. Its second node is set later.
    fn either(&mut self, first: usize) -> usize {
        self.add(Node::Either(first, usize::MAX))
    }

    /// Makes the nodes in `ends` lead to the node that is added next.
    fn join(&mut self, ends: &[usize]) {
        let here = self.here();
        for end in ends {
            match &mut self.nodes[*end] {
                Node::Either(_, second) => *second = here,
                Node::Literal { next, .. } | Node::Run { next, .. } => *next = here,
                Node::End => {}
            }
        }
    }

    /// Adds values without names. The later ones may be absent; all of them may be where the expression has a beginning of
    /// its own.
    fn list(&mut self, operator: &'static Operator, specs: &[Spec]) {
        let without = operator.without;
        let mut missing = Vec::new();
        for (at, spec) in specs.iter().enumerate() {
            let before = if at == 0 { operator.first } else { operator.between };
            if !before.is_empty() {
                missing.push(self.either(self.here() + 1));
                let next = self.here() + 1;
                self.fixed(before, next);
            }
            let least = usize::from(at == 0 && operator.first.is_empty());
            let next = self.here() + 1;
            let (variable, most) = (spec.variable, spec.most);
            let run = self.add(Node::Run { without, least, most, next, variable, take: Take::Value });
            if spec.exploded {
                // The list ends where that leads to the end of the URI; elsewhere it has one more value.
                let here = self.here();
                self.add(Node::Either(here + 2, here + 1));
                self.fixed(operator.between, run);
            }
        }
        self.join(&missing);
    }

    /// Adds parameters with names, in any order. Where `goes_on` is true, some belong to a second expression; a URI may
    /// begin with its separator where it has no parameter of the first one.
    fn named(&mut self, operator: &'static Operator, goes_on: bool, specs: &[Spec]) {
        let absent = self.either(self.here() + 1);
        let begins: &[&str] =
            if goes_on { &[operator.first, operator.between] } else { std::slice::from_ref(&operator.first) };
        let parameters = self.here() + begins.len() * 2 - 1;
        for (at, text) in begins.iter().enumerate() {
            if at + 1 < begins.len() {
                let here = self.here();
                self.add(Node::Either(here + 1, here + 2));
            }
            self.fixed(text, parameters);
        }
        let (mut done, mut other) = (Vec::new(), None);
        for spec in specs {
            other = Some(self.either(self.here() + 1));
            let name = self.variables[spec.variable].name.clone();
            let units = unit::units(&name).filter_map(Result::ok).collect();
            let next = self.here() + 1;
            self.add(Node::Literal { units, next, opens: Some(spec.variable) });
            self.value(operator, spec, Take::Rest, &mut done);
            self.join(other.as_slice());
        }
        if let Some(spec) = specs.iter().find(|spec| spec.exploded) {
            let next = self.here() + 1;
            let (without, variable) = (if operator.between == "&" { "#&=" } else { "/?#;=" }, spec.variable);
            self.add(Node::Run { without, least: 1, most: usize::MAX, next, variable, take: Take::Value });
            self.value(operator, spec, Take::Behind('='), &mut done);
        } else if let Some(last) = other {
            // The last name has no alternative.
            let only = last + 1;
            self.nodes[last] = Node::Either(only, only);
        }
        self.join(&done);
        let on = self.here();
        self.add(Node::Either(on + 2, on + 1));
        self.fixed(operator.between, parameters);
        self.join(&[absent]);
    }

    /// Adds the value of a parameter. A parameter may have none.
    fn value(&mut self, operator: &'static Operator, spec: &Spec, take: Take, done: &mut Vec<usize>) {
        let (without, variable, most) = (operator.without, spec.variable, spec.most);
        done.push(self.either(self.here() + 1));
        let next = self.here() + 1;
        self.fixed("=", next);
        done.push(self.add(Node::Run { without, least: 0, most, next: usize::MAX, variable, take }));
    }
}
