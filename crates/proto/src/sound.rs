//! The gate inwards: is what an upstream sent what it has to be?
//!
//! The rows of [`spec::fields`] say what each value is. What has one meaning is put right, so that the other gate,
//! [`crate::project`], finds what it expects: `null` is nothing, a schema of arguments is one of objects, a number in the
//! place of a text is its digits. What has no meaning is left out, and named; where nothing is left without it, the whole
//! is broken. What a row leaves free (the inside of schemas, arguments, structured content, `_meta`, `data`) is not looked
//! at, and what needs no change is not written anew.

use spec::shape::{Field, Is, Kind, Opens};
use spec::{MethodRow, Shape, fields};

use crate::project::{list, text_block};
use crate::raw::{Object, Raw};
use crate::service::Ask;

/// How much is said of one message: who reads it wants to know what is wrong, not all of it.
const NOTES: usize = 8;
/// How long a note may be, in characters.
const NOTE: usize = 200;

/// What was left out of something, each with its place.
pub type Lost = Vec<String>;

/// Puts a result right. Says what was left out of it.
///
/// # Errors
/// Where it means nothing, says why.
pub fn result(result: &mut Object, row: &MethodRow) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(result, row.result)?;
    Ok(walk.lost)
}

/// Puts one entry of a list right. Says what was left out of it.
///
/// # Errors
/// Where it means nothing, says why.
pub fn entry(value: &mut Raw, shape: &Shape) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.inner(value, shape)?;
    Ok(walk.lost)
}

/// Puts a question right.
///
/// # Errors
/// Where it cannot be asked, says why.
pub fn question(ask: &mut Ask) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(&mut ask.params, ask.question.params())?;
    Ok(walk.lost)
}

/// The shape of the entries of a list.
pub fn entries(row: &MethodRow) -> Option<&'static Shape> {
    match row.result.field(row.lists?)?.opens {
        Opens::List(shape) => Some(shape),
        _ => None,
    }
}

#[derive(Default)]
struct Walk {
    lost: Lost,
}

impl Walk {
    fn note(&mut self, what: String) {
        if self.lost.len() < NOTES {
            self.lost.push(what.chars().take(NOTE).collect());
        }
    }

    /// Does something below a place, whose name goes before all that is said there.
    fn at<T>(&mut self, place: &str, work: impl FnOnce(&mut Walk) -> Result<T, String>) -> Result<T, String> {
        let before = self.lost.len();
        let done = work(self);
        for note in &mut self.lost[before..] {
            *note = format!("{place}{}{note}", joint(note));
        }
        done.map_err(|why| format!("{place}{}{why}", joint(&why)))
    }

    /// Says whether anything was changed.
    fn object(&mut self, object: &mut Object, shape: &Shape) -> Result<bool, String> {
        let (mut changed, mut broken) = (false, None);
        object.retain(|name, value| {
            let known = shape.field(name).filter(|field| field.exists != spec::Revisions::NONE);
            let (Some(field), None) = (known, &broken) else { return true };
            if value.is_null() && !is_anything(field) {
                changed = true;
                return false;
            }
            match self.at(name, |walk| walk.value(value, field)) {
                Ok(mended) => changed |= mended,
                Err(why) if field.is_needed() => broken = Some(why),
                Err(why) => {
                    self.note(why);
                    changed = true;
                    return false;
                }
            }
            true
        });
        if let Some(why) = broken {
            return Err(why);
        }
        for field in shape.fields.iter().filter(|field| field.is_needed()) {
            if object.get(field.name).is_none() {
                object.set(field.name, nothing(field).ok_or_else(|| format!("{} is missing", field.name))?);
                changed = true;
            }
        }
        Ok(one_of(object, fields::one_of(shape))? | changed)
    }

