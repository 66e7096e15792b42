//! A server on rmcp over its standard streams: a tool with structure, one that asks its user, and a prompt.

use rmcp::handler::server::tool::InputResponses as Answers;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    InputRequest, InputRequests, InputRequiredResult, PromptMessage, Role,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::serde_json::{self, json};
use rmcp::{
    ErrorData, ServerHandler, ServiceExt, prompt, prompt_handler, prompt_router, tool,
    tool_handler, tool_router,
};
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct Moths;

#[derive(Deserialize, JsonSchema)]
struct Wings {
    /// In millimetres.
    left: f64,
    /// In millimetres.
    right: f64,
}

#[derive(Serialize, JsonSchema)]
struct Span {
    span: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    place: String,
}

#[tool_router]
impl Moths {
    #[tool(description = "The span of two wings")]
    async fn span(&self, Parameters(wings): Parameters<Wings>) -> Json<Span> {
        Json(Span { span: wings.left + wings.right })
    }

    #[tool(description = "Names a moth after its finder, who is asked")]
    async fn christen(&self, answers: Answers) -> Result<CallToolResponse, ErrorData> {
        let given = answers.0.and_then(|all| all.get("finder").cloned());
        match given.as_ref().and_then(|answer| answer["content"]["name"].as_str()) {
            Some(name) => Ok(CallToolResult::success(vec![ContentBlock::text(format!("{name}'s moth"))]).into()),
            None => Ok(ask().into()),
        }
    }
}

fn ask() -> InputRequiredResult {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let mut questions = InputRequests::new();
    questions.insert(
        "finder".to_string(),
        InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Who found it?".into(),
            requested_schema: serde_json::from_value(form).expect("it is a form"),
        })),
    );
    InputRequiredResult::new(Some(questions), Some("asked".into()))
}

#[prompt_router]
impl Moths {
    #[prompt(description = "Where to look for moths")]
    async fn look(&self, Parameters(Place { place }): Parameters<Place>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, format!("Look for moths in {place}."))]
    }
}

#[tool_handler(router = Self::tool_router())]
#[prompt_handler(router = Self::prompt_router())]
impl ServerHandler for Moths {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Moths.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
