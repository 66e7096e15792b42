//! Values of every kind, made from the rows and the official schemas: every field that any revision has, as the newest
//! revision that has it writes it.
//!
//! A value is made of a list of choices, where 0 always means the least: what fails is thus made smaller by making the
//! list shorter.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use spec::shape::{Field, Holds, Kind, Shape};
use spec::{Revision, Revisions, meta};
use testkit::referee::published;

/// Where values of a shape stand in each revision that has them, the newest first.
pub(crate) type Places = Vec<(Revision, Vec<&'static Value>)>;

/// Fields that the gate writes itself, where they are required.
const STAMPED: &[&str] = &["resultType", "ttlMs", "cacheScope", meta::META];

/// Choices, one after the other.
pub(crate) struct Tape {
    choices: Vec<u32>,
    at: usize,
    /// The fields and kinds of content that were made, with the types that they are of.
    pub(crate) made: BTreeSet<(&'static str, &'static str)>,
}

impl Tape {
    pub(crate) fn new(choices: Vec<u32>) -> Tape {
        Tape { choices, at: 0, made: BTreeSet::new() }
    }

    /// A choice out of so many.
    pub(crate) fn of(&mut self, many: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        choice as usize % many.max(1)
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.of(2) == 1
    }

    /// An object of a shape, with any of its fields.
    pub(crate) fn object(&mut self, shape: &'static Shape, places: &Places) -> Value {
        let newest = places.first().map(|(_, schemas)| schemas.clone()).unwrap_or_default();
        let places = self.one_each(places);
        let mut made = Map::new();
        for field in shape.fields {
            let lists = |schema: &Value| schema["properties"].get(field.name).is_some();
            // It is of another alternative than the chosen one.
            if newest.iter().any(|schema| lists(schema)) && !lists(places[0].1) {
                continue;
            }
            let homes: Places = places
                .iter()
                .filter_map(|(revision, schema)| {
                    let found = schema.get("properties").and_then(|p| p.get(field.name))?;
                    Some((*revision, alternatives(*revision, found)))
                })
                .collect();
            let must = field.required == field.exists && !STAMPED.contains(&field.name);
            if field.name == meta::RELATED_TASK && self.flip() {
                self.made.extend([(shape.name, field.name), ("RelatedTaskMetadata", "taskId")]);
                made.insert(field.name.to_owned(), json!({"taskId": self.text()}));
            } else if !homes.is_empty() && (must || self.required(&places, field) || self.flip()) {
                self.made.insert((shape.name, field.name));
                made.insert(field.name.to_owned(), self.field(field, &homes));
            }
        }
        Value::Object(made)
    }

    /// Whether the newest revision requires it. What older ones alone require, a newer sender does not have.
    fn required(&self, places: &[(Revision, &Value)], field: &Field) -> bool {
        let required = places.first().and_then(|(_, schema)| schema.get("required")?.as_array());
        !STAMPED.contains(&field.name) && required.is_some_and(|names| names.iter().any(|n| n == field.name))
    }

    /// One alternative of the newest revision, and of each other one what is most like it.
    fn one_each(&mut self, places: &Places) -> Vec<(Revision, &'static Value)> {
        let Some((_, newest)) = places.first() else { return Vec::new() };
        let chosen = newest[self.of(newest.len())];
        let names = |schema: &'static Value| {
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        };
        let alike =
            |schema: &&'static Value| names(schema).filter(|n| names(chosen).any(|m| m == *n)).count();
        let pick = |(revision, schemas): &(Revision, Vec<&'static Value>)| {
            let own = schemas.iter().copied().find(|schema| std::ptr::eq(*schema, chosen));
            Some((*revision, own.or_else(|| schemas.iter().copied().max_by_key(alike))?))
        };
        places.iter().filter_map(pick).collect()
    }

    fn field(&mut self, field: &'static Field, homes: &Places) -> Value {
        match field.holds {
            Holds::Nothing => self.leaf(field.name, homes),
            Holds::Object(shape) => {
                let mut made = self.object(shape, homes);
                if field.name == meta::META && self.flip() {
                    made["example.org/own"] = self.anything(2);
                }
                made
            }
            Holds::List(shape) => {
                let homes = below(homes, "items");
                (0..self.of(3)).map(|_| self.object(shape, &homes)).collect()
            }
            Holds::Map(shape) => {
                let homes = below(homes, "additionalProperties");
                (0..self.of(3)).map(|at| (format!("k{at}"), self.object(shape, &homes))).collect()
            }
            Holds::Content(kinds) => self.block(kinds, homes),
            Holds::Contents(kinds) => {
                let homes = below(homes, "items");
                (0..self.of(4)).map(|_| self.block(kinds, &homes)).collect()
            }
            Holds::ContentOrList(kinds) => {
                if self.flip() {
                    let homes = below(homes, "items");
                    return (0..self.of(4)).map(|_| self.block(kinds, &homes)).collect();
                }
                self.block(kinds, homes)
            }
        }
    }

    fn block(&mut self, kinds: &'static [Kind], homes: &Places) -> Value {
        let kind = &kinds[self.of(kinds.len())];
        let is = |schema: &&&Value| schema["properties"]["type"]["const"] == kind.tag;
        let homes: Places = homes
            .iter()
            .map(|(revision, blocks)| (*revision, blocks.iter().filter(is).copied().collect::<Vec<_>>()))
            .filter(|(_, blocks)| !blocks.is_empty())
            .collect();
        let mut block = self.object(kind.shape, &homes);
        block["type"] = json!(kind.tag);
        self.made.insert((kind.shape.name, "type"));
        block
    }

    /// A value that no row opens.
    fn leaf(&mut self, name: &str, homes: &Places) -> Value {
        let (revision, schemas) = &homes[0];
        match name {
            meta::META => json!({"example.org/own": self.anything(2)}),
            "inputSchema" => json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
            "outputSchema" if self.flip() => json!({"type": "array", "items": {"$ref": "#/$defs/x"}}),
            "outputSchema" => json!({"type": "object", "additionalProperties": false}),
            _ => {
                let schema = schemas[self.of(schemas.len())];
                let any_object = published(*revision).get("JSONObject");
                match any_object.is_some_and(|any| std::ptr::eq(any, schema)) && name != "metadata" {
                    // A capability without settings so far: what will stand in it is not known.
                    true => json!({}),
                    false => self.of_schema(*revision, schema, 3),
                }
            }
        }
    }

    /// A value that a schema, as published, accepts.
    pub(crate) fn of_schema(&mut self, revision: Revision, schema: &'static Value, depth: u8) -> Value {
        let alternatives = alternatives(revision, schema);
        let schema = alternatives[self.of(alternatives.len())];
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values[self.of(values.len())].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.of(kinds.len())].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("string") => match schema["format"].as_str() {
                Some("uri") => json!(format!("https://example.org/{}", self.of(9))),
                Some("uri-template") => {
                    json!(format!("https://example.org/{{{}}}", ["a", "a,b"][self.of(2)]))
                }
                Some("byte") => json!("aGVsbG8="),
                _ => json!(self.text()),
            },
            Some("boolean") => json!(self.flip()),
            Some("integer") => json!(self.of(100)),
            // Every number of the schemas has its bounds at 0 and 1 or none at all.
            Some("number") => json!([0.0, 0.25, 1.0][self.of(3)]),
            Some("array") => {
                let many = if depth == 0 { 0 } else { self.of(3) };
                (0..many).map(|_| self.of_schema(revision, &schema["items"], depth - 1)).collect()
            }
            Some("object") => self.of_object_schema(revision, schema, depth),
            _ => self.anything(depth),
        }
    }

    fn of_object_schema(&mut self, revision: Revision, schema: &'static Value, depth: u8) -> Value {
        let mut made = Map::new();
        let required = schema["required"].as_array();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let must = required.is_some_and(|names| names.iter().any(|n| n == name));
            if must || depth > 0 && self.flip() {
                made.insert(name.clone(), self.of_schema(revision, property, depth.saturating_sub(1)));
            }
        }
        if let Some(additional) = schema.get("additionalProperties").filter(|a| a.is_object() && depth > 0) {
            for at in 0..self.of(3) {
                made.insert(format!("k{at}"), self.of_schema(revision, additional, depth - 1));
            }
        }
        Value::Object(made)
    }

    pub(crate) fn text(&mut self) -> String {
        ["t", "", "two words", "\u{e9}\u{1f600}\"\\\n", "[]", "{\"a\": 1}"][self.of(6)].to_owned()
    }

    fn anything(&mut self, depth: u8) -> Value {
        match self.of(if depth == 0 { 5 } else { 7 }) {
            0 => json!({}),
            1 => json!(1.5),
            2 => Value::Null,
            3 => json!(self.text()),
            4 => json!(self.flip()),
            5 => (0..self.of(3)).map(|_| self.anything(depth - 1)).collect(),
            _ => (0..self.of(3)).map(|at| (format!("a{at}"), self.anything(depth - 1))).collect(),
        }
    }
}

