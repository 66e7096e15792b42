//! Questions to a user: to fill in a form, or to open a URL.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>

use std::marker::PhantomData;

use proto::{Object, Raw};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A form that a user fills in, for [`Context::elicit`](crate::Context::elicit). `T` is the type of what the user
/// filled in.
#[derive(Clone, Debug)]
pub struct ElicitForm<T> {
    pub(crate) message: String,
    /// The flat schema, or why there is none.
    pub(crate) schema: Result<Value, String>,
    filled: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> ElicitForm<T> {
    /// Makes a form with a field for each field of a type.
    ///
    /// Fields hold text, numbers, truth values, or choices (an enum without data, or a list of such enums). The user
    /// may leave an [`Option`] empty. Doc comments become descriptions, and attributes say more: `#[schemars(title =
    /// "…", length(min = 1), range(max = 9))]`, `#[serde(default)]`. Where a type does not fit into a form, the
    /// question fails.
    pub fn new(message: impl Into<String>) -> ElicitForm<T> {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        ElicitForm { message: message.into(), schema: flat(&schema), filled: PhantomData }
    }
}

impl ElicitForm<Value> {
    /// Makes a form of a schema that is written by hand: an object without objects in it.
    pub fn raw(message: impl Into<String>, schema: Value) -> ElicitForm<Value> {
        ElicitForm { message: message.into(), schema: Ok(schema), filled: PhantomData }
    }
}

/// A URL that a user is asked to open, for [`Context::elicit_url`](crate::Context::elicit_url). It is for what the
/// client must not see, such as passwords.
#[derive(Clone, Debug)]
pub struct ElicitUrl {
    pub(crate) message: String,
    pub(crate) url: String,
    /// A name that clients of 2025-11-25 want to have.
    pub(crate) id: String,
}

impl ElicitUrl {
    /// Makes a question of a message that says why, and the URL. `id` names the question to clients of 2025-11-25,
    /// which require it.
    pub fn new(message: impl Into<String>, url: impl Into<String>, id: impl Into<String>) -> ElicitUrl {
        ElicitUrl { message: message.into(), url: url.into(), id: id.into() }
    }