    fn value(&mut self, value: &mut Raw, field: &Field) -> Result<bool, String> {
        match field.opens {
            Opens::Nothing => leaf(self, value, field.is),
            Opens::Object(shape) => self.inner(value, shape),
            Opens::List(shape) => self.list(value, shape, field.is_needed()),
            Opens::Map(shape) => {
                let mut map = value.object().map_err(|_| "is no object")?;
                let (mut changed, mut broken) = (false, None);
                map.retain(|name, element| {
                    match self.at(name, |walk| walk.inner(element, shape)) {
                        Ok(mended) => changed |= mended,
                        Err(why) => broken = Some(why),
                    }
                    true
                });
                if changed {
                    *value = map.into();
                }
                broken.map_or(Ok(changed), Err)
            }
            Opens::Content(kinds) => self.block(value, kinds),
            Opens::Contents(kinds) => self.blocks(value, kinds),
            Opens::ContentOrList(kinds) if value.starts_with('[') => self.blocks(value, kinds),
            Opens::ContentOrList(kinds) => self.block(value, kinds),
        }
    }

    fn inner(&mut self, value: &mut Raw, shape: &Shape) -> Result<bool, String> {
        let (mut inner, empty) = opened(value).ok_or("is no object")?;
        let changed = self.object(&mut inner, shape)? | empty;
        if changed {
            *value = inner.into();
        }
        Ok(changed)
    }

    /// A list whose broken elements are left out, or break all of it where it is `needed`.
    fn list(&mut self, value: &mut Raw, shape: &Shape, needed: bool) -> Result<bool, String> {
        let elements = value.array().map_err(|_| "is no array")?;
        let mut kept = Vec::with_capacity(elements.len());
        let mut changed = false;
        for (at, element) in elements.into_iter().enumerate() {
            if element.is_null() {
                changed = true;
                continue;
            }
            let several = parts(&element, shape);
            changed |= several.is_some();
            for mut element in several.unwrap_or_else(|| vec![element]) {
                match self.at(&format!("[{at}]"), |walk| walk.inner(&mut element, shape)) {
                    Ok(mended) => changed |= mended,
                    Err(why) if needed => return Err(why),
                    Err(why) => {
                        self.note(why);
                        changed = true;
                        continue;
                    }
                }
                kept.push(element);
            }
        }
        if changed {
            *value = list(&kept);
        }
        Ok(changed)
    }

    fn blocks(&mut self, value: &mut Raw, kinds: &[Kind]) -> Result<bool, String> {
        let Ok(elements) = value.array() else {
            // One block, where an array of them is due.
            self.block(value, kinds)?;
            *value = list(std::slice::from_ref(value));
            return Ok(true);
        };
        let mut kept = Vec::with_capacity(elements.len());
        let mut changed = false;
        for (at, mut element) in elements.into_iter().enumerate() {
            match element.is_null() {
                true => changed = true,
                false => {
                    changed |= self.at(&format!("[{at}]"), |walk| walk.block(&mut element, kinds))?;
                    kept.push(element);
                }
            }
        }
        if changed {
            *value = list(&kept);
        }
        Ok(changed)
    }

    /// A block of content. One that no client could read is shown as the text that it is.
    fn block(&mut self, value: &mut Raw, kinds: &[Kind]) -> Result<bool, String> {
        if let Some(text) = value.string() {
            *value = text_block(&text);
            return Ok(true);
        }
        let why = match value.object() {
            Err(_) => "is no block of content".to_owned(),
            Ok(mut inner) => {
                let untyped = inner.get("type").is_none() && inner.string("text").is_some();
                if untyped {
                    inner.set_first("type", Raw::literal("\"text\""));
                }
                let tag = inner.string("type").unwrap_or_default();
                match kinds.iter().find(|kind| tag == kind.tag).map(|k| self.object(&mut inner, k.shape)) {
                    None => format!("is of the kind {:?}, which no client knows", short(&tag)),
                    Some(Err(why)) => format!("is no block of the kind {tag:?}: {why}"),
                    Some(Ok(changed)) => {
                        if changed || untyped {
                            *value = inner.into();
                        }
                        return Ok(changed || untyped);
                    }
                }
            }
        };
        self.note(why);
        *value = text_block(value.as_str());
        Ok(true)
    }
}

