//! What a schema may ask of validation: to look at one place of a value a bounded number of times.
//!
//! `allOf`, `$ref` and others apply a schema to the very place that is looked at. Led in a circle they never end, and
//! doubled at each step they take as good as forever, with a schema of a few lines.

use std::collections::HashMap;

use jsonschema::Draft;
use proto::json_schema::{APPLICATORS, Place};
use serde_json::Value;
use url::Url;

/// Schemas that nest deeper, or hold more parts, are refused, as are those that make so much of one place.
const DEPTH: usize = 64;
const PARTS: usize = 10_000;

/// Keywords that name a schema elsewhere.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose values are no schemas.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Checks a schema. Gives how deep a value may nest so that all ways through the schema to one place of it are no more
/// than [`PARTS`].
///
/// # Errors
/// Says what is too much, or which dialect is not known.
pub(crate) fn check(schema: &Value) -> Result<usize, String> {
    let Ok(base) = Url::parse("schema:///") else { return Ok(0) };
    let mut places = Places { named: HashMap::new(), refers: Vec::new(), parts: 0 };
    places.named.insert(base.to_string(), schema);
    places.collect(schema, &base, 0)?;
    let mut targets: HashMap<*const Value, Vec<&Value>> = HashMap::new();
    for (from, reference) in &places.refers {
        // What is not found here is found by whoever compiles it, or refused there.
        if let Some(target) = places.target(reference) {
            targets.entry(std::ptr::from_ref(*from)).or_default().push(target);
        }
    }
    let mut weights = Weights { targets, known: HashMap::new() };
    places
        .refers
        .iter()
        .map(|(from, _)| *from)
        .chain([schema])
        .try_for_each(|at| weights.of(at, 0).map(drop))?;
    let ways = places.refers.iter().map(|(from, _)| *from).chain([schema]).map(|at| weights.ways(at)).max();
    Ok(match ways.unwrap_or_default() {
        0 | 1 => usize::MAX,
        ways => PARTS.ilog(ways) as usize,
    })
}

/// How deep a value nests.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or_default(),
        Value::Object(values) => 1 + values.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The schemas within one, by the URIs that name them.
struct Places<'a> {
    named: HashMap<String, &'a Value>,
    refers: Vec<(&'a Value, Url)>,
    parts: usize,
}

impl<'a> Places<'a> {
    fn collect(&mut self, at: &'a Value, base: &Url, depth: usize) -> Result<(), String> {
        self.parts += 1;
        if depth > DEPTH || self.parts > PARTS {
            return Err(format!("the schema is too large: at most {DEPTH} levels and {PARTS} parts"));
        }
        let Some(members) = at.as_object() else {
            return at.as_array().into_iter().flatten().try_for_each(|v| self.collect(v, base, depth + 1));
        };
        if let Some(dialect) = members.get("$schema").and_then(Value::as_str)
            && matches!(Draft::from_schema_uri(dialect), Draft::Unknown)
        {
            return Err(format!("the dialect {dialect:?} is not known"));
        }
        let mut base = base.clone();
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if let Some(id) = text("$id").or(text("id")).and_then(|id| base.join(id).ok()) {
            self.named.insert(id.to_string(), at);
            base = id;
            base.set_fragment(None);
            self.named.entry(base.to_string()).or_insert(at);
        }
        for anchor in [text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
            let mut named = base.clone();
            named.set_fragment(Some(anchor));
            self.named.insert(named.to_string(), at);
        }
        let joined = |name: &&str| base.join(text(name)?).ok();
        self.refers.extend(REFERENCES.iter().filter_map(joined).map(|reference| (at, reference)));
        for (name, value) in members {
            if DATA.contains(&name.as_str()) {
                self.count(value, depth + 1)?;
            } else {
                self.collect(value, &base, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Counts what is no schema.
    fn count(&mut self, at: &Value, depth: usize) -> Result<(), String> {
        self.parts += 1;
        if depth > DEPTH || self.parts > PARTS {
            return Err(format!("the schema is too large: at most {DEPTH} levels and {PARTS} parts"));
        }
        match at {
            Value::Array(values) => values.iter().try_for_each(|v| self.count(v, depth + 1)),
            Value::Object(values) => values.values().try_for_each(|v| self.count(v, depth + 1)),
            _ => Ok(()),
        }
    }

    fn target(&self, reference: &Url) -> Option<&'a Value> {
        if let Some(named) = self.named.get(reference.as_str()) {
            return Some(named);
        }
        let mut resource = reference.clone();
        resource.set_fragment(None);
        let resource = self.named.get(resource.as_str())?;
        let pointer = percent_decoded(reference.fragment().unwrap_or_default())?;
        resource.pointer(&pointer)
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// How many schemas are applied to a place where one is.
struct Weights<'a> {
    targets: HashMap<*const Value, Vec<&'a Value>>,
    /// `None` while it is being found out.
    known: HashMap<*const Value, Option<usize>>,
}

impl<'a> Weights<'a> {
    fn of(&mut self, at: &'a Value, depth: usize) -> Result<usize, String> {
        let key = std::ptr::from_ref(at);
        match self.known.get(&key) {
            Some(Some(weight)) => return Ok(*weight),
            Some(None) => return Err("a part of the schema leads back to itself without end".into()),
            None if depth > 4 * DEPTH => return Err("the schema's references lead on and on".into()),
            None => self.known.insert(key, None),
        };
        let mut weight: usize = 1;
        for schema in same_place(at).chain(self.targets.get(&key).cloned().unwrap_or_default()) {
            weight = weight.saturating_add(self.of(schema, depth + 1)?);
        }
        if weight > PARTS {
            return Err(format!("the schema looks at one place of a value more than {PARTS} times"));
        }
        self.known.insert(key, Some(weight));
        Ok(weight)
    }
}

impl Weights<'_> {
    /// How many references lead on from a place where a schema is, at most, to one place below it. Each of them is as
    /// many again one step further down.
    fn ways(&self, at: &Value) -> usize {
        let targets = self.targets.get(&std::ptr::from_ref(at)).into_iter().flatten();
        let here = same_place(at).chain(targets.copied()).map(|schema| self.ways(schema));
        here.fold(below(at), usize::saturating_add)
    }
}

/// How many references the schemas for what is below a place hold, of those that may apply to one place: of several
/// properties a place is just one.
fn below(at: &Value) -> usize {
    let mut sum: usize = 0;
    for applicator in APPLICATORS.iter().filter(|applicator| applicator.place == Place::Below) {
        let found = applicator.schemas(at).into_iter().map(references);
        let is_for_one = matches!(applicator.keyword, "properties" | "prefixItems");
        let found = if is_for_one { found.max().unwrap_or(0) } else { found.fold(0, usize::saturating_add) };
        sum = sum.saturating_add(found);
    }
    sum
}

/// How many references a schema holds that may apply to one place.
fn references(schema: &Value) -> usize {
    let own = REFERENCES.iter().filter(|name| schema.get(**name).is_some()).count();
    same_place(schema).map(references).fold(own.saturating_add(below(schema)), usize::saturating_add)
}

/// The schemas within one that apply to the same place.
fn same_place(at: &Value) -> impl Iterator<Item = &Value> {
    let here = APPLICATORS.iter().filter(|applicator| applicator.place == Place::Here);
    here.flat_map(|applicator| applicator.schemas(at)).filter(|schema| schema.is_object())
}
