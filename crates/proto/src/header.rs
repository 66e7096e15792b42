//! The HTTP headers of a modern request that repeat what its body says.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata>

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use spec::header as name;

use crate::json::{Object, Raw};
use crate::json_schema::APPLICATORS;

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// A parameter of a tool that HTTP requests repeat in a header.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters>
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderParam {
    /// The name of the header without `Mcp-Param-`, as the tool's schema writes it.
    pub header: String,
    /// The names of the properties that lead to the value, from the outside in.
    pub path: Vec<String>,
}

/// The largest integer that a peer can represent exactly as a floating point number, 2^53 - 1.
const SAFE: i64 = (1 << 53) - 1;

/// Returns the value of a header; `None` where it is absent.
///
/// A name or a parameter in base64 form is decoded; other headers have no such form.
///
/// # Errors
/// Where the header occurs twice, or its value cannot be read.
pub fn read<'a>(headers: &'a HeaderMap, header: &str) -> Result<Option<Cow<'a, str>>, String> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{header} stands more than once"));
    }
    let text = value.to_str().map_err(|_| format!("{header} holds characters that a header cannot carry"))?;
    if header != name::NAME && !header.starts_with(name::PARAM_PREFIX) {
        return Ok(Some(Cow::Borrowed(text.trim())));
    }
    decode(text.trim()).map(Some).map_err(|why| format!("{header} {why}"))
}

fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(inner) = text.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(CLOSING)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64.decode(inner).map_err(|_| "is not valid base64 between =?base64? and ?=")?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is not UTF-8 once decoded")
}

/// Writes a text as the value of a header: as it is, or in base64 form where a header cannot carry it as it is.
pub fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && text.trim() == text
        && !(text.starts_with(OPENING) && text.ends_with(CLOSING));
    let value = if plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{OPENING}{}{CLOSING}", BASE64.encode(text)))
    };
    // The value has visible ASCII characters and spaces only, so a header can carry it.
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Checks that a header says exactly what the body says.
///
/// # Errors
/// Where the header is missing, cannot be read, or differs from the body.
pub fn must_equal(headers: &HeaderMap, header: &str, body: &str) -> Result<(), String> {
    match read(headers, header)? {
        None => Err(format!("{header} is required, and must be {body:?} as in the body")),
        Some(value) if value == body => Ok(()),
        Some(value) => Err(format!("{header} is {value:?}, the body says {body:?}")),
    }
}

/// Checks the headers that repeat arguments of a tool call.
///
/// # Errors
/// Where a header is missing, cannot be read, or differs from its argument.
pub fn check_header_params(
    headers: &HeaderMap,
    mirrors: &[HeaderParam],
    arguments: Option<&Raw>,
) -> Result<(), String> {
    let mut opened = Opened::default();
    for mirror in mirrors {
        let header = format!("{}{}", name::PARAM_PREFIX, mirror.header.to_ascii_lowercase());
        let sent = read(headers, &header)?;
        let body = opened.value_at(arguments, &mirror.path);
        match (sent, body.as_ref().and_then(text_of)) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(format!(
                    "{header} is required, since the argument {:?} is given",
                    mirror.path.join(".")
                ));
            }
            // An object or an array is no value of this parameter: the tool's schema refuses it.
            (Some(_), None) if body.is_some() => {}
            (Some(_), None) => {
                return Err(format!(
                    "{header} is given, but the argument {:?} is not",
                    mirror.path.join(".")
                ));
            }
            (Some(sent), Some(text)) if *sent == *text => {}
            // `42` and `42.0` are the same number, but different texts.
            (Some(sent), Some(text))
                if body.is_some_and(|b| b.string().is_none()) && same_integer(&sent, &text) => {}
            (Some(sent), Some(_)) => {
                return Err(format!(
                    "{header} is {sent:?}, the argument {:?} differs",
                    mirror.path.join(".")
                ));
            }
        }
    }
    Ok(())
}

/// Returns the headers that repeat arguments of a tool call.
pub fn mirrored(mirrors: &[HeaderParam], arguments: Option<&Raw>) -> Vec<(HeaderName, HeaderValue)> {
    let mut opened = Opened::default();
    let mut headers = Vec::new();
    for mirror in mirrors {
        let name = format!("{}{}", name::PARAM_PREFIX, mirror.header.to_ascii_lowercase());
        let text = opened.value_at(arguments, &mirror.path).as_ref().and_then(text_of);
        if let (Ok(name), Some(text)) = (HeaderName::try_from(name), text) {
            headers.push((name, encode(&text)));
        }
    }
    headers
}

