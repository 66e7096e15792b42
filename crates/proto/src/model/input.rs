//! What a request has to ask before it can be completed, and what was answered.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use bytestring::ByteString;
use spec::Question;

use crate::json::{Object, Raw};

/// What a client answered to an [`InputRequired`].
#[derive(Clone, Debug, Default)]
pub struct InputResponses {
    /// By the key of the question: the result, or the error object of a client that could not.
    pub responses: Vec<(ByteString, Result<Raw, Raw>)>,
    /// The request state that came with the questions, as it was sent.
    pub state: Option<Raw>,
}

/// What has to be asked before a request can be completed.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// The questions, by key.
    pub questions: Vec<(ByteString, InputRequest)>,
    /// A JSON string that comes back with the answers.
    pub state: Option<Raw>,
}

/// One question to the client.
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// What kind.
    pub question: Question,
    /// Its params.
    pub params: Object,
}
