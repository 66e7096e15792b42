//! The second gate: what of this may that peer see, and what must it see?
//!
//! Rows of [`spec::fields`] name what a revision has; what no row names passes unread. Only paths that rows
//! name are opened, and those only for revisions that they concern.

use bytestring::ByteString;
use spec::shape::{Kind, Opens};
use spec::{MethodRow, Revision, Rules, Shape, Structured, meta};

use crate::raw::{Object, Raw};
use crate::service::{Ask, CacheHint};

/// Takes out of an object what the revision lacks, at every depth that rows speak of.
pub fn object(object: &mut Object, shape: &Shape, revision: Revision) {
    object.retain(|name, value| match shape.field(name) {
        None => true,
        Some(field) if !field.exists.contains(revision) => false,
        Some(field) => {
            below(value, field.opens, revision);
            true
        }
    });
}

fn below(value: &mut Raw, opens: Opens, revision: Revision) {
    match opens {
        Opens::Nothing => {}
        Opens::Object(shape) => one(value, shape, revision),
        Opens::List(shape) => each(value, shape.concerns(revision), |element| one(element, shape, revision)),
        Opens::Map(shape) => {
            if let (true, Ok(mut map)) = (shape.concerns(revision), value.object()) {
                map.retain(|_, element| {
                    one(element, shape, revision);
                    true
                });
                *value = map.into();
            }
        }
        Opens::Content(kinds) => content(value, kinds, revision),
        Opens::Contents(kinds) => {
            each(value, kinds_concern(kinds, revision), |block| content(block, kinds, revision));
        }
        Opens::ContentOrList(kinds) => {
            let blocks = value.array().ok();
            match blocks {
                None => content(value, kinds, revision),
                // Where only one block may stand, the first one is the message.
                Some(blocks) if !revision.rules().sampling_tools => {
                    *value =
                        blocks.into_iter().next().unwrap_or(Raw::literal(r#"{"type":"text","text":""}"#));
                    content(value, kinds, revision);
                }
                Some(_) => {
                    each(value, kinds_concern(kinds, revision), |block| content(block, kinds, revision))
                }
            }
        }
    }
}

fn kinds_concern(kinds: &[Kind], revision: Revision) -> bool {
    kinds.iter().any(|kind| !kind.exists.contains(revision) || kind.shape.concerns(revision))
}

fn one(value: &mut Raw, shape: &Shape, revision: Revision) {
    if !shape.concerns(revision) {
        return;
    }
    if let Ok(mut inner) = value.object() {
        object(&mut inner, shape, revision);
        *value = inner.into();
    }
}

fn each(value: &mut Raw, concerned: bool, mut change: impl FnMut(&mut Raw)) {
    if !concerned {
        return;
    }
    if let Ok(mut elements) = value.array() {
        elements.iter_mut().for_each(&mut change);
        *value = list(&elements);
    }
}

/// An array of values.
pub fn list(elements: &[Raw]) -> Raw {
    let mut text = String::with_capacity(elements.iter().map(|e| e.as_str().len() + 1).sum::<usize>() + 2);
    text.push('[');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(element.as_str());
    }
    text.push(']');
    Raw::trusted(text.into())
}

/// A block of content, in the nearest form that the revision has. An unknown kind passes.
fn content(block: &mut Raw, kinds: &[Kind], revision: Revision) {
    let Ok(mut inner) = block.object() else { return };
    let Some(kind) = inner.string("type").and_then(|tag| kinds.iter().find(|kind| tag == kind.tag)) else {
        return;
    };
    if kind.exists.contains(revision) {
        if kind.shape.concerns(revision) {
            object(&mut inner, kind.shape, revision);
            *block = inner.into();
        }
    } else {
        let text = in_words(kind.tag, &inner);
        *block = Object::new().with("type", "text").with("text", &*text).into();
    }
}

/// What a block of a kind that the peer does not know says, in words.
fn in_words(tag: &str, block: &Object) -> String {
    let text = |name: &str| block.string(name).unwrap_or_default();
    match tag {
        "resource_link" => match (text("title"), text("name")) {
            (title, name) if title.is_empty() => format!("[resource {name}: {}]", text("uri")),
            (title, _) => format!("[resource {title}: {}]", text("uri")),
        },
        "tool_use" => {
            format!("[tool call {}: {}]", text("name"), block.get("input").map_or("{}", Raw::as_str))
        }
        "tool_result" => format!("[tool result: {}]", block.get("content").map_or("[]", Raw::as_str)),
        _ => {
            let size = block.get("data").map_or(0, |data| data.as_str().len().saturating_sub(2) / 4 * 3);
            format!("[{tag} {}, about {size} bytes]", text("mimeType"))
        }
    }
}

/// What is known of a result besides its members.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// The server's `Implementation` object.
    pub identity: &'a Object,
    /// The result depends on answers that a cache cannot know.
    pub depends_on_answers: bool,
    /// The listen that the result ends.
    pub subscription: Option<&'a Raw>,
}

