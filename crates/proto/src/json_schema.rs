//! Which keywords of a JSON Schema hold schemas, and what those schemas apply to.
//!
//! <https://json-schema.org/draft/2020-12/json-schema-core#name-keywords-for-applying-subsch>

use serde_json::Value;

/// A keyword that holds one schema or several.
#[derive(Clone, Copy, Debug)]
pub struct Applicator {
    /// The keyword.
    pub keyword: &'static str,
    /// What its schemas apply to.
    pub place: Place,
    /// Its value is an object whose members are schemas; any other keyword holds one schema or an array of them.
    is_map: bool,
}

/// What the schemas of a keyword apply to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The value that the whole schema applies to.
    Here,
    /// Members or elements of that value.
    Below,
    /// Nothing of that value: they describe its members' names, or apply where a reference names them.
    Elsewhere,
}

const fn one(keyword: &'static str, place: Place) -> Applicator {
    Applicator { keyword, place, is_map: false }
}

const fn map(keyword: &'static str, place: Place) -> Applicator {
    Applicator { keyword, place, is_map: true }
}

/// Every keyword that holds schemas, of the newest dialect and of those before it.
pub const APPLICATORS: &[Applicator] = &[
    one("allOf", Place::Here),
    one("anyOf", Place::Here),
    one("oneOf", Place::Here),
    one("not", Place::Here),
    one("if", Place::Here),
    one("then", Place::Here),
    one("else", Place::Here),
    map("dependentSchemas", Place::Here),
    map("dependencies", Place::Here),
    map("properties", Place::Below),
    map("patternProperties", Place::Below),
    one("additionalProperties", Place::Below),
    one("unevaluatedProperties", Place::Below),
    one("prefixItems", Place::Below),
    one("items", Place::Below),
    one("additionalItems", Place::Below),
    one("unevaluatedItems", Place::Below),
    one("contains", Place::Below),
    one("contentSchema", Place::Below),
    one("propertyNames", Place::Elsewhere),
    map("$defs", Place::Elsewhere),
    map("definitions", Place::Elsewhere),
];

impl Applicator {
    /// The schemas that this keyword holds in `schema`.
    pub fn schemas<'a>(&self, schema: &'a Value) -> Vec<&'a Value> {
        match schema.get(self.keyword) {
            None => Vec::new(),
            Some(Value::Object(members)) if self.is_map => members.values().collect(),
            Some(_) if self.is_map => Vec::new(),
            Some(Value::Array(schemas)) => schemas.iter().collect(),
            Some(schema) => vec![schema],
        }
    }
}
