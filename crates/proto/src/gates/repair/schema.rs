//! JSON Schemas. Older revisions require more of them than newer ones do.

use spec::shape::ValueType;

use super::loose::{Lost, is_empty_array, note, opened, short};
use crate::json::Raw;

/// Corrects a JSON Schema that has to have the type `object`.
pub(super) fn schema(lost: &mut Lost, value: &mut Raw, value_type: ValueType) -> Result<bool, String> {
    if value.as_str() == "true" || is_empty_array(value) {
        *value = Raw::literal("{}");
    }
    let mut object = value.object().map_err(|_| "is no JSON Schema that is an object")?;
    let typed = object.get("type").filter(|kind| !kind.is_null()).cloned();
    let mut changed = false;
    match typed {
        Some(kind) if kind.string().is_some_and(|kind| kind == "object") => {}
        Some(kind) => {
            let among = kind.array().is_ok_and(|kinds| {
                kinds.iter().any(|kind| kind.string().is_some_and(|kind| kind == "object"))
            });
            if !among {
                let kind = short(kind.as_str());
                return Err(format!("is a schema of the type {kind}, and has to be one of objects"));
            }
            object.set("type", "object");
            changed = true;
        }
        None => {
            object.take("type");
            object.set_first("type", Raw::literal("\"object\""));
            changed = true;
        }
    }
    if changed {
        *value = object.into();
    }
    Ok(within_schema(lost, value, value_type == ValueType::Form)? | changed)
}

/// Corrects the members of a schema as older revisions require: properties are objects, and `required` is an array of
/// strings. Deeper levels may be anything.
pub(super) fn within_schema(lost: &mut Lost, value: &mut Raw, listed: bool) -> Result<bool, String> {
    let mut object = value.object().map_err(|_| "is no JSON Schema that is an object")?;
    let mut changed = false;
    object.retain(|name, member| {
        let fits = match name {
            "properties" => properties(lost, member),
            "required" => match member.array() {
                Ok(names) => {
                    let kept: Vec<Raw> = names.iter().filter(|name| name.starts_with('"')).cloned().collect();
                    if kept.len() < names.len() {
                        *member = Raw::list(&kept);
                        changed = true;
                    }
                    Ok(false)
                }
                Err(_) => Err("is no array of names"),
            },
            "$schema" if !member.starts_with('"') => Err("is no text"),
            _ => Ok(false),
        };
        match fits {
            Ok(mended) => changed |= mended,
            Err(_) if member.is_null() => {
                changed = true;
                return false;
            }
            Err(why) => {
                note(lost, format!("{name} {why}"));
                changed = true;
                return false;
            }
        }
        true
    });
    if listed && object.get("properties").is_none() {
        object.set("properties", Raw::literal("{}"));
        changed = true;
    }
    if changed {
        *value = object.into();
    }
    Ok(changed)
}

/// Corrects the properties of a schema. `true` and `false` are schemas too, but older revisions do not allow them.
fn properties(lost: &mut Lost, value: &mut Raw) -> Result<bool, &'static str> {
    let (mut properties, mut changed) = opened(value).ok_or("is no object")?;
    properties.retain(|name, property| {
        if property.starts_with('{') {
            return true;
        }
        changed = true;
        match property.as_str() {
            "false" => *property = Raw::literal(r#"{"not":{}}"#),
            "true" | "null" => *property = Raw::literal("{}"),
            _ if is_empty_array(property) => *property = Raw::literal("{}"),
            _ => {
                note(lost, format!("properties.{name} is no JSON Schema"));
                return false;
            }
        }
        true
    });
    if changed {
        *value = properties.into();
    }
    Ok(changed)
}
