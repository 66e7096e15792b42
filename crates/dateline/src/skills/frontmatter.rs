//! What a `SKILL.md` says of its skill (<https://agentskills.io/specification>).

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};
use spec::skills::{LONGEST_NAME, RESERVED_METADATA};

/// The longest description.
const LONGEST_DESCRIPTION: usize = 1024;

/// The frontmatter of a file: YAML between two lines of three hyphens, at its beginning.
pub(super) fn read(content: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8")?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let none = "it must begin with YAML frontmatter, between two lines of ---";
    let yaml = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")).ok_or(none)?;
    let mut length = 0;
    let mut closed = false;
    for line in yaml.split_inclusive('\n') {
        if line.trim_end() == "---" {
            closed = true;
            break;
        }
        length += line.len();
    }
    if !closed {
        return Err(none.into());
    }
    let documents = Yaml::load_from_str(&yaml[..length]).map_err(|e| format!("its frontmatter: {e}"))?;
    match documents.first().map(json).transpose().map_err(|why| format!("its frontmatter: {why}"))? {
        Some(Value::Object(members)) => Ok(members),
        _ => Err("its frontmatter must have a name and a description".into()),
    }
}

/// YAML as JSON.
fn json(yaml: &Yaml<'_>) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Value(scalar) => match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(truth) => Value::Bool(*truth),
            Scalar::Integer(number) => Value::from(*number),
            Scalar::FloatingPoint(number) => {
                Number::from_f64(number.0).map(Value::Number).ok_or("JSON has no such number")?
            }
            Scalar::String(text) => Value::from(text.as_ref()),
        },
        Yaml::Sequence(items) => Value::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Yaml::Mapping(members) => {
            let member = |(name, value): (&Yaml<'_>, &Yaml<'_>)| {
                let name = name.as_str().ok_or("a name in it is no text")?;
                Ok::<_, String>((name.to_owned(), json(value)?))
            };
            Value::Object(members.iter().map(member).collect::<Result<_, _>>()?)
        }
        Yaml::Tagged(_, inner) => json(inner)?,
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => {
            return Err("a value in it cannot be read".into());
        }
    })
}

/// Whether a skill in this folder may say this.
pub(super) fn check(frontmatter: &Map<String, Value>, folder: &str) -> Result<(), String> {
    let text = |member: &str| {
        let text = frontmatter.get(member).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| format!("its frontmatter must have a {member}, as text"))
    };
    let (name, description) = (text("name")?, text("description")?);
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.len() > LONGEST_NAME || hyphens || !name.chars().all(known) {
        return Err(format!(
            "the name {name:?} must be 1 to {LONGEST_NAME} of a-z, 0-9 and single hyphens between them"
        ));
    }
    if folder.rsplit('/').next() != Some(name) {
        return Err(format!("the name {name:?} must be that of its folder, {folder}"));
    }
    if description.chars().count() > LONGEST_DESCRIPTION {
        return Err(format!("its description has more than {LONGEST_DESCRIPTION} characters"));
    }
    let metadata = frontmatter.get("metadata").and_then(Value::as_object);
    match metadata.into_iter().flatten().find(|(name, _)| name.starts_with(RESERVED_METADATA)) {
        Some((name, _)) => Err(format!("the name {name:?} in its metadata is reserved")),
        None => Ok(()),
    }
}
