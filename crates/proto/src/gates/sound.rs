//! The gate inwards: is what an upstream sent what it has to be?
//!
//! The rows of [`spec::fields`] say what each value is. What has one meaning is put right, so that the other gate,
//! [`crate::gates::project`], finds what it expects: `null` is nothing, a schema of arguments is one of objects, a number in the
//! place of a text is its digits. What has no meaning is left out, and named; where nothing is left without it, the whole
//! is broken. What a row leaves free (the inside of schemas, arguments, structured content, `_meta`, `data`) is not looked
//! at, and what needs no change is not written anew.

mod leaf;
mod loose;
mod schema;

use spec::shape::{Field, Is, Kind, Opens};
use spec::{MethodRow, NoticeRow, Shape, fields};

use leaf::leaf;
use loose::{note, opened, short};

use crate::gates::project::text_block;
use crate::json::{Object, Raw};
use crate::model::input::InputRequest;

pub use loose::Lost;

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
pub fn question(ask: &mut InputRequest) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(&mut ask.params, ask.question.params())?;
    Ok(walk.lost)
}

/// Puts the params of a notification right. Says what was left out of them.
///
/// # Errors
/// Where they mean nothing, says why.
pub fn notice(params: &mut Object, row: &NoticeRow) -> Result<Lost, String> {
    let mut walk = Walk::default();
    walk.object(params, row.params)?;
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
        note(&mut self.lost, what);
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
            Opens::Nothing => leaf(&mut self.lost, value, field.is),
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
            *value = Raw::list(&kept);
        }
        Ok(changed)
    }

    fn blocks(&mut self, value: &mut Raw, kinds: &[Kind]) -> Result<bool, String> {
        let Ok(elements) = value.array() else {
            // One block, where an array of them is due.
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

/// A message with several blocks, where one may stand in each, as several messages.
fn parts(element: &Raw, shape: &Shape) -> Option<Vec<Raw>> {
    let field = shape.fields.iter().find(|field| matches!(field.opens, Opens::Content(_)))?;
    let object = element.object().ok()?;
    let blocks = object.get(field.name).filter(|content| content.starts_with('['))?.array().ok()?;
    Some(blocks.into_iter().map(|block| Raw::from(object.clone().with(field.name, block))).collect())
}
