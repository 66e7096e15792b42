//! Judges all messages that one end of a connection sends, by the referee.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;
use spec::{Direction, Method, Revision, meta};
use tokio::process::Child;

use crate::referee::judge;

/// Returns the beginning of the paths at which scripted servers write what they read.
///
/// A path continues with the process ids of the program and of the server. The servers get the beginning in the
/// environment variable `DATELINE_TRAFFIC`.
pub fn traffic_path() -> PathBuf {
    std::env::temp_dir().join(format!("dateline-traffic-{}", std::process::id()))
}

/// Judges the messages of a connection in one direction.
pub struct TrafficJudge {
    direction: Direction,
    /// What the other end requested, by id: the method, and the revision that the request itself names.
    requests: HashMap<String, Vec<(String, Option<Revision>)>>,
    /// The revisions of the sessions and requests so far. A message without a revision of its own may be of any of them.
    revisions: Vec<Revision>,
}

impl TrafficJudge {
    /// Makes a judge that has seen no message yet.
    pub fn new(direction: Direction) -> TrafficJudge {
        TrafficJudge { direction, requests: HashMap::new(), revisions: Vec::new() }
    }

    /// Remembers the requests of the other end.
    pub fn note_requests(&mut self, message: &Value) {
        for message in message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice) {
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
            if id.is_null() {
                continue;
            }
            let own = message.get("params").and_then(by_meta);
            own.into_iter().for_each(|own| self.note_revision(own));
            // Some tests send thousands of requests with one id.
            let asked = self.requests.entry(id.to_string()).or_default();
            if !asked.iter().any(|(known, of)| known == method && *of == own) {
                asked.push((method.to_owned(), own));
            }
        }
    }

    fn note_revision(&mut self, revision: Revision) {
        if !self.revisions.contains(&revision) {
            self.revisions.push(revision);
        }
    }

    /// Judges a message.
    ///
    /// One of the revisions so far must accept it, or the `assumed` one. A message that answers no request may also be
    /// of the revision `unnamed`.
    ///
    /// # Errors
    /// Where no revision accepts it. The error names the revision, the message, and what is wrong with it.
    pub fn judge(
        &mut self,
        message: &Value,
        assumed: Option<Revision>,
        unnamed: Option<Revision>,
    ) -> Result<(), String> {
        if let Some(batch) = message.as_array() {
            let batches = |revision: &Revision| revision.rules().batches;
            if !self.revisions.iter().chain(&assumed).any(batches) || batch.is_empty() {
                return Err(format!("no revision that is spoken here has this batch: {message}"));
            }
            return batch.iter().try_for_each(|message| self.judge(message, assumed, unnamed));
        }
        let mut first = None;
        for (revision, answers) in self.candidates(message, assumed, unnamed) {
            match judge(revision, self.direction, message, answers.as_deref()) {
                Ok(()) => return Ok(()),
                Err(why) => first = first.or(Some((revision, why))),
            }
        }
        let (revision, why) = first.expect("a message may be of some revision");
        Err(format!("this is not valid in {revision}: {message}\n{why}"))
    }

    /// Returns the revisions that a message may be of, each with the method that it answers then.
    fn candidates(
        &mut self,
        message: &Value,
        assumed: Option<Revision>,
        unnamed: Option<Revision>,
    ) -> Vec<(Revision, Option<String>)> {
        let mut others: Vec<Revision> = self.revisions.iter().copied().chain(assumed).collect();
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
            message.get("id").and_then(|id| self.requests.get(&id.to_string())).cloned().unwrap_or_default();
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
                    self.note_revision(agreed);
                    vec![agreed]
                }
                (true, None, _) => Revision::ALL.to_vec(),
                // A session answers every request in it by its own revision.
                (false, _, Some(own)) => std::iter::once(own).chain(others.iter().copied()).collect(),
                (false, _, None) => others.clone(),
            };
            found.extend(revisions.into_iter().map(|revision| (revision, Some(method.clone()))));
        }
        found
    }
}

/// Returns the revision that a request names in its `_meta`. A request that names an unknown one is answered in the form
/// of the newest.
fn by_meta(params: &Value) -> Option<Revision> {
    let name = params["_meta"].get(meta::PROTOCOL_VERSION)?;
    Some(name.as_str().and_then(Revision::parse).unwrap_or(Revision::LATEST_MODERN))
}

/// Returns the revision that a request itself names.
fn named(message: &Value) -> Option<Revision> {
    let params = message.get("params")?;
    let opens = message["method"] == Method::Initialize.wire();
    by_meta(params).or_else(|| params["protocolVersion"].as_str().filter(|_| opens).and_then(Revision::parse))
}

/// The messages that the scripted servers of one program received from it. They are judged when this is dropped.
pub struct ScriptedTraffic {
    program: u32,
    /// Whether they are not judged.
    pub(crate) unjudged: bool,
}

impl ScriptedTraffic {
    /// Makes the value for the servers that a process runs.
    pub fn of(program: &Child) -> ScriptedTraffic {
        ScriptedTraffic { program: program.id().unwrap_or_default(), unjudged: false }
    }

    /// Judges lines of one message each: who sent it, the revision that the server speaks, and the text.
    fn judge(text: &str) -> Result<(), String> {
        let mut judge = TrafficJudge::new(Direction::ToServer);
        for line in text.lines() {
            // The last line may have been cut off with its writer.
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let Ok(message) = serde_json::from_str(line["text"].as_str().unwrap_or_default()) else {
                return Err(format!("a scripted server got what is no JSON: {}", line["text"]));
            };
            let revision = line["revision"].as_str().and_then(Revision::parse);
            match line["said"].as_bool() {
                Some(true) => judge.note_requests(&message),
                _ => judge.judge(&message, revision, None)?,
            }
        }
        Ok(())
    }
}

impl Drop for ScriptedTraffic {
    fn drop(&mut self) {
        let ours = format!("{}-{}-", traffic_path().display(), self.program);
        let Ok(folder) = std::fs::read_dir(std::env::temp_dir()) else { return };
        let files = folder.filter_map(|entry| Some(entry.ok()?.path()));
        for file in files.filter(|file| file.to_string_lossy().starts_with(&ours)) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let _ = std::fs::remove_file(&file);
            let judged = !self.unjudged && !std::thread::panicking();
            if let (true, Err(why)) = (judged, ScriptedTraffic::judge(&text)) {
                panic!("what a scripted server got: {why}");
            }
        }
    }
}
