//! The gate for answers: it brings a message into the form that a peer of a revision knows.
//!
//! The rows of [`spec::fields`] say which fields a revision has. What no row names is passed on without being read. An
//! object is parsed only where rows say that it may have to change for the revision.

use bytestring::ByteString;
use spec::shape::{Field, Form, Holds, Kind};
use spec::{MethodRow, Question, Revision, Revisions, Rules, Shape, meta};

use crate::gates::form;
use crate::json::{Object, Raw};
use crate::model::input::InputRequest;
use crate::model::request::Request;
use crate::model::service::CacheHint;

/// Brings an object and the objects in it into the form of a revision. Returns whether it changed anything.
///
/// Fields that the revision does not have are removed.
pub fn object(object: &mut Object, shape: &Shape, revision: Revision) -> bool {
    let mut changed = false;
    let mut unsaid = Vec::new();
    object.retain(|name, value| {
        let Some(field) = shape.field(name) else { return true };
        let fits = |(narrow, form): (Revisions, Form)| !narrow.contains(revision) || has_form(value, form);
        if field.exists.contains(revision) && field.narrow.is_none_or(fits) {
            changed |= field.holds.concerns(revision) && below(value, field.holds, revision);
            return true;
        }
        unsaid.extend(field.said_in.map(|content| (content, value.clone())));
        changed = true;
        false
    });
    for (content, value) in unsaid {
        if object.get(content).is_some_and(is_empty_list) {
            object.set(content, Raw::list(&[text_block(value.as_str())]));
        }
    }
    for field in shape.fields.iter().filter(|f| f.exists.contains(revision)) {
        let other = field.stand_in.and_then(|other| object.get(other)).cloned();
        if let (Some(value), None) = (other, object.get(field.name)) {
            object.set(field.name, value);
            changed = true;
        }
    }
    changed
}

fn has_form(value: &Raw, form: Form) -> bool {
    match form {
        Form::Object => value.starts_with('{'),
        Form::ObjectSchema => value.object().is_ok_and(|s| s.string("type").as_deref() == Some("object")),
    }
}

fn is_empty_list(value: &Raw) -> bool {
    value.array().is_ok_and(|elements| elements.is_empty())
}

/// Brings what a field holds into the form of a revision that it concerns. Returns whether it changed anything.
fn below(value: &mut Raw, holds: Holds, revision: Revision) -> bool {
    match holds {
        Holds::Nothing => false,
        Holds::Object(shape) => one(value, shape, revision),
        Holds::List(shape) => {
            let split = !revision.rules().sampling_tools && split_messages(value, shape);
            each(value, |element| one(element, shape, revision)) || split
        }
        Holds::Map(shape) => {
            let Ok(mut map) = value.object() else { return false };
            let mut changed = false;
            map.retain(|_, element| {
                changed |= one(element, shape, revision);
                true
            });
            if changed {
                *value = map.into();
            }
            changed
        }
        Holds::Content(kinds) => content(value, kinds, revision),
        Holds::Contents(kinds) => contents(value, kinds, revision),
        Holds::ContentOrList(kinds) => match value.array() {
            Err(_) => content(value, kinds, revision),
            Ok(_) if revision.rules().sampling_tools => contents(value, kinds, revision),
            Ok(blocks) => {
                *value = joined(blocks);
                content(value, kinds, revision);
                true
            }
        },
    }
}

/// How many bytes a role may have to be repeated in each message. The roles of the protocol are shorter; a peer decides
/// how many messages there are.
const LONGEST_ROLE: usize = 32;

