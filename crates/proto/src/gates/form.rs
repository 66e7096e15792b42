//! Forms for clients whose revision has neither choices of several values nor choices with titles
//! (<https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation#requested-schema>).

use bytestring::ByteString;

use crate::json::{Object, Raw};

/// Rewrites the fields of a requested schema that such a client does not know.
///
/// A choice with titles becomes one list of values and one of titles. A choice of several values becomes a text field.
pub(crate) fn simplify(params: &mut Object) {
    let Some(mut schema) = params.get("requestedSchema").and_then(|raw| raw.object().ok()) else { return };
    let Some(mut fields) = schema.get("properties").and_then(|raw| raw.object().ok()) else { return };
    let mut changed = false;
    fields.retain(|_, field| {
        if let Some(simple) = field.object().ok().and_then(simplified) {
            *field = simple.into();
            changed = true;
        }
        true
    });
    if changed {
        schema.set("properties", Raw::from(fields));
        params.set("requestedSchema", Raw::from(schema));
    }
}

fn simplified(mut field: Object) -> Option<Object> {
    if is_of_several(&field) {
        let items = field.take("items").and_then(|items| items.object().ok()).unwrap_or_default();
        let titled = items.get("anyOf").map(titled).unwrap_or_default();
        let values = match items.get("enum").and_then(|values| values.array().ok()) {
            Some(values) => values.iter().filter_map(Raw::string).collect(),
            None => titled.iter().map(|(value, _)| value.string().unwrap_or_default()).collect::<Vec<_>>(),
        };
        let hint = format!("Any of these, with commas between them: {}", values.join(", "));
        let description =
            field.string("description").map_or_else(|| hint.clone(), |own| format!("{own}\n{hint}"));
        let text = Object::new().with("type", "string").with("description", description.as_str());
        return Some(match field.take("title") {
            Some(title) => text.with("title", title),
            None => text,
        });
    }
    let choices = titled(&field.take("oneOf")?);
    let (values, titles): (Vec<Raw>, Vec<Raw>) = choices.into_iter().unzip();
    Some(field.with("enum", Raw::list(&values)).with("enumNames", Raw::list(&titles)))
}

fn is_of_several(field: &Object) -> bool {
    field.string("type").is_some_and(|kind| kind == "array")
}

/// Returns the values of choices, each with its title.
fn titled(choices: &Raw) -> Vec<(Raw, Raw)> {
    let pair = |choice: &Raw| {
        let choice = choice.object().ok()?;
        let value = choice.get("const")?.clone();
        Some((value.clone(), choice.get("title").cloned().unwrap_or(value)))
    };
    choices.array().unwrap_or_default().iter().filter_map(pair).collect()
}

/// Returns the answer to a rewritten form as an answer to the original form.
pub(crate) fn restore(asked: &Object, answer: Raw) -> Raw {
    let part = |object: &Object, name: &str| object.get(name).and_then(|raw| raw.object().ok());
    let fields = part(asked, "requestedSchema").and_then(|schema| part(&schema, "properties"));
    let (Some(fields), Ok(mut result)) = (fields, answer.object()) else { return answer };
    let Some(mut content) = part(&result, "content") else { return answer };
    let mut changed = false;
    // A client decides how many members are looked up.
    let fields = fields.by_name();
    content.retain(|name, value| {
        let field = fields.get(name).and_then(|field| field.object().ok());
        let several = field.is_some_and(|field| is_of_several(&field));
        if let (true, Some(text)) = (several, value.string()) {
            let values = text.split(',').map(str::trim).filter(|value| !value.is_empty());
            *value = Raw::list(&values.map(Raw::from).collect::<Vec<_>>());
            changed = true;
        }
        true
    });
    if !changed {
        return answer;
    }
    result.set(ByteString::from_static("content"), Raw::from(content));
    result.into()
}