/// The objects that hold the repeated arguments, by their paths. Each is parsed once, however many arguments it holds.
#[derive(Default)]
struct Opened<'a>(BTreeMap<&'a [String], Option<Object>>);

impl<'a> Opened<'a> {
    /// Returns the value at a path; `None` where there is none, or it is `null`.
    fn value_at(&mut self, arguments: Option<&Raw>, path: &'a [String]) -> Option<Raw> {
        let mut value = arguments?.clone();
        for (at, step) in path.iter().enumerate() {
            let object = self.0.entry(&path[..at]).or_insert_with(|| value.object().ok()).as_ref();
            value = object?.get(step)?.clone();
        }
        (!value.is_null()).then_some(value)
    }
}

/// Returns the text of a string, number or boolean in a header; `None` for an object or an array.
fn text_of(value: &Raw) -> Option<String> {
    match value.string() {
        Some(text) => Some(text.to_string()),
        None if value.starts_with('{') || value.starts_with('[') => None,
        None => Some(integer(value.as_str()).map_or_else(|| value.as_str().to_owned(), |n| n.to_string())),
    }
}

/// Reads an integer in any form that JSON allows (`42`, `42.0`, `4.2e1`).
fn integer(text: &str) -> Option<i64> {
    if let Ok(n) = text.parse::<i64>() {
        return Some(n);
    }
    let n: f64 = text.parse().ok()?;
    #[allow(clippy::cast_possible_truncation)]
    (n.fract() == 0.0 && n.abs() <= SAFE as f64).then_some(n as i64)
}

fn same_integer(a: &str, b: &str) -> bool {
    matches!((integer(a), integer(b)), (Some(a), Some(b)) if a == b)
}

/// How many parameters of a tool may be repeated in headers. Common HTTP servers refuse requests with many more headers.
const MOST: usize = 64;
/// How many bytes the names on the path to a parameter may have together, since every parameter keeps its path.
const LONGEST: usize = 4096;

/// Finds the parameters that a tool's input schema marks to be repeated in headers.
///
/// # Errors
/// Where a mark breaks a rule. Such a tool must not be offered
/// (<https://modelcontextprotocol.io/specification/2026-07-28/server/tools#x-mcp-header>).
pub fn header_params(input_schema: &Raw) -> Result<Vec<HeaderParam>, String> {
    if !input_schema.as_str().contains(name::PARAM_KEYWORD) {
        return Ok(Vec::new());
    }
    let schema: Value = input_schema.read().map_err(|_| "the input schema is no JSON object".to_owned())?;
    let mut found = Vec::new();
    walk(&schema, Some(&mut Vec::new()), &mut found)?;
    let mut seen = HashSet::new();
    for mirror in &found {
        if !seen.insert(mirror.header.to_ascii_lowercase()) {
            return Err(format!(
                "{} {:?} stands twice; case does not count",
                name::PARAM_KEYWORD,
                mirror.header
            ));
        }
    }
    Ok(found)
}

