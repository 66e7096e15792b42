//! The closed schemas reject every field and every kind of content that a revision does not have. Otherwise the referee
//! would prove nothing.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proto::project::{self, ResultMeta};
use proto::{InputRequest, Raw};
use serde_json::{Value, json};
use spec::shape::{Holds, Kind, Shape};
use spec::{Direction, Era, Method, MethodRow, Notice, Question, Revision, Revisions, fields, meta};
use testkit::referee::{judge, judge_type};

use crate::object;
use crate::referee::{askable, for_all, gives_several};
use crate::values::{Places, Tape, definition, of_params, of_type};

/// A row that a revision does not have: the name of the shape, the field or kind, and the revision.
type Lack = (&'static str, String, &'static str);

/// The place of a value in a message.
#[derive(Clone, Copy, Debug)]
enum Root {
    Params(&'static MethodRow),
    Result(&'static MethodRow),
    Notice(Notice),
    Question(Question),
    Answer(Question),
    /// What a client says about itself.
    Client,
    /// `_meta` of a client's request.
    RequestMeta,
}

fn roots() -> Vec<Root> {
    let mut roots: Vec<Root> = Method::rows().iter().map(Root::Result).collect();
    roots.extend(Method::rows().iter().map(Root::Params));
    roots.extend(Notice::rows().iter().map(|row| Root::Notice(row.notice)));
    roots.extend(Question::ALL.map(Root::Question));
    roots.extend(Question::ALL.map(Root::Answer));
    roots.extend([Root::Client, Root::RequestMeta]);
    roots
}

impl Root {
    fn shape(self) -> &'static Shape {
        match self {
            Root::Params(row) => row.params,
            Root::Result(row) => row.result,
            Root::Notice(notice) => notice.row().params,
            Root::Question(question) => question.params(),
            Root::Answer(question) => question.answer(),
            Root::Client => &fields::CLIENT_CAPABILITIES,
            Root::RequestMeta => &fields::REQUEST_META,
        }
    }

    fn places(self) -> Places {
        match self {
            Root::Params(row) => of_params(definition(row.wire)),
            Root::Notice(notice) => of_params(definition(notice.wire())),
            Root::Question(question) => of_params(definition(question.wire())),
            _ => of_type(self.shape().name),
        }
    }

    fn exists(self, revision: Revision) -> bool {
        match self {
            Root::Params(row) | Root::Result(row) => row.method.exists(revision),
            Root::Notice(notice) => notice.row().exists.contains(revision),
            Root::Question(question) | Root::Answer(question) => question.exists().contains(revision),
            Root::Client => Method::Initialize.exists(revision),
            Root::RequestMeta => true,
        }
    }

    /// The value in the form of a revision; `None` where it can have none.
    fn projected(self, made: &Value, revision: Revision) -> Option<Value> {
        let identity = Raw::from(object(&json!({"name": "t", "version": "1"})));
        let id = Raw::of(&7);
        let listens = matches!(self, Root::Result(row) if row.method == Method::SubscriptionsListen);
        let added = ResultMeta {
            identity: &identity,
            depends_on_answers: false,
            subscription: listens.then_some(&id),
        };
        let mut value = object(made);
        match self {
            Root::Result(row) => value = project::result(value, row, revision.rules(), added),
            Root::Question(question) => {
                let ask = InputRequest { question, params: value };
                value = askable(&ask, revision).then(|| project::question(&ask, revision.rules()))?;
            }
            // Where a form has no choice of several values, nothing has asked for several.
            Root::Answer(Question::Elicit) if gives_several(made) && !revision.rules().rich_choices => {
                return None;
            }
            // What a modern request must carry is stamped on it after this.
            Root::Params(_) if made.get(meta::META).is_none() => return None,
            _ => drop(project::object(&mut value, self.shape(), revision)),
        }
        serde_json::to_value(value).ok()
    }

    fn judge(self, revision: Revision, value: &Value) -> Result<(), String> {
        let message = |key: &str| json!({"jsonrpc": "2.0", "id": 1, key: value});
        let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        match self {
            Root::Params(row) => {
                judge(revision, Direction::ToServer, &request(row.wire, value.clone()), None)
            }
            Root::Result(row) => judge(revision, Direction::ToClient, &message("result"), Some(row.wire)),
            Root::Notice(notice) => {
                let message = json!({"jsonrpc": "2.0", "method": notice.wire(), "params": value});
                judge(revision, notice.row().direction, &message, None)
            }
            Root::Question(question) if revision.era() == Era::Modern => {
                let asked = json!({"method": question.wire(), "params": value});
                judge_type(revision, definition(question.wire()), &asked)
            }
            Root::Question(question) => {
                judge(revision, Direction::ToClient, &request(question.wire(), value.clone()), None)
            }
            Root::Answer(question) => {
                judge(revision, Direction::ToServer, &message("result"), Some(question.wire()))
            }
            Root::Client => {
                let info = json!({"name": "t", "version": "1"});
                let params = json!({"protocolVersion": "t", "capabilities": value, "clientInfo": info});
                judge(revision, Direction::ToServer, &request(Method::Initialize.wire(), params), None)
            }
            Root::RequestMeta => {
                let params = json!({"name": "t", "_meta": value});
                judge(revision, Direction::ToServer, &request(Method::ToolsCall.wire(), params), None)
            }
        }
    }
}

/// Every way to put into a value something that the revision lacks: where, what, and how the place looks then.
struct Additions<'a> {
    revision: Revision,
    tape: &'a mut Tape,
    found: Vec<(String, Lack, Value)>,
}