/// A complete result as a peer of the revision must see it.
pub fn result(mut result: Object, row: &MethodRow, rules: &Rules, stamp: Stamp<'_>) -> Object {
    if !rules.self_describing_results {
        structured(&mut result, row, rules);
        object(&mut result, row.result, rules.revision);
        return result;
    }
    if row.result.concerns(rules.revision) {
        object(&mut result, row.result, rules.revision);
    }
    result.set_first("resultType", Raw::literal("\"complete\""));
    if row.cacheable {
        let unhinted = result.get("ttlMs").is_none() || result.get("cacheScope").is_none();
        if unhinted || stamp.depends_on_answers {
            hint(&mut result, CacheHint::default());
        }
    }
    stamp_meta(&mut result, stamp);
    result
}

/// An interim result as a modern peer sees it.
pub fn interim(questions: Option<Object>, state: Option<Raw>, stamp: Stamp<'_>) -> Object {
    let mut result = Object::new().with("resultType", "input_required");
    if let Some(questions) = questions {
        result.set("inputRequests", Raw::from(questions));
    }
    if let Some(state) = state {
        result.set("requestState", state);
    }
    stamp_meta(&mut result, stamp);
    result
}

/// Writes a cache hint.
pub fn hint(result: &mut Object, hint: CacheHint) {
    let ttl = u64::try_from(hint.ttl.as_millis()).unwrap_or(u64::MAX);
    result.set("ttlMs", Raw::of(&ttl));
    result.set("cacheScope", if hint.public { "public" } else { "private" });
}

fn stamp_meta(result: &mut Object, stamp: Stamp<'_>) {
    let mut inner = result.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
    inner.set(meta::SERVER_INFO, Raw::from(stamp.identity.clone()));
    if let Some(id) = stamp.subscription {
        inner.set(meta::SUBSCRIPTION_ID, id.clone());
    }
    result.set(meta::META, Raw::from(inner));
}

/// Leaves out structured content and output schemas in forms that the revision does not have. The text that
/// goes with structured content stays.
fn structured(result: &mut Object, row: &MethodRow, rules: &Rules) {
    if rules.structured != Structured::Object {
        return;
    }
    if result.get("structuredContent").is_some_and(|content| !content.starts_with('{')) {
        result.take("structuredContent");
    }
    if row.lists == Some("tools")
        && let Some(tools) = result.get("tools").and_then(|tools| tools.array().ok())
    {
        let fits =
            |schema: &Raw| schema.object().is_ok_and(|s| s.string("type").as_deref() == Some("object"));
        let mut tools = tools;
        for tool in &mut tools {
            if let Ok(mut inner) = tool.object()
                && inner.get("outputSchema").is_some_and(|schema| !fits(schema))
            {
                inner.take("outputSchema");
                *tool = inner.into();
            }
        }
        result.set("tools", list(&tools));
    }
}

/// The params of a question in the form of a revision.
pub fn question(ask: &Ask, rules: &Rules) -> Object {
    let mut params = ask.params.clone();
    let shape = ask.question.params();
    if shape.concerns(rules.revision) {
        object(&mut params, shape, rules.revision);
    }
    params
}

/// A map of questions as a modern peer sees it.
pub fn questions(questions: &[(ByteString, Ask)], rules: &Rules) -> Object {
    let request = |ask: &Ask| {
        Raw::from(
            Object::new().with("method", ask.question.wire()).with("params", Raw::from(question(ask, rules))),
        )
    };
    questions.iter().map(|(key, ask)| (key.clone(), request(ask))).collect()
}