fn joint(what: &str) -> &'static str {
    let goes_on = what.starts_with('[');
    // A place ends with its name; a sentence about it has a space before it.
    if goes_on {
        ""
    } else if what.starts_with("is ") {
        " "
    } else {
        "."
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn is_anything(field: &Field) -> bool {
    field.is == Is::Anything && matches!(field.opens, Opens::Nothing)
}

/// What stands for a needed field that is missing, where there is no doubt.
fn nothing(field: &Field) -> Option<Raw> {
    match (field.opens, field.is) {
        (Opens::Contents(_), _) => Some(Raw::literal("[]")),
        (_, Is::Schema) => Some(Raw::literal(r#"{"type":"object"}"#)),
        (_, Is::Form) => Some(Raw::literal(r#"{"type":"object","properties":{}}"#)),
        // A log message may say anything.
        (Opens::Nothing, Is::Anything) => Some(Raw::literal("null")),
        _ => None,
    }
}

/// Keeps the first of members of which there has to be exactly one.
fn one_of(object: &mut Object, names: &[&str]) -> Result<bool, String> {
    let Some(first) = names.iter().find(|name| object.get(name).is_some()) else {
        return if names.is_empty() { Ok(false) } else { Err(format!("{} is missing", names.join(" or "))) };
    };
    let others: Vec<_> = names.iter().filter(|name| *name != first && object.get(name).is_some()).collect();
    others.iter().for_each(|name| drop(object.take(name)));
    Ok(!others.is_empty())
}

/// An object, and whether it was written as the empty array that some languages have for an empty map.
fn opened(value: &Raw) -> Option<(Object, bool)> {
    match value.object() {
        Ok(object) => Some((object, false)),
        Err(_) => is_empty_array(value).then(|| (Object::new(), true)),
    }
}

fn is_empty_array(value: &Raw) -> bool {
    value.starts_with('[') && value.array().is_ok_and(|elements| elements.is_empty())
}

/// A message with several blocks, where one may stand in each, as several messages.
fn parts(element: &Raw, shape: &Shape) -> Option<Vec<Raw>> {
    let field = shape.fields.iter().find(|field| matches!(field.opens, Opens::Content(_)))?;
    let object = element.object().ok()?;
    let blocks = object.get(field.name).filter(|content| content.starts_with('['))?.array().ok()?;
    Some(blocks.into_iter().map(|block| Raw::from(object.clone().with(field.name, block))).collect())
}

fn replace(value: &mut Raw, by: impl Into<Raw>) -> Result<bool, String> {
    *value = by.into();
    Ok(true)
}

fn is_number(value: &Raw) -> bool {
    value.starts_with('-') || value.as_str().starts_with(|c: char| c.is_ascii_digit())
}

fn is_whole(value: &Raw) -> bool {
    let text = value.as_str();
    is_number(value)
        && (!text.contains(['.', 'e', 'E']) || text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0))
}

/// A number that stands in a text.
fn number_in(value: &Raw) -> Option<Raw> {
    let text = value.string()?;
    let number = Raw::parse(text.trim().to_owned().into(), 1).ok()?;
    is_number(&number).then_some(number)
}

fn leaf(walk: &mut Walk, value: &mut Raw, is: Is) -> Result<bool, String> {
    let text = value.starts_with('"');
    match is {
        Is::Anything => Ok(false),
        Is::Text | Is::Key | Is::Said if text => Ok(false),
        Is::Said => replace(value, value.as_str().to_owned().as_str()),
        Is::Text if is_number(value) || value.starts_with('t') || value.starts_with('f') => {
            replace(value, value.as_str().to_owned().as_str())
        }
        Is::Text | Is::Key => Err("is no text".into()),
        Is::Uri => match value.string() {
            Some(uri) if has_scheme(&uri) => Ok(false),
            Some(uri) => Err(format!("is {:?}, which is no absolute URI", short(&uri))),
            None => Err("is no URI".into()),
        },
        Is::Word(words) => match value.string() {
            Some(word) if words.iter().any(|known| word == *known) => Ok(false),
            _ => Err(format!("is none of {}", words.join(", "))),
        },
        Is::Flag => flag(value),
        Is::Number | Is::Share | Is::Whole => number(value, is),
        Is::Id if text || is_whole(value) => Ok(false),
        Is::Id => Err("is neither a text nor a whole number".into()),
        Is::Free if value.starts_with('{') => Ok(false),
        Is::Free if is_empty_array(value) => replace(value, Raw::literal("{}")),
        Is::Free => Err("is no object".into()),
        Is::Texts(most) => texts(walk, value, most),
        Is::Words(words) => {
            let elements = value.array().map_err(|_| "is no array")?;
            let known = |raw: &Raw| raw.string().is_some_and(|word| words.iter().any(|w| word == *w));
            let kept: Vec<Raw> = elements.iter().filter(|word| known(word)).cloned().collect();
            if kept.len() == elements.len() { Ok(false) } else { replace(value, list(&kept)) }
        }
        Is::Schema | Is::Form => schema(walk, value, is),
        Is::AnySchema if value.starts_with('{') => within_schema(walk, value, false),
        Is::AnySchema => Err("is no JSON Schema that is an object".into()),
    }
}

/// A URI has a scheme before its first colon.
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

fn number(value: &mut Raw, is: Is) -> Result<bool, String> {
    let in_text = number_in(value);
    let number = in_text.as_ref().unwrap_or(value);
    let fits = match is {
        Is::Whole => is_whole(number),
        Is::Share => {
            is_number(number) && number.as_str().parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n))
        }
        _ => is_number(number),
    };
    match (fits, in_text) {
        (true, Some(number)) => replace(value, number),
        (true, None) => Ok(false),
        (false, _) if is == Is::Share => Err("is no number from 0 to 1".into()),
        (false, _) if is == Is::Whole => Err("is no whole number".into()),
        (false, _) => Err("is no number".into()),
    }
}

fn texts(walk: &mut Walk, value: &mut Raw, most: usize) -> Result<bool, String> {
    if value.starts_with('"') {
        return replace(value, list(std::slice::from_ref(value)));
    }
    let mut elements = value.array().map_err(|_| "is no array")?;
    let many = elements.len();
    let mut changed = many > most;
    if changed {
        walk.note(format!("is longer than {most}"));
        elements.truncate(most);
    }
    let mut kept = Vec::with_capacity(elements.len());
    for mut element in elements {
        match element.is_null() {
            true => changed = true,
            false => {
                changed |= leaf(walk, &mut element, Is::Text)?;
                kept.push(element);
            }
        }
    }
    if changed {
        *value = list(&kept);
    }
    Ok(changed)
}

/// A JSON Schema of objects: it says so by its type.
fn schema(walk: &mut Walk, value: &mut Raw, is: Is) -> Result<bool, String> {
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
                let kind: String = kind.as_str().chars().take(40).collect();
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
    Ok(within_schema(walk, value, is == Is::Form)? | changed)
}

/// What older revisions say of the members of a schema: its properties are objects, what it requires are names. What lies
/// deeper is free.
fn within_schema(walk: &mut Walk, value: &mut Raw, listed: bool) -> Result<bool, String> {
    let mut object = value.object().map_err(|_| "is no JSON Schema that is an object")?;
    let mut changed = false;
    object.retain(|name, member| {
        let fits = match name {
            "properties" => properties(walk, member),
            "required" => match member.array() {
                Ok(names) => {
                    let kept: Vec<Raw> = names.iter().filter(|name| name.starts_with('"')).cloned().collect();
                    if kept.len() < names.len() {
                        *member = list(&kept);
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
                walk.note(format!("{name} {why}"));
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

/// The properties of a schema: `true` and `false` are schemas too, which older revisions do not have.
fn properties(walk: &mut Walk, value: &mut Raw) -> Result<bool, &'static str> {
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
                walk.note(format!("properties.{name} is no JSON Schema"));
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