/// Collects the marked parameters of a schema. `path` names the properties that lead to the schema; it is `None` where
/// another keyword leads to it.
fn walk(schema: &Value, path: Option<&mut Vec<String>>, found: &mut Vec<HeaderParam>) -> Result<(), String> {
    let mut path = path;
    if let Some(annotation) = schema.get(name::PARAM_KEYWORD) {
        match &path {
            Some(path) if !path.is_empty() => {
                let header = checked(annotation, schema.get("type"), path)?;
                if found.len() == MOST || path.iter().map(String::len).sum::<usize>() > LONGEST {
                    return Err(format!(
                        "{} stands for more than {MOST} parameters, or for one whose path is longer than {LONGEST} bytes",
                        name::PARAM_KEYWORD
                    ));
                }
                found.push(HeaderParam { header, path: path.to_vec() });
            }
            _ => {
                return Err(format!(
                    "{} stands where only `properties` may lead to it: not in arrays, alternatives, conditions or $defs",
                    name::PARAM_KEYWORD
                ));
            }
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (property, schema) in properties {
            match path.as_deref_mut() {
                Some(path) => {
                    path.push(property.clone());
                    walk(schema, Some(path), found)?;
                    path.pop();
                }
                None => walk(schema, None, found)?,
            }
        }
    }
    for applicator in APPLICATORS.iter().filter(|applicator| applicator.keyword != "properties") {
        for schema in applicator.schemas(schema) {
            walk(schema, None, found)?;
        }
    }
    Ok(())
}

fn checked(annotation: &Value, kind: Option<&Value>, path: &[String]) -> Result<String, String> {
    let at = path.join(".");
    let keyword = name::PARAM_KEYWORD;
    let header = annotation.as_str().ok_or_else(|| format!("{keyword} of {at:?} must be a string"))?;
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if header.is_empty() || !header.bytes().all(token) {
        return Err(format!("{keyword} {header:?} of {at:?} is no header name"));
    }
    let fits = matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    if fits {
        Ok(header.to_owned())
    } else {
        Err(format!("{keyword} of {at:?} needs type string, integer or boolean"))
    }
}

/// Returns the headers of a modern HTTP request.
pub fn of_request(
    revision: &str,
    method: &spec::Method,
    params: &Object,
    mirrors: &[HeaderParam],
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(name::PROTOCOL_VERSION), encode(revision));
    headers.insert(HeaderName::from_static(name::METHOD), encode(method.wire()));
    if let Some(text) = method.row().named_by.and_then(|by| params.string(by)) {
        headers.insert(HeaderName::from_static(name::NAME), encode(&text));
    }
    headers.extend(mirrored(mirrors, params.get("arguments")));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &'static str) -> Raw {
        Raw::literal(text)
    }

    #[test]
    fn values_travel_in_the_form_that_a_header_can_carry() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("inner space", "inner space"),
        ] {
            assert_eq!(encode(text), header);
            assert_eq!(decode(header).unwrap(), text);
        }
        assert!(decode("=?base64?SGVsbG8?=").is_err());
        assert!(decode("=?base64?SGVs!!!bG8=?=").is_err());
        assert_eq!(decode("=?base64?SGVsbG8=").unwrap(), "=?base64?SGVsbG8=");
    }

    #[test]
    fn annotations_are_read_at_any_depth_of_properties_and_nowhere_else() {
        let found = header_params(&schema(
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}"#,
        ));
        assert_eq!(found.unwrap(), [HeaderParam { header: "B".into(), path: vec!["a".into(), "b".into()] }]);
        for wrong in [
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
            r#"{"dependencies":{"b":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}"#,
        ] {
            assert!(header_params(&schema(wrong)).is_err(), "{wrong}");
        }
        assert!(
            header_params(&schema(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_tool_mirrors_a_bounded_number_of_parameters_with_bounded_paths() {
        let of = |count: usize, name: &str| {
            let one = |n: usize| format!(r#""{name}{n}":{{"type":"string","x-mcp-header":"h{n}"}}"#);
            let all: Vec<_> = (0..count).map(one).collect();
            header_params(
                &Raw::parse(format!(r#"{{"properties":{{{}}}}}"#, all.join(",")).into(), 16).unwrap(),
            )
        };
        assert_eq!(of(MOST, "p").unwrap().len(), MOST);
        assert!(of(MOST + 1, "p").unwrap_err().contains("more than 64 parameters"));
        assert!(of(1, &"p".repeat(LONGEST)).unwrap_err().contains("longer than 4096"));
    }

    #[test]
    fn integers_compare_as_numbers() {
        let mirror = [HeaderParam { header: "N".into(), path: vec!["n".into()] }];
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static("mcp-param-n"), HeaderValue::from_static(value))])
        };
        let arguments = schema(r#"{"n":42.0}"#);
        assert!(check_header_params(&headers("42"), &mirror, Some(&arguments)).is_ok());
        assert!(check_header_params(&headers("42.00"), &mirror, Some(&arguments)).is_ok());
        assert!(
            check_header_params(&headers("42.0"), &mirror, Some(&schema(r#"{"n":"42"}"#))).is_err(),
            "a text"
        );
        assert!(check_header_params(&headers("43"), &mirror, Some(&arguments)).is_err());
        assert!(check_header_params(&HeaderMap::new(), &mirror, Some(&arguments)).is_err());
        assert!(check_header_params(&HeaderMap::new(), &mirror, Some(&schema(r#"{"n":null}"#))).is_ok());
        assert!(check_header_params(&headers("1"), &mirror, None).is_err());
    }
}
