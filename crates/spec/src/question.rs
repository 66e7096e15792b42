//! What a server asks of a client.

use crate::revision::{Revision, Revisions};

/// What a server asks of a client: a request of its own in legacy revisions, an input request in modern ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Question {
    Elicit,
    Sample,
    ListRoots,
}

impl Question {
    /// Every question.
    pub const ALL: [Question; 3] = [Question::Elicit, Question::Sample, Question::ListRoots];

    /// The name on the wire.
    pub const fn wire(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation/create",
            Question::Sample => "sampling/createMessage",
            Question::ListRoots => "roots/list",
        }
    }

    /// Finds a question by its name on the wire.
    pub fn parse(wire: &str) -> Option<Question> {
        Question::ALL.into_iter().find(|q| q.wire() == wire)
    }

    /// The client capability that it needs.
    pub const fn needs(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation",
            Question::Sample => "sampling",
            Question::ListRoots => "roots",
        }
    }

    /// Where it exists.
    pub const fn exists(self) -> Revisions {
        match self {
            Question::Elicit => Revisions::since(Revision::V2025_06_18),
            Question::Sample | Question::ListRoots => Revisions::ALL,
        }
    }
}
