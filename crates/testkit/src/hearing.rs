//! Who listens in on a connection and has the referee judge what one of its ends says.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;
use spec::{Direction, Method, Revision, meta};
use tokio::process::Child;

use crate::referee::judge;

/// Where scripted servers write down what they read, for whoever started the program that runs them: the beginning of
/// paths that go on with the process ids of the program and of the server. They get it in the environment variable
/// `DATELINE_HEARD`.
pub fn heard() -> PathBuf {
    std::env::temp_dir().join(format!("dateline-heard-{}", std::process::id()))
}

/// A connection, heard in one direction.
pub struct Hearing {
    direction: Direction,
    /// What the other end asked, by id: the method, and the revision that the request itself names.
    asked: HashMap<String, Vec<(String, Option<Revision>)>>,
    /// The revisions of sessions and of requests that were met, of which a message may be that names none.
    met: Vec<Revision>,
}

impl Hearing {
    /// Nothing was said yet.
    pub fn new(direction: Direction) -> Hearing {
        Hearing { direction, asked: HashMap::new(), met: Vec::new() }
    }

    /// Takes note of what the other end asks.
    pub fn asks(&mut self, message: &Value) {
        for message in message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice) {
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
            if id.is_null() {
                continue;
            }
            let own = message.get("params").and_then(by_meta);
            self.met.extend(own);
            self.asked.entry(id.to_string()).or_default().push((method.to_owned(), own));
        }
    }

    /// Judges a message. Where several revisions are met, one of them must accept it, or the `assumed` one; what
    /// answers nothing that was asked may be `unnamed`.
    ///
    /// # Errors
    /// Names the revision, the message, and what the schema has against it.
    pub fn hear(
        &mut self,
        message: &Value,
        assumed: Option<Revision>,
        unnamed: Option<Revision>,
    ) -> Result<(), String> {
        if let Some(batch) = message.as_array() {
            let batches = |revision: &Revision| revision.rules().batches;
            if !self.met.iter().chain(&assumed).any(batches) || batch.is_empty() {
                return Err(format!("no revision that is spoken here has this batch: {message}"));
            }
            return batch.iter().try_for_each(|message| self.hear(message, assumed, unnamed));
        }
        let mut first = None;
        for (revision, answers) in self.may_be(message, assumed, unnamed) {
            match judge(revision, self.direction, message, answers.as_deref()) {
                Ok(()) => return Ok(()),
                Err(why) => first = first.or(Some((revision, why))),
            }
        }
        let (revision, why) = first.expect("a message may be of some revision");
        Err(format!("this is not valid in {revision}: {message}\n{why}"))
    }

    /// The revisions that a message may be of, with the method that it answers then.
    fn may_be(
        &mut self,
        message: &Value,
        assumed: Option<Revision>,
        unnamed: Option<Revision>,
    ) -> Vec<(Revision, Option<String>)> {
        let mut others: Vec<Revision> = self.met.iter().copied().chain(assumed).collect();
        if others.is_empty() {
            others.extend(Revision::ALL);
        }
        if message.get("method").is_some() {
            let own = named(message);
            return own
                .map_or(others, |own| vec![own])
                .into_iter()
                .map(|revision| (revision, None))
                .collect();
        }
        let asked =
            message.get("id").and_then(|id| self.asked.get(&id.to_string())).cloned().unwrap_or_default();
        if asked.is_empty() {
            others.extend(unnamed);
            return others.into_iter().map(|revision| (revision, None)).collect();
        }
        let mut found = Vec::new();
        for (method, own) in asked {
            let agreed = message["result"]["protocolVersion"].as_str().and_then(Revision::parse);
            let opens = method == Method::Initialize.wire();
            let revisions = match (opens, agreed, own) {
                (true, Some(agreed), _) => {
                    // The session speaks what the answer says, whatever was asked for.
                    self.met.push(agreed);
                    vec![agreed]
                }
                (true, None, _) => Revision::ALL.to_vec(),
                // A session answers all that is sent in it.
                (false, _, Some(own)) => std::iter::once(own).chain(others.iter().copied()).collect(),
                (false, _, None) => others.clone(),
            };
            found.extend(revisions.into_iter().map(|revision| (revision, Some(method.clone()))));
        }
        found
    }
}

/// The revision that a request names in its `_meta`. One that does not exist is answered in the form of the newest.
fn by_meta(params: &Value) -> Option<Revision> {
    let name = params["_meta"].get(meta::PROTOCOL_VERSION)?;
    Some(name.as_str().and_then(Revision::parse).unwrap_or(Revision::LATEST_MODERN))
}

/// The revision that a request is of by its own words.
fn named(message: &Value) -> Option<Revision> {
    let params = message.get("params")?;
    let opens = message["method"] == Method::Initialize.wire();
    by_meta(params).or_else(|| params["protocolVersion"].as_str().filter(|_| opens).and_then(Revision::parse))
}

/// What the scripted servers of one program heard from it. It is judged when this is dropped.
pub struct Heard {
    program: u32,
    /// It is not judged after all.
    pub(crate) unjudged: bool,
}

impl Heard {
    /// By the servers that this process runs.
    pub fn from(program: &Child) -> Heard {
        Heard { program: program.id().unwrap_or_default(), unjudged: false }
    }

    /// A line of each message: who said it, the revision that the server speaks, and the text.
    fn judge(text: &str) -> Result<(), String> {
        let mut hearing = Hearing::new(Direction::ToServer);
        for line in text.lines() {
            // The last line may have been cut off with its writer.
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let Ok(message) = serde_json::from_str(line["text"].as_str().unwrap_or_default()) else {
                return Err(format!("a scripted server got what is no JSON: {}", line["text"]));
            };
            let revision = line["revision"].as_str().and_then(Revision::parse);
            match line["said"].as_bool() {
                Some(true) => hearing.asks(&message),
                _ => hearing.hear(&message, revision, None)?,
            }
        }
        Ok(())
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let ours = format!("{}-{}-", heard().display(), self.program);
        let Ok(folder) = std::fs::read_dir(std::env::temp_dir()) else { return };
        let files = folder.filter_map(|entry| Some(entry.ok()?.path()));
        for file in files.filter(|file| file.to_string_lossy().starts_with(&ours)) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let _ = std::fs::remove_file(&file);
            let judged = !self.unjudged && !std::thread::panicking();
            if let (true, Err(why)) = (judged, Heard::judge(&text)) {
                panic!("what a scripted server got: {why}");
            }
        }
    }
}
