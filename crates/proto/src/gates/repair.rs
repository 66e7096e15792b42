//! The gate for messages of servers: it corrects them, so that clients get valid messages.
//!
//! The rows of [`spec::fields`] say what each value has to be. A wrong value that has only one meaning is corrected, so
//! that the gate [`crate::gates::project`] finds what it expects: a field that is `null` is absent, a number where a
//! string has to be becomes its digits, and the schema of a tool's arguments becomes one of objects. A value without a
//! meaning is removed, and a note says what was removed. Where a required value has no meaning, the whole object is
//! refused. Values that rows do not describe (the inside of schemas, arguments, structured content, `_meta`, `data`) are
//! not read, and what needs no change keeps its text.

mod leaf;
mod loose;
mod schema;

use spec::shape::{Field, Holds, Kind, ValueType};
use spec::{MethodRow, NoticeRow, Shape, fields};

use leaf::leaf;
use loose::{note, opened, short};

use crate::gates::project::text_block;
use crate::json::{Object, Raw};
use crate::model::input::InputRequest;

pub use loose::Lost;

/// Corrects a result. Returns notes on what it removed.
///
/// # Errors
/// Where a required value has no meaning.
pub fn result(result: &mut Object, row: &MethodRow) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(result, row.result)?;
    Ok(walk.lost)
}

/// Corrects one entry of a list. Returns notes on what it removed.
///
/// # Errors
/// Where a required value has no meaning.
pub fn entry(value: &mut Raw, shape: &Shape) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.inner(value, shape)?;
    Ok(walk.lost)
}

/// Corrects a question. Returns notes on what it removed.
///
/// # Errors
/// Where a required value has no meaning, so that the question cannot be asked.
pub fn question(ask: &mut InputRequest) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(&mut ask.params, ask.question.params())?;
    Ok(walk.lost)
}

/// Corrects the params of a notification. Returns notes on what it removed.
///
/// # Errors
/// Where a required value has no meaning.
pub fn notice(params: &mut Object, row: &NoticeRow) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(params, row.params)?;
    Ok(walk.lost)
}

/// Returns the shape of the entries that a method lists.
pub fn entries(row: &MethodRow) -> Option<&'static Shape> {
    match row.result.field(row.lists?)?.holds {
        Holds::List(shape) => Some(shape),
        _ => None,
    }
}

#[derive(Default)]
struct Walk {
    lost: Lost,
}

impl Walk {
    fn note(&mut self, what: String) {
        note(&mut self.lost, what);
    }

    /// Does `work` at a place. The name of the place comes before every note and every error that the work makes.
    fn at<T>(&mut self, place: &str, work: impl FnOnce(&mut Walk) -> Result<T, String>) -> Result<T, String> {
        let before = self.lost.len();
        let done = work(self);
        for note in &mut self.lost[before..] {
            *note = format!("{place}{}{note}", joint(note));
        }
        done.map_err(|why| format!("{place}{}{why}", joint(&why)))
    }

    /// Corrects an object. Returns whether it changed anything.
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
                object
                    .set(field.name, default_of(field).ok_or_else(|| format!("{} is missing", field.name))?);
                changed = true;
            }
        }
        Ok(one_of(object, fields::one_of(shape))? | changed)
    }

    fn value(&mut self, value: &mut Raw, field: &Field) -> Result<bool, String> {
        match field.holds {
            Holds::Nothing => leaf(&mut self.lost, value, field.value_type),
            Holds::Object(shape) => self.inner(value, shape),
            Holds::List(shape) => self.list(value, shape, field.is_needed()),
            Holds::Map(shape) => {
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
            Holds::Content(kinds) => self.block(value, kinds),
            Holds::Contents(kinds) => self.blocks(value, kinds),
            Holds::ContentOrList(kinds) if value.starts_with('[') => self.blocks(value, kinds),
            Holds::ContentOrList(kinds) => self.block(value, kinds),
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

    /// Corrects a list. An element without a meaning is removed; where the list is `needed`, it is an error.
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
            *value = Raw::list(&kept);
        }
        Ok(changed)
    }

    fn blocks(&mut self, value: &mut Raw, kinds: &[Kind]) -> Result<bool, String> {
        let Ok(elements) = value.array() else {
            // One block, where an array of blocks has to be.
            self.block(value, kinds)?;
            *value = Raw::list(std::slice::from_ref(value));
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
            *value = Raw::list(&kept);
        }
        Ok(changed)
    }

    /// Corrects a block of content. A block that no client could read becomes a block of its text.
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
    // A note is a place that goes on, or a sentence about the place.
    if goes_on {
        ""
    } else if what.starts_with("is ") {
        " "
    } else {
        "."
    }
}

fn is_anything(field: &Field) -> bool {
    field.value_type == ValueType::Anything && matches!(field.holds, Holds::Nothing)
}

/// Returns the value of a required field that is missing, where only one value makes sense.
fn default_of(field: &Field) -> Option<Raw> {
    match (field.holds, field.value_type) {
        (Holds::Contents(_), _) => Some(Raw::literal("[]")),
        (_, ValueType::Schema) => Some(Raw::literal(r#"{"type":"object"}"#)),
        (_, ValueType::Form) => Some(Raw::literal(r#"{"type":"object","properties":{}}"#)),
        // The data of a log message may be anything.
        (Holds::Nothing, ValueType::Anything) => Some(Raw::literal("null")),
        _ => None,
    }
}

/// Keeps the first of several members of which an object must have exactly one.
fn one_of(object: &mut Object, names: &[&str]) -> Result<bool, String> {
    let Some(first) = names.iter().find(|name| object.get(name).is_some()) else {
        return if names.is_empty() { Ok(false) } else { Err(format!("{} is missing", names.join(" or "))) };
    };
    let others: Vec<_> = names.iter().filter(|name| *name != first && object.get(name).is_some()).collect();
    others.iter().for_each(|name| drop(object.take(name)));
    Ok(!others.is_empty())
}

/// Returns a message with several blocks as several messages, where a message may have only one block.
fn parts(element: &Raw, shape: &Shape) -> Option<Vec<Raw>> {
    let field = shape.fields.iter().find(|field| matches!(field.holds, Holds::Content(_)))?;
    let object = element.object().ok()?;
    let blocks = object.get(field.name).filter(|content| content.starts_with('['))?.array().ok()?;
    Some(blocks.into_iter().map(|block| Raw::from(object.clone().with(field.name, block))).collect())
}
