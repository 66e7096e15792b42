//! JSON Schemas: compiled once, bounded, and never fetched from elsewhere.

use proto::Raw;
use serde_json::Value;

use crate::bounds;

/// How many complaints are told at once.
const TOLD: usize = 5;

/// A compiled schema of JSON Schema 2020-12, or of the dialect that its `$schema` names.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Says what is wrong: not a schema, an unknown dialect, a reference to another place, too large, or one that
    /// validation would not come to an end with.
    pub fn new(schema: &Raw) -> Result<Validator, String> {
        let schema: Value = schema.read().map_err(|e| format!("the schema is no JSON: {e}"))?;
        bounds::check(&schema)?;
        jsonschema::validator_for(&schema).map(Validator).map_err(|e| format!("the schema is not valid: {e}"))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Says what does not fit, and where.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let mut told = Vec::new();
        for error in self.0.iter_errors(value).take(TOLD) {
            let at = error.instance_path().to_string();
            let what: String = error.masked().to_string().chars().take(200).collect();
            told.push(if at.is_empty() { what } else { format!("{at}: {what}") });
        }
        if told.is_empty() { Ok(()) } else { Err(told.join("; ")) }
    }
}

/// A value for validation. A number that no type here holds, such as `1e400`, becomes the nearest one that does.
pub(crate) fn value_of(raw: &Raw) -> Result<Value, String> {
    if let Ok(value) = raw.read() {
        return Ok(value);
    }
    if let Ok(object) = raw.object() {
        let member = |(name, value): (bytestring::ByteString, Raw)| Ok((name.to_string(), value_of(&value)?));
        return object.into_iter().map(member).collect::<Result<_, String>>().map(Value::Object);
    }
    if let Ok(elements) = raw.array() {
        return elements.iter().map(value_of).collect::<Result<_, _>>().map(Value::Array);
    }
    let number: f64 = raw.as_str().parse().map_err(|_| "it is no JSON".to_owned())?;
    Ok(Value::from(number.clamp(f64::MIN, f64::MAX)))
}

/// The same with whole numbers as integers: JSON Schema makes no difference between 2 and 2.0, types here do.
pub(crate) fn with_integers(mut value: Value) -> Value {
    match &mut value {
        Value::Array(values) => values.iter_mut().for_each(|v| *v = with_integers(v.take())),
        Value::Object(values) => values.values_mut().for_each(|v| *v = with_integers(v.take())),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15);
            #[allow(clippy::cast_possible_truncation)]
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
    value
}
