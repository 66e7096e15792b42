//! Arrays of messages, whose requests are answered together.
//!
//! <https://modelcontextprotocol.io/specification/2025-03-26/basic#batching>

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json::Raw;
use crate::rpc::wire;

/// Says why an array is refused as a whole: it is empty, or holds more messages than it may.
pub(super) fn refusal(sent: &Raw, most: usize) -> Option<String> {
    if !wire::holds_more(sent, 0) {
        return Some("an empty array holds no message".to_owned());
    }
    let why =
        || format!("the array holds more than {most} messages, which is the limit; send several arrays");
    wire::holds_more(sent, most).then(why)
}

/// Names a batch within its session.
pub(super) type BatchId = u64;

/// The batches of a session whose requests are not all answered yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Batches {
    open: BTreeMap<BatchId, Batch>,
    #[serde(deserialize_with = "crate::saved::counter")]
    last: BatchId,
}

#[derive(Debug, Serialize, Deserialize)]
struct Batch {
    /// How many of its requests are under way, and one while the array is still read.
    #[serde(deserialize_with = "crate::saved::counter")]
    open: usize,
    #[serde(with = "crate::saved::messages")]
    responses: Vec<Bytes>,
}

impl Batch {
    /// All responses in one array; `None` where there is none.
    fn array(self) -> Option<Bytes> {
        if self.responses.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(self.responses.iter().map(|r| r.len() + 1).sum::<usize>() + 2);
        out.push(b'[');
        for (at, response) in self.responses.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(response);
        }
        out.push(b']');
        Some(out.into())
    }
}

impl Batches {
    /// Begins to read an array. [`Batches::leave`] ends that.
    pub(super) fn begin(&mut self) -> BatchId {
        self.last += 1;
        self.open.insert(self.last, Batch { open: 1, responses: Vec::new() });
        self.last
    }

    /// One more request of a batch is under way.
    pub(super) fn enter(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.open += 1;
        }
    }

    /// Keeps a response until the others are there.
    pub(super) fn add(&mut self, id: BatchId, response: Option<Bytes>) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.responses.extend(response);
        }
    }

    /// One request less of a batch is under way; gives all responses with the last one.
    pub(super) fn leave(&mut self, id: BatchId) -> Option<Bytes> {
        let batch = self.open.get_mut(&id)?;
        batch.open = batch.open.saturating_sub(1);
        if batch.open > 0 {
            return None;
        }
        self.open.remove(&id).and_then(Batch::array)
    }

    /// How long the responses of a batch are together.
    pub(super) fn bytes(&self, id: BatchId) -> usize {
        self.open.get(&id).map_or(0, |batch| batch.responses.iter().map(Bytes::len).sum())
    }
}