/// Makes one message for each block of a message, where the revision allows one block in a message.
fn split_messages(value: &mut Raw, shape: &Shape) -> bool {
    let several = |field: &&Field| matches!(field.holds, Holds::ContentOrList(_));
    let (Some(field), Ok(messages)) = (shape.fields.iter().find(several), value.array()) else {
        return false;
    };
    let mut split = Vec::with_capacity(messages.len());
    for message in &messages {
        let object = message.object().unwrap_or_default();
        let blocks = object.get(field.name).and_then(|content| content.array().ok()).unwrap_or_default();
        match &blocks[..] {
            [] => split.push(message.clone()),
            [first, others @ ..] => {
                // Only the first message keeps the other fields: a peer decides how many blocks there are.
                let who = object.get("role").filter(|role| role.as_str().len() <= LONGEST_ROLE).cloned();
                let bare = who.map_or_else(Object::new, |role| Object::new().with("role", role));
                split.push(Raw::from(object.with(field.name, first.clone())));
                split.extend(others.iter().map(|b| Raw::from(bare.clone().with(field.name, b.clone()))));
            }
        }
    }
    let changed = split.len() != messages.len();
    if changed {
        *value = Raw::list(&split);
    }
    changed
}

/// Makes one block of several, where the revision allows only one.
fn joined(blocks: Vec<Raw>) -> Raw {
    if let [only] = &blocks[..] {
        return only.clone();
    }
    let words = |block: &Raw| {
        let block = block.object().unwrap_or_default();
        let tag = block.string("type").unwrap_or_default();
        block.string("text").map_or_else(|| in_words(&tag, &block), |text| text.to_string())
    };
    text_block(&blocks.iter().map(words).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn text_block(text: &str) -> Raw {
    Object::new().with("type", "text").with("text", text).into()
}

fn one(value: &mut Raw, shape: &Shape, revision: Revision) -> bool {
    if !shape.concerns(revision) {
        return false;
    }
    let Ok(mut inner) = value.object() else { return false };
    let changed = object(&mut inner, shape, revision);
    if changed {
        *value = inner.into();
    }
    changed
}

fn each(value: &mut Raw, mut change: impl FnMut(&mut Raw) -> bool) -> bool {
    let Ok(mut elements) = value.array() else { return false };
    let mut changed = false;
    for element in &mut elements {
        changed |= change(element);
    }
    if changed {
        *value = Raw::list(&elements);
    }
    changed
}

fn contents(value: &mut Raw, kinds: &[Kind], revision: Revision) -> bool {
    each(value, |block| content(block, kinds, revision))
}

/// Brings a block of content into the form of a revision. A kind that the revision does not have becomes text; a kind
/// that no revision has is passed on.
fn content(block: &mut Raw, kinds: &[Kind], revision: Revision) -> bool {
    let Ok(mut inner) = block.object() else { return false };
    let Some(kind) = inner.string("type").and_then(|tag| kinds.iter().find(|kind| tag == kind.tag)) else {
        return false;
    };
    if !kind.exists.contains(revision) {
        *block = text_block(&in_words(kind.tag, &inner));
        return true;
    }
    let changed = kind.shape.concerns(revision) && object(&mut inner, kind.shape, revision);
    if changed {
        *block = inner.into();
    }
    changed
}

/// Describes a block in words, for a peer that does not know its kind.
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
        "tool_result" => {
            let said = block.get("content").filter(|content| !is_empty_list(content));
            let said = said.or_else(|| block.get("structuredContent"));
            format!("[tool result: {}]", said.map_or("[]", Raw::as_str))
        }
        _ => {
            let size = block.get("data").map_or(0, |data| data.as_str().len().saturating_sub(2) / 4 * 3);
            format!("[{tag} {}, about {size} bytes]", text("mimeType"))
        }
    }
}

/// What a server adds to a result: the members of its `_meta`, and the hint that no cache may keep it.
#[derive(Clone, Copy, Debug)]
pub struct ResultMeta<'a> {
    /// The server's `Implementation` object.
    pub identity: &'a Raw,
    /// Whether the result depends on answers of the client, so that no cache may keep it.
    pub depends_on_answers: bool,
    /// The id of the `subscriptions/listen` request that the result ends.
    pub subscription: Option<&'a Raw>,
}

