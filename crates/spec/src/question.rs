//! What a server asks of a client.

use crate::revision::{Revision, Revisions};

/// What a server can ask of a client.
///
/// In legacy revisions the server sends a request of its own; in modern ones the question stands in a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Question {
    Elicit,
    Sample,
    ListRoots,
}

impl Question {
    /// Every question.
    pub const ALL: [Question; 3] = [Question::Elicit, Question::Sample, Question::ListRoots];

    /// Returns the name that messages carry.
    pub const fn wire(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation/create",
            Question::Sample => "sampling/createMessage",
            Question::ListRoots => "roots/list",
        }
    }

    /// Finds the question of this name.
    pub fn parse(wire: &str) -> Option<Question> {
        Question::ALL.into_iter().find(|q| q.wire() == wire)
    }

    /// Returns the capability that a client has to declare to be asked.
    pub const fn needs(self) -> &'static str {
        match self {
            Question::Elicit => "elicitation",
            Question::Sample => "sampling",
            Question::ListRoots => "roots",
        }
    }

    /// Returns the revisions that have the question.
    pub const fn exists(self) -> Revisions {
        match self {
            Question::Elicit => Revisions::since(Revision::V2025_06_18),
            Question::Sample | Question::ListRoots => Revisions::ALL,
        }
    }
}