/// The members of a union, with references followed.
pub(crate) fn alternatives(revision: Revision, mut schema: &'static Value) -> Vec<&'static Value> {
    while let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        schema = &published(revision)[reference.rsplit('/').next().unwrap()];
    }
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(members) => members.iter().flat_map(|member| alternatives(revision, member)).collect(),
        None => vec![schema],
    }
}

fn below(homes: &Places, keyword: &str) -> Places {
    let deeper = |(revision, schemas): &(Revision, Vec<&'static Value>)| {
        let found = schemas.iter().filter_map(|schema| schema.get(keyword));
        (*revision, found.flat_map(|schema| alternatives(*revision, schema)).collect::<Vec<_>>())
    };
    homes.iter().map(deeper).filter(|(_, schemas)| !schemas.is_empty()).collect()
}

/// Where values of a type stand.
pub(crate) fn of_type(definition: &str) -> Places {
    let found = |revision| Some((revision, alternatives(revision, published(revision).get(definition)?)));
    Revision::ALL.into_iter().filter_map(found).collect()
}

/// Where the params of a message stand.
pub(crate) fn of_params(message: &str) -> Places {
    let found = |revision| {
        let params = published(revision).get(message)?["properties"].get("params")?;
        Some((revision, alternatives(revision, params)))
    };
    Revision::ALL.into_iter().filter_map(found).collect()
}

/// The definition of a message with this method.
pub(crate) fn definition(method: &str) -> &'static str {
    let named = |revision: Revision| {
        let is = |(name, definition): &(&'static String, &Value)| {
            !["ClientNotification", "ServerNotification"].contains(&name.as_str())
                && definition["properties"]["method"]["const"] == method
        };
        published(revision).iter().find(is).map(|(name, _)| name.as_str())
    };
    Revisions::ALL.iter().find_map(named).unwrap_or_else(|| panic!("no schema has {method}"))
}
