//! What a client's model is asked, and what it answers.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/client/sampling>

use proto::{Object, Raw};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::messages::Messages;

/// The parameters of a request to the client's model (`sampling/createMessage`).
///
/// ```
/// # use server::{CreateMessage, Messages};
/// let question = CreateMessage::new(Messages::new().user("What is the capital of France?"), 100)
///     .system_prompt("Answer in one word.")
///     .with("temperature", 0.2);
/// ```
#[derive(Clone, Debug)]
pub struct CreateMessage(Object);

impl CreateMessage {
    /// Makes a request of messages. The model gives at most `max_tokens` tokens.
    pub fn new(messages: Messages, max_tokens: u32) -> CreateMessage {
        CreateMessage(Object::new().with("messages", messages.raw()).with("maxTokens", Raw::of(&max_tokens)))
    }

    /// Sets a system prompt. A client may leave it out.
    #[must_use]
    pub fn system_prompt(self, text: &str) -> CreateMessage {
        self.with("systemPrompt", text)
    }

    /// Sets a member, such as `temperature`, `stopSequences` or `modelPreferences`.
    #[must_use]
    pub fn with(self, member: &'static str, value: impl Serialize) -> CreateMessage {
        CreateMessage(self.0.with(member, Raw::of(&value)))
    }
}

impl Serialize for CreateMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What the client's model answered.
#[derive(Clone, Debug)]
pub struct CreateMessageResult(Value);

impl CreateMessageResult {
    /// Reads an answer. `None` where it has no `role`, or content without a `type`.
    pub(crate) fn read(answer: Value) -> Option<CreateMessageResult> {
        let is_block = |block: &Value| block["type"].is_string();
        let has_content = match &answer["content"] {
            Value::Array(blocks) => blocks.iter().all(is_block),
            one => is_block(one),
        };
        (has_content && answer["role"].is_string()).then_some(CreateMessageResult(answer))
    }

    /// The text of all content, one block a line.
    pub fn text(&self) -> String {
        let blocks = match &self.0["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            one => std::slice::from_ref(one),
        };
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The name of the model that answered; empty where the client does not say it.
    pub fn model(&self) -> &str {
        self.0["model"].as_str().unwrap_or_default()
    }

    /// Why the model stopped, such as `endTurn` or `maxTokens`, where the client says it.
    pub fn stop_reason(&self) -> Option<&str> {
        self.0["stopReason"].as_str()
    }

    /// The whole answer.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// A directory or file that the client works in.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/client/roots>
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root(Value);

impl Root {
    /// Reads a root. `None` where it has no `uri`.
    pub(crate) fn read(root: Value) -> Option<Root> {
        root["uri"].is_string().then_some(Root(root))
    }

    /// Its URI, which begins with `file://`.
    pub fn uri(&self) -> &str {
        self.0["uri"].as_str().unwrap_or_default()
    }

    /// Its name for people, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.0["name"].as_str()
    }

    /// All of it, as the client sent it.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
