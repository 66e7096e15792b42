//! JSON Schemas: compiled once, bounded, and never fetched from elsewhere.

use jsonschema::PatternOptions;
use proto::Raw;
use serde_json::Value;

use crate::{bounds, unique};

/// How many complaints are told at once.
const TOLD: usize = 5;

/// A compiled schema of JSON Schema 2020-12, or of the dialect that its `$schema` names.
#[derive(Debug)]
pub(crate) struct Validator {
    compiled: jsonschema::Validator,
    /// Of values that nest deeper it is told that they do not fit, and not where: whether they fit is found out once
    /// for each place and part of the schema, but where not would be looked for on every way through the schema.
    told: usize,
}

impl Validator {
    /// Compiles a schema. Patterns are those that can be matched in time that grows with the text: no look-around and
    /// no references back.
    ///
    /// # Errors
    /// Says what is wrong: not a schema, an unknown dialect, a reference to another place, too large, or one that
    /// validation would not come to an end with.
    pub(crate) fn new(schema: &Raw) -> Result<Validator, String> {
        let schema: Value = schema.read().map_err(|e| format!("the schema is no JSON: {e}"))?;
        let told = bounds::check(&schema)?;
        jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .with_keyword(unique::KEYWORD, |_, value, _| Ok(unique::keyword(value)))
            .build(&schema)
            .map(|compiled| Validator { compiled, told })
            .map_err(|e| format!("the schema is not valid: {e}{}", hint(&e.to_string())))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Says what does not fit, and where.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        if bounds::depth(value) > self.told {
            return Err("it does not fit, and nests too deep to say where".into());
        }
        let mut told = Vec::new();
        for error in self.compiled.iter_errors(value).take(TOLD) {
            let at = error.instance_path().to_string();
            let what: String = error.masked().to_string().chars().take(200).collect();
            told.push(if at.is_empty() { what } else { format!("{at}: {what}") });
        }
        Err(told.join("; "))
    }
}

/// What would be right where a pattern needs what is not matched in bounded time.
fn hint(why: &str) -> &'static str {
    match why.contains("regex") || why.contains("pattern") {
        true => "; a pattern here has neither look-around nor references back, whose time has no bound",
        false => "",
    }
}

/// A value for validation. A number that no type here holds, such as `1e400`, becomes the nearest one that does.
pub(crate) fn value_of(raw: &Raw) -> Result<Value, String> {
    // Nearly all values have no such number, and are not looked at twice.
    raw.read()
        .or_else(|_| serde_json::from_str(&within_range(raw.as_str())))
        .map_err(|e| format!("it is no JSON: {e}"))
}

/// The text with the largest number in place of those that are larger.
fn within_range(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let quoted = rest.starts_with('"');
        let end = if quoted { end_of_string(rest) } else { end_of_number(rest) };
        let (token, behind) = rest.split_at(end);
        match token.parse::<f64>() {
            Ok(number) if !quoted && number.is_infinite() => {
                out.push_str(&format!("{:e}", if number > 0.0 { f64::MAX } else { f64::MIN }));
            }
            _ => out.push_str(token),
        }
        rest = behind;
    }
    out + rest
}

fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    };
    text.bytes().skip(1).position(closes).map_or(text.len(), |at| at + 2)
}

fn end_of_number(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len())
}

/// Turns whole numbers into integers: JSON Schema makes no difference between 2 and 2.0, Rust types do.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn validator(schema: Value) -> Result<Validator, String> {
        Validator::new(&Raw::of(&schema))
    }

    fn nested(depth: usize, end: Value) -> Value {
        (0..depth).fold(end, |inner, _| json!({"a": inner}))
    }

    #[test]
    fn a_value_is_looked_at_once_where_a_schema_has_many_ways_to_each_place() {
        let branch = |name: &str| json!({"properties": {"a": {"$ref": "#"}, "kind": {"const": name}}});
        for schema in [
            json!({"anyOf": [branch("x"), branch("y")], "type": "object"}),
            json!({"oneOf": [branch("x"), branch("y")], "type": "object"}),
            json!({"allOf": [branch("x"), branch("x")], "type": "object"}),
            json!({"type": "object", "not": {"not": branch("x")}, "if": branch("y"), "then": branch("y")}),
            json!({"anyOf": [branch("x"), branch("y")], "type": "object", "unevaluatedProperties": false}),
        ] {
            let validator = validator(schema.clone()).unwrap();
            // Each step in doubles the ways; all of them would not end.
            for end in [json!(1), json!({"kind": "x"}), json!({})] {
                let _ = validator.check(&nested(100, end));
            }
            let why = validator.check(&nested(2, json!(1))).unwrap_err();
            assert!(!why.contains("too deep"), "{schema}: {why}");
        }
        let tree = json!({"properties": {"a": {"$ref": "#"}}, "type": "object"});
        let why = validator(tree).unwrap().check(&nested(100, json!(1))).unwrap_err();
        assert!(why.starts_with("/a/a/a"), "one way is followed to its end: {why}");
    }

    #[test]
    fn a_pattern_is_matched_in_time_that_grows_with_the_text() {
        let text = "a".repeat(30_000) + "!";
        let nested = validator(json!({"pattern": "^(a+)+$"})).unwrap();
        assert!(nested.check(&json!(text)).is_err() && nested.check(&json!("aaa")).is_ok());
        for unbounded in ["^(?=a)b", r"^(a+)\1$"] {
            let why = validator(json!({"pattern": unbounded})).unwrap_err();
            assert!(why.contains("neither look-around nor references back"), "{why}");
        }
        assert!(validator(json!({"pattern": r"^[\w.-]+/\d{2,4}\p{L}$"})).is_ok());
    }

    #[test]
    fn numbers_out_of_range_are_the_nearest_ones_at_any_depth() {
        let of = |text: &'static str| value_of(&Raw::literal(text)).unwrap();
        assert_eq!(of(r#"{"a":[1e400,-1E+400,"1e400\\"," \"1e400",12,1.5e3,0]}"#)["a"][0], json!(f64::MAX));
        let read = of(r#"{"1e400":[1e400,-1E+400,"1e400\\"," \"1e400",12,1.5e3,0,1e-400]}"#);
        let due = json!([f64::MAX, f64::MIN, "1e400\\", " \"1e400", 12, 1500.0, 0, 0.0]);
        assert_eq!(read, json!({"1e400": due}));
        // Levels are not read again and again: at this size each would count.
        let deep = "[".repeat(100) + &"0,".repeat(100_000) + "1e999" + &"]".repeat(100);
        assert!(Raw::parse(deep.into(), 128).is_ok_and(|raw| value_of(&raw).is_ok()));
    }
}