impl Additions<'_> {
    fn object(&mut self, at: &str, value: &Value, shape: &'static Shape) {
        for field in shape.fields {
            let below = format!("{at}/{}", field.name.replace('~', "~0").replace('/', "~1"));
            let here = &value[field.name];
            if !field.exists.contains(self.revision) {
                // A token in a `_meta` that is no request's is anybody's own key.
                if field.name != meta::PROGRESS_TOKEN {
                    let lack = (shape.name, field.name.to_owned(), self.revision.as_str());
                    let mut with = value.clone();
                    with[field.name] = json!({});
                    self.found.push((at.to_owned(), lack, with));
                }
                continue;
            }
            match (field.holds, here) {
                (Holds::Object(shape), Value::Object(_)) => self.object(&below, here, shape),
                (Holds::List(shape), Value::Array(elements)) => {
                    for (at, element) in elements.iter().enumerate() {
                        self.object(&format!("{below}/{at}"), element, shape);
                    }
                }
                (Holds::Map(shape), Value::Object(elements)) => {
                    for (key, element) in elements {
                        self.object(&format!("{below}/{key}"), element, shape);
                    }
                }
                (Holds::Content(kinds) | Holds::ContentOrList(kinds), Value::Object(_)) => {
                    self.block(&below, here, kinds);
                }
                (Holds::Contents(kinds) | Holds::ContentOrList(kinds), Value::Array(blocks)) => {
                    for (at, block) in blocks.iter().enumerate() {
                        self.block(&format!("{below}/{at}"), block, kinds);
                    }
                }
                _ => {}
            }
        }
    }

    fn block(&mut self, at: &str, block: &Value, kinds: &'static [Kind]) {
        for kind in kinds {
            if kind.exists.contains(self.revision) {
                if block["type"] == kind.tag {
                    self.object(at, block, kind.shape);
                }
                continue;
            }
            let mut other = self.tape.object(kind.shape, &of_type(kind.shape.name));
            other["type"] = json!(kind.tag);
            self.found.push((
                at.to_owned(),
                (kind.shape.name, "type".to_owned(), self.revision.as_str()),
                other,
            ));
        }
    }
}

