//! The questions that a server asks before it completes a request, and the answers.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use spec::Question;

use crate::json::{Object, Raw};

/// The answers of a client to an [`InputRequired`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputResponses {
    /// The key of each question with the result that answers it, or with the error of a client that could not answer.
    pub responses: Vec<(ByteString, Result<Raw, Raw>)>,
    /// The request state that came with the questions, exactly as it was sent.
    pub state: Option<Raw>,
}

/// What a server has to ask before it can complete a request.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// The questions, each with its key.
    pub questions: Vec<(ByteString, InputRequest)>,
    /// The request state: a JSON string that the client sends back with the answers.
    pub state: Option<Raw>,
}

/// One question to the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputRequest {
    /// What is asked for.
    #[serde(with = "crate::saved::question")]
    pub question: Question,
    /// The params of the question.
    pub params: Object,
}
