//! Values that rows do not open: strings, numbers, flags and the like.

use spec::shape::ValueType;

use super::loose::{Lost, is_empty_array, note, replace, short};
use super::schema::{schema, within_schema};
use crate::json::Raw;

fn is_number(value: &Raw) -> bool {
    value.starts_with('-') || value.as_str().starts_with(|c: char| c.is_ascii_digit())
}

fn is_whole(value: &Raw) -> bool {
    let text = value.as_str();
    is_number(value)
        && (!text.contains(['.', 'e', 'E']) || text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0))
}

/// Returns the number that a string holds.
fn number_in(value: &Raw) -> Option<Raw> {
    let text = value.string()?;
    let number = Raw::parse(text.trim().to_owned().into(), 1).ok()?;
    is_number(&number).then_some(number)
}

/// Corrects a value. Returns whether it changed the value.
pub(super) fn leaf(lost: &mut Lost, value: &mut Raw, value_type: ValueType) -> Result<bool, String> {
    let text = value.starts_with('"');
    match value_type {
        ValueType::Anything => Ok(false),
        ValueType::Text | ValueType::Key | ValueType::Said if text => Ok(false),
        ValueType::Said => replace(value, value.as_str().to_owned().as_str()),
        ValueType::Text if is_number(value) || value.starts_with('t') || value.starts_with('f') => {
            replace(value, value.as_str().to_owned().as_str())
        }
        ValueType::Text | ValueType::Key => Err("is no text".into()),
        ValueType::Uri => match value.string() {
            Some(uri) if has_scheme(&uri) => Ok(false),
            Some(uri) => Err(format!("is {:?}, which is no absolute URI", short(&uri))),
            None => Err("is no URI".into()),
        },
        ValueType::Word(words) => match value.string() {
            Some(word) if words.iter().any(|known| word == *known) => Ok(false),
            _ => Err(format!("is none of {}", words.join(", "))),
        },
        ValueType::Flag => flag(value),
        ValueType::Number | ValueType::Share | ValueType::Whole => number(value, value_type),
        ValueType::Id if text || is_whole(value) => Ok(false),
        ValueType::Id => Err("is neither a text nor a whole number".into()),
        ValueType::Free if value.starts_with('{') => Ok(false),
        ValueType::Free if is_empty_array(value) => replace(value, Raw::literal("{}")),
        ValueType::Free => Err("is no object".into()),
        ValueType::Texts(most) => texts(lost, value, most),
        ValueType::Words(words) => {
            let elements = value.array().map_err(|_| "is no array")?;
            let known = |raw: &Raw| raw.string().is_some_and(|word| words.iter().any(|w| word == *w));
            let kept: Vec<Raw> = elements.iter().filter(|word| known(word)).cloned().collect();
            if kept.len() == elements.len() { Ok(false) } else { replace(value, Raw::list(&kept)) }
        }
        ValueType::Schema | ValueType::Form => schema(lost, value, value_type),
        ValueType::AnySchema if value.starts_with('{') => within_schema(lost, value, false),
        ValueType::AnySchema => Err("is no JSON Schema that is an object".into()),
    }
}

/// Returns whether a URI is absolute: it has a scheme before its first colon.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

fn flag(value: &mut Raw) -> Result<bool, String> {
    let said = value.string().map(|text| text.to_ascii_lowercase());
    match said.as_deref().unwrap_or(value.as_str()) {
        "true" | "false" if said.is_none() => Ok(false),
        "true" | "1" => replace(value, Raw::literal("true")),
        "false" | "0" => replace(value, Raw::literal("false")),
        _ => Err("is neither true nor false".into()),
    }
}

fn number(value: &mut Raw, value_type: ValueType) -> Result<bool, String> {
    let in_text = number_in(value);
    let number = in_text.as_ref().unwrap_or(value);
    let fits = match value_type {
        ValueType::Whole => is_whole(number),
        ValueType::Share => {
            is_number(number) && number.as_str().parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n))
        }
        _ => is_number(number),
    };
    match (fits, in_text) {
        (true, Some(number)) => replace(value, number),
        (true, None) => Ok(false),
        (false, _) if value_type == ValueType::Share => Err("is no number from 0 to 1".into()),
        (false, _) if value_type == ValueType::Whole => Err("is no whole number".into()),
        (false, _) => Err("is no number".into()),
    }
}

fn texts(lost: &mut Lost, value: &mut Raw, most: usize) -> Result<bool, String> {
    if value.starts_with('"') {
        return replace(value, Raw::list(std::slice::from_ref(value)));
    }
    let mut elements = value.array().map_err(|_| "is no array")?;
    let many = elements.len();
    let mut changed = many > most;
    if changed {
        note(lost, format!("is longer than {most}"));
        elements.truncate(most);
    }
    let mut kept = Vec::with_capacity(elements.len());
    for mut element in elements {
        match element.is_null() {
            true => changed = true,
            false => {
                changed |= leaf(lost, &mut element, ValueType::Text)?;
                kept.push(element);
            }
        }
    }
    if changed {
        *value = Raw::list(&kept);
    }
    Ok(changed)
}