    pub(crate) fn params(&self) -> Object {
        Object::new()
            .with("mode", "url")
            .with("message", &*self.message)
            .with("url", &*self.url)
            .with("elicitationId", &*self.id)
    }
}

impl<T> ElicitForm<T> {
    pub(crate) fn params(&self) -> Result<Object, String> {
        let schema = self.schema.as_ref().map_err(Clone::clone)?;
        Ok(Object::new()
            .with("mode", "form")
            .with("message", &*self.message)
            .with("requestedSchema", Raw::of(schema)))
    }
}

/// Keywords of a field that forms know.
const KEYWORDS: [&str; 9] = [
    "title",
    "description",
    "default",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];
/// Formats of text that forms know.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The schema of a type in the form that the protocol has for forms.
fn flat(schema: &Value) -> Result<Value, String> {
    let properties = schema["properties"].as_object();
    let properties = properties.ok_or("a form is made of a struct with named fields")?;
    let mut fields = Map::new();
    for (name, property) in properties {
        fields.insert(name.clone(), field(property).map_err(|why| format!("field {name:?}: {why}"))?);
    }
    let mut form = json!({"type": "object", "properties": fields});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

fn field(property: &Value) -> Result<Value, String> {
    let inner = not_null(property);
    let mut field = Map::new();
    for keyword in KEYWORDS {
        let found = property.get(keyword).or_else(|| inner.get(keyword));
        if let Some(value) = found.filter(|value| !value.is_null()) {
            field.insert(keyword.to_owned(), value.clone());
        }
    }
    let kind = match &inner["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match (kind.as_str(), choices(&inner)) {
        (_, Some((keyword, choices))) => {
            field.insert("type".into(), "string".into());
            field.insert(keyword.into(), choices);
        }
        (Some(kind @ ("string" | "integer" | "number" | "boolean")), None) => {
            field.insert("type".into(), kind.into());
            if let Some(format) = inner["format"].as_str().filter(|format| FORMATS.contains(format)) {
                field.insert("format".into(), format.into());
            }
        }
        (Some("array"), None) => {
            let (keyword, choices) =
                choices(&not_null(&inner["items"])).ok_or("a list in a form is one of choices")?;
            field.insert("type".into(), "array".into());
            let items = match keyword {
                "enum" => json!({"type": "string", "enum": choices}),
                _ => json!({"anyOf": choices}),
            };
            field.insert("items".into(), items);
        }
        _ => return Err("it holds neither text, a number, a truth value, nor choices".into()),
    }
    Ok(Value::Object(field))
}

/// Without the alternative that a value may be left out by null, which forms have no word for.
fn not_null(schema: &Value) -> Value {
    let alternatives = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    let is_null = |schema: &&Value| schema["type"] == "null";
    match alternatives.map(|all| all.iter().filter(|s| !is_null(s)).collect::<Vec<_>>()) {
        Some(rest) if rest.len() == 1 => rest[0].clone(),
        _ => schema.clone(),
    }
}

/// The choices of an enum without data: as plain values, or with titles where it describes them.
fn choices(schema: &Value) -> Option<(&'static str, Value)> {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        return values.iter().all(|value| value.is_string()).then(|| ("enum", json!(values)));
    }
    let titled = |choice: &Value| {
        let value = choice["const"].as_str()?;
        let title = choice["title"].as_str().or_else(|| choice["description"].as_str()).unwrap_or(value);
        Some(json!({"const": value, "title": title}))
    };
    // Choices of which some are described stand beside those that are not.
    let mut found = Vec::new();
    for alternative in schema["oneOf"].as_array()? {
        match alternative["enum"].as_array() {
            Some(values) => {
                let plain = |value: &Value| Some(json!({"const": value.as_str()?, "title": value}));
                found.extend(values.iter().map(plain).collect::<Option<Vec<_>>>()?);
            }
            None => found.push(titled(alternative)?),
        }
    }
    Some(("oneOf", Value::Array(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Order {
        /// Who it is for.
        name: String,
        #[schemars(range(min = 1, max = 9))]
        count: u8,
        note: Option<String>,
        gift: bool,
        size: Size,
        extras: Vec<Extra>,
        #[serde(default)]
        colour: Option<Extra>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum Size {
        /// Fits in a pocket
        Small,
        Large,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Extra {
        Red,
        DarkBlue,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Deep {
        order: Order,
    }

    #[test]
    fn a_type_becomes_a_flat_form() {
        let form = ElicitForm::<Order>::new("?").schema.unwrap();
        let properties = &form["properties"];
        assert_eq!(properties["name"], json!({"type": "string", "description": "Who it is for."}));
        assert_eq!(properties["count"], json!({"type": "integer", "minimum": 1, "maximum": 9}));
        assert_eq!(properties["note"], json!({"type": "string"}));
        assert_eq!(properties["gift"], json!({"type": "boolean"}));
        let sizes =
            json!([{"const": "Large", "title": "Large"}, {"const": "Small", "title": "Fits in a pocket"}]);
        let mut found = properties["size"]["oneOf"].as_array().unwrap().clone();
        found.sort_by_key(|choice| choice["const"].to_string());
        assert_eq!((&properties["size"]["type"], Value::from(found)), (&json!("string"), sizes));
        let extras = json!({"type": "array", "items": {"type": "string", "enum": ["red", "dark-blue"]}});
        assert_eq!(properties["extras"], extras);
        assert_eq!(properties["colour"], json!({"type": "string", "enum": ["red", "dark-blue"]}));
        assert_eq!(form["required"], json!(["name", "count", "gift", "size", "extras"]));
        assert!(ElicitForm::<Deep>::new("?").schema.is_err_and(|why| why.contains("\"order\"")));
    }
}