#[test]
fn the_closed_schemas_reject_what_a_revision_lacks() {
    let rejected: Mutex<BTreeSet<Lack>> = Mutex::default();
    for root in roots() {
        let places = root.places();
        for_all(48, |tape| {
            let made = tape.object(root.shape(), &places);
            for revision in Revision::ALL.into_iter().filter(|r| root.exists(*r)) {
                let Some(value) = root.projected(&made, revision) else { continue };
                root.judge(revision, &value).map_err(|why| format!("{root:?} {revision} {value}: {why}"))?;
                let mut additions = Additions { revision, tape, found: Vec::new() };
                additions.object("", &value, root.shape());
                for (at, lack, with) in additions.found {
                    let mut wrong = value.clone();
                    *wrong.pointer_mut(&at).ok_or("the place is there")? = with;
                    if root.judge(revision, &wrong).is_ok() {
                        return Err(format!("{root:?}: {revision} accepts {lack:?} at {at:?} of {wrong}"));
                    }
                    rejected.lock().unwrap().insert(lack);
                }
            }
            Ok(())
        });
    }
    let rejected = rejected.into_inner().unwrap();
    let missing: Vec<Lack> = lacks().difference(&rejected).cloned().collect();
    assert!(missing.is_empty(), "never tried: {missing:#?}");
    assert!(rejected.len() > 200, "{}", rejected.len());
}

/// Every row that some revision lacks while it has the shape otherwise.
fn lacks() -> BTreeSet<Lack> {
    let mut lacks = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut left: Vec<(&'static Shape, Revisions)> = roots()
        .into_iter()
        .map(|root| {
            let lives = Revision::ALL.into_iter().filter(|r| root.exists(*r));
            (root.shape(), lives.fold(Revisions::NONE, |all, r| all.or(Revisions::only(r))))
        })
        .collect();
    while let Some((shape, lives)) = left.pop() {
        if !seen.insert((std::ptr::from_ref(shape).addr(), format!("{lives:?}"))) {
            continue;
        }
        for field in shape.fields {
            let absent = lives.iter().filter(|r| !field.exists.contains(*r));
            if field.name != meta::PROGRESS_TOKEN {
                lacks.extend(absent.map(|r| (shape.name, field.name.to_owned(), r.as_str())));
            }
            let lives = lives.and(field.exists);
            match field.holds {
                Holds::Nothing => {}
                Holds::Object(shape) | Holds::List(shape) | Holds::Map(shape) => left.push((shape, lives)),
                Holds::Content(kinds) | Holds::Contents(kinds) | Holds::ContentOrList(kinds) => {
                    for kind in kinds {
                        let absent = lives.iter().filter(|r| !kind.exists.contains(*r));
                        lacks.extend(absent.map(|r| (kind.shape.name, "type".to_owned(), r.as_str())));
                        left.push((kind.shape, lives.and(kind.exists)));
                    }
                }
            }
        }
    }
    lacks
}

/// Every row that the roots lead to, and every kind of content.
fn rows() -> BTreeSet<(&'static str, &'static str)> {
    let mut rows = BTreeSet::new();
    let mut left: Vec<&'static Shape> = roots().into_iter().map(Root::shape).collect();
    let mut seen = BTreeSet::new();
    while let Some(shape) = left.pop() {
        if !seen.insert(std::ptr::from_ref(shape).addr()) {
            continue;
        }
        // What no revision has is never made, only added.
        let lives = shape.fields.iter().filter(|f| f.exists != Revisions::NONE);
        rows.extend(lives.map(|f| (shape.name, f.name)));
        for field in shape.fields {
            match field.holds {
                Holds::Nothing => {}
                Holds::Object(shape) | Holds::List(shape) | Holds::Map(shape) => left.push(shape),
                Holds::Content(kinds) | Holds::Contents(kinds) | Holds::ContentOrList(kinds) => {
                    rows.extend(kinds.iter().map(|k| (k.shape.name, "type")));
                    left.extend(kinds.iter().map(|k| k.shape));
                }
            }
        }
    }
    rows
}

/// The values that the tests send have every field of every row, and every kind of content.
#[test]
fn values_of_every_kind_are_made() {
    let made: Mutex<BTreeSet<(&str, &str)>> = Mutex::default();
    let missing = || -> BTreeSet<_> { rows().difference(&made.lock().unwrap()).copied().collect() };
    // They are made by chance: what is rare may take some rounds.
    for _ in 0..50 {
        if missing().is_empty() {
            break;
        }
        for root in roots() {
            let places = root.places();
            for_all(16, |tape| {
                tape.object(root.shape(), &places);
                made.lock().unwrap().append(&mut tape.made);
                Ok(())
            });
        }
    }
    assert_eq!(missing(), BTreeSet::new());
    assert!(made.lock().unwrap().len() > 200);
}