/// Writes a complete result for a peer of a revision.
pub fn result(mut result: Object, row: &MethodRow, rules: &Rules, added: ResultMeta<'_>) -> Object {
    if row.result.concerns(rules.revision) {
        object(&mut result, row.result, rules.revision);
    }
    if !rules.self_describing_results {
        return result;
    }
    result.set_first("resultType", Raw::literal("\"complete\""));
    if row.cacheable {
        let unhinted = result.get("ttlMs").is_none() || result.get("cacheScope").is_none();
        if unhinted || added.depends_on_answers {
            hint(&mut result, CacheHint::default());
        }
    }
    add_meta(&mut result, added);
    result
}

/// Writes a result that asks a modern peer for input.
pub fn interim(questions: Option<Object>, state: Option<Raw>, added: ResultMeta<'_>) -> Object {
    let mut result = Object::new().with("resultType", "input_required");
    if let Some(questions) = questions {
        result.set("inputRequests", Raw::from(questions));
    }
    if let Some(state) = state {
        result.set("requestState", state);
    }
    add_meta(&mut result, added);
    result
}

/// Writes a cache hint into a result.
pub fn hint(result: &mut Object, hint: CacheHint) {
    let ttl = u64::try_from(hint.ttl.as_millis()).unwrap_or(u64::MAX);
    result.set("ttlMs", Raw::of(&ttl));
    result.set("cacheScope", if hint.public { "public" } else { "private" });
}

fn add_meta(result: &mut Object, added: ResultMeta<'_>) {
    let mut inner = result.get(meta::META).and_then(|raw| raw.object().ok()).unwrap_or_default();
    inner.set(ByteString::from_static(meta::SERVER_INFO), added.identity.clone());
    if let Some(id) = added.subscription {
        inner.set(ByteString::from_static(meta::SUBSCRIPTION_ID), id.clone());
    }
    result.set(ByteString::from_static(meta::META), Raw::from(inner));
}

/// Writes the params of a request for a server of a revision.
pub fn params(request: &Request, revision: Revision) -> Object {
    let mut params = Object::clone(&request.params);
    let shape = request.method.row().params;
    if shape.concerns(revision) {
        object(&mut params, shape, revision);
    }
    params
}

/// Writes the params of a question for a client of a revision.
pub fn question(ask: &InputRequest, rules: &Rules) -> Object {
    let mut params = ask.params.clone();
    let shape = ask.question.params();
    if shape.concerns(rules.revision) {
        object(&mut params, shape, rules.revision);
    }
    if ask.question == Question::Elicit && !rules.rich_choices {
        form::simplify(&mut params);
    }
    params
}

/// Returns the answer of a client, whose revision may have needed another form of the question, as an answer to the
/// original question.
pub fn answer(ask: &InputRequest, result: Raw, rules: &Rules) -> Raw {
    match ask.question {
        Question::Elicit if !rules.rich_choices => form::restore(&ask.params, result),
        _ => result,
    }
}

/// An answer to a question, in the form of the upstream that asked it.
pub fn reply(question: Question, answer: Raw, rules: &Rules) -> Raw {
    let Ok(mut inner) = answer.object() else { return answer };
    match object(&mut inner, question.answer(), rules.revision) {
        true => inner.into(),
        false => answer,
    }
}

/// An entry of `inputResponses`, in the form of the upstream that it goes to. It has no tag: as in the schema's union,
/// the members that each kind must have tell which question it answers.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/schema#inputresponse>
pub fn input_response(answer: Raw, rules: &Rules) -> Raw {
    let Ok(inner) = answer.object() else { return answer };
    let answers = |question: &Question| {
        let mut fields = question.answer().fields.iter().filter(|f| f.required.contains(rules.revision));
        fields.all(|field| inner.get(field.name).is_some())
    };
    match Question::ALL.into_iter().find(|q| q.exists().contains(rules.revision) && answers(q)) {
        Some(question) => reply(question, answer, rules),
        None => answer,
    }
}

/// Writes the questions of a result that asks a modern peer for input.
pub fn questions(questions: &[(ByteString, InputRequest)], rules: &Rules) -> Object {
    let request = |ask: &InputRequest| {
        Raw::from(
            Object::new().with("method", ask.question.wire()).with("params", Raw::from(question(ask, rules))),
        )
    };
    questions.iter().map(|(key, ask)| (key.clone(), request(ask))).collect()
}
