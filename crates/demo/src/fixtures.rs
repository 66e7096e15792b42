//! What the official conformance suite calls, by the names that it asks for.

use std::time::Duration;

use dateline::{
    Args, BuildError, Builder, CompletionArgument, Content, Context, ElicitForm, ElicitResult, Error, Level,
    Messages, Prompt, Resource, ResourceContents, ResourceTemplate, Result, Server, Tool, ToolResult,
    Variables,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A red pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63,
    0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae,
    0x42, 0x60, 0x82,
];
/// A moment of silence.
const WAV: &[u8] =
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x02\0\0\0\0\0";

pub(crate) fn add(server: Builder) -> Builder {
    prompts(resources(questions(legacy_questions(notices(plain(server))))))
}

fn plain(server: Builder) -> Builder {
    server
        .tool(Tool::new("test_simple_text", "Returns simple text.", || async {
            "This is a simple text response for testing."
        }))
        .tool(Tool::new("test_image_content", "Returns an image.", || async {
            Content::image(PNG, "image/png")
        }))
        .tool(Tool::new("test_audio_content", "Returns sound.", || async {
            Content::audio(WAV, "audio/wav")
        }))
        .tool(Tool::new("test_embedded_resource", "Returns an embedded resource.", || async {
            Content::resource(ResourceContents::text(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            ))
        }))
        .tool(Tool::new("test_multiple_content_types", "Returns text, an image and a resource.", || async {
            vec![
                Content::text("Multiple content types test:"),
                Content::image(PNG, "image/png"),
                Content::resource(ResourceContents::text(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                )),
            ]
        }))
        .tool(Tool::new("test_error_handling", "Returns an error.", || async {
            ToolResult::error("This tool intentionally returns an error for testing")
        }))
        .tool(
            Tool::new(
                "json_schema_2020_12_tool",
                "Has a schema that uses much of JSON Schema 2020-12.",
                |cx: Context| async move {
                    format!("JSON Schema 2020-12 tool called with: {}", cx.arguments().as_str())
                },
            )
            .input_schema(schema_2020_12()),
        )
        .tool(
            Tool::new(
                "test_custom_header",
                "Takes a parameter that HTTP mirrors in a header.",
                |cx: Context| async move { cx.arguments().as_str().to_owned() },
            )
            .input_schema(json!({
                "type": "object",
                "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
                "required": ["value"],
            })),
        )
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn notices(server: Builder) -> Builder {
    server
        .tool(Tool::new("test_tool_with_logging", "Logs three messages.", |cx: Context| async move {
            cx.log(Level::Info, None, "Tool execution started").await;
            pause().await;
            cx.log(Level::Info, None, "Tool processing data").await;
            pause().await;
            cx.log(Level::Info, None, "Tool execution completed").await;
            "Tool with logging executed successfully"
        }))
        .tool(Tool::new(
            "test_logging_tool",
            "Logs one message, where it is wanted.",
            |cx: Context| async move {
                cx.log(Level::Info, None, "A log message").await;
                "logged"
            },
        ))
        .tool(Tool::new("test_tool_with_progress", "Reports progress.", |cx: Context| async move {
            cx.progress(0.0, Some(100.0), Some("Started")).await;
            pause().await;
            cx.progress(50.0, Some(100.0), Some("Half way")).await;
            pause().await;
            cx.progress(100.0, Some(100.0), Some("Completed")).await;
            "Tool with progress executed successfully"
        }))
        .tool(Tool::new(
            "test_reconnection",
            "Lets go of the connection while it works.",
            |cx: Context| async move {
                cx.release(Duration::from_millis(500)).await;
                pause().await;
                "The client came back for this."
            },
        ))
}

/// Adds the tools that change what the server offers: each adds a thing, or takes it away again.
///
/// # Errors
/// When one is wrong, which the tests would have shown.
pub(crate) fn changing(server: &Server) -> std::result::Result<(), BuildError> {
    let (tools, prompts) = (server.clone(), server.clone());
    server.add_tool(Tool::new(
        "test_trigger_tool_change",
        "Adds a tool to the list, or takes it away again.",
        move || {
            let name = "test_changing_tool";
            let tool = || Tool::new(name, "Is there or not.", || async { "It is there." });
            let changed = if tools.remove_tool(name) { Ok(()) } else { tools.add_tool(tool()) };
            async move { changed.map(|()| "changed").map_err(Error::from) }
        },
    ))?;
    server.add_tool(Tool::new(
        "test_trigger_prompt_change",
        "Adds a prompt to the list, or takes it away again.",
        move || {
            let name = "test_changing_prompt";
            let prompt = || Prompt::new(name, "Is there or not.", || async { "It is there." });
            let changed = if prompts.remove_prompt(name) { Ok(()) } else { prompts.add_prompt(prompt()) };
            async move { changed.map(|()| "changed").map_err(Error::from) }
        },
    ))
}

#[derive(Deserialize, JsonSchema)]
struct Prompted {
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

fn text_message(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100})
}

/// What a user did with a form, in words.
fn said(elicited: &ElicitResult<Value>) -> String {
    match elicited {
        ElicitResult::Accepted(content) => format!("action=accept, content={content}"),
        other => unsaid(other).to_owned(),
    }
}

/// What a user did who did not fill a form in.
fn unsaid<T>(elicited: &ElicitResult<T>) -> &'static str {
    match elicited {
        ElicitResult::Accepted(_) => "action=accept",
        ElicitResult::Declined => "action=decline",
        ElicitResult::Cancelled => "action=cancel",
    }
}

fn legacy_questions(server: Builder) -> Builder {
    server
        .tool(Tool::new("test_sampling", "Asks the client's model.", |Args(args): Args<Prompted>, cx: Context| async move {
            let sampled = cx.sample("sampling", &text_message(&args.prompt)).await?;
            Ok::<_, Error>(format!("LLM response: {}", sampled.text()))
        }))
        .tool(Tool::new("test_elicitation", "Asks the user.", |Args(args): Args<Message>, cx: Context| async move {
            let form = json!({
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            });
            let elicited = cx.elicit("elicitation", ElicitForm::raw(&args.message, form)).await?;
            Ok::<_, Error>(format!("User response: {}", said(&elicited)))
        }))
        .tool(Tool::new("test_elicitation_sep1034_defaults", "Asks with defaults.", |cx: Context| async move {
            let form = json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                    "verified": {"type": "boolean", "default": true},
                },
                "required": [],
            });
            let elicited = cx.elicit("defaults", ElicitForm::raw("Please review the defaults", form)).await?;
            Ok::<_, Error>(format!("Elicitation completed: {}", said(&elicited)))
        }))
        .tool(Tool::new("test_elicitation_sep1330_enums", "Asks for choices.", |cx: Context| async move {
            let titled = json!([
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]);
            let plain = json!(["option1", "option2", "option3"]);
            let form = json!({
                "type": "object",
                "properties": {
                    "untitledSingle": {"type": "string", "enum": plain},
                    "titledSingle": {"type": "string", "oneOf": titled},
                    "legacyEnum": {
                        "type": "string",
                        "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"],
                    },
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
                    "titledMulti": {"type": "array", "items": {"anyOf": titled}},
                },
                "required": [],
            });
            let elicited = cx.elicit("enums", ElicitForm::raw("Please choose", form)).await?;
            Ok::<_, Error>(format!("Elicitation completed: {}", said(&elicited)))
        }))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Sure {
    ok: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

async fn name_of(cx: &Context, key: &str) -> Result<String> {
    Ok(match cx.elicit(key, ElicitForm::<Name>::new("What is your name?")).await? {
        ElicitResult::Accepted(filled) => filled.name,
        other => unsaid(&other).to_owned(),
    })
}

fn questions(server: Builder) -> Builder {
    server
        .tool(Tool::new("test_missing_capability", "Cannot go on without sampling.", |cx: Context| async move {
            let sampled = cx.sample("needed", &text_message("Say something.")).await?;
            Ok::<_, Error>(sampled.text())
        }))
        .tool(Tool::new("test_streaming_elicitation", "Asks for a name.", |cx: Context| async move {
            Ok::<_, Error>(format!("Hello, {}!", name_of(&cx, "user_name").await?))
        }))
        .tool(Tool::new("test_input_required_result_elicitation", "Asks for a name.", |cx: Context| async move {
            Ok::<_, Error>(format!("Hello, {}!", name_of(&cx, "user_name").await?))
        }))
        .tool(Tool::new("test_input_required_result_sampling", "Asks for a capital.", |cx: Context| async move {
            let sampled =
                cx.sample("capital_question", &text_message("What is the capital of France?")).await?;
            Ok::<_, Error>(sampled.text())
        }))
        .tool(Tool::new("test_input_required_result_list_roots", "Asks for roots.", |cx: Context| async move {
            let roots = cx.list_roots("client_roots").await?;
            Ok::<_, Error>(format!("{} roots: {}", roots.len(), json!(roots)))
        }))
        .tool(Tool::new(
            "test_input_required_result_request_state",
            "Keeps state while it asks.",
            |cx: Context| async move {
                cx.elicit("confirm", ElicitForm::<Sure>::new("Is that right?")).await?;
                Ok::<_, Error>("state-ok")
            },
        ))
        .tool(Tool::new(
            "test_input_required_result_tampered_state",
            "Refuses changed state.",
            |cx: Context| async move {
                cx.elicit("confirm", ElicitForm::<Sure>::new("Is that right?")).await?;
                Ok::<_, Error>("state-ok")
            },
        ))
        .tool(Tool::new(
            "test_input_required_result_multiple_inputs",
            "Asks three things at once.",
            |cx: Context| async move {
                let question = text_message("Write a greeting.");
                let (name, greeting, roots) = cx
                    .try_join((
                        name_of(&cx, "user_name"),
                        cx.sample("greeting", &question),
                        cx.list_roots("client_roots"),
                    ))
                    .await?;
                Ok::<_, Error>(format!("{name}: {} ({} roots)", greeting.text(), roots.len()))
            },
        ))
        .tool(Tool::new("test_input_required_result_multi_round", "Asks twice.", |cx: Context| async move {
            let name = name_of(&cx, "step1").await?;
            let color = cx.elicit("step2", ElicitForm::<Colour>::new("What is your favourite colour?")).await?;
            let color = match &color {
                ElicitResult::Accepted(filled) => &filled.color,
                other => unsaid(other),
            };
            Ok::<_, Error>(format!("{name}: {color}"))
        }))
        .tool(Tool::new(
            "test_input_required_result_capabilities",
            "Asks what the client can answer.",
            |cx: Context| async move {
                let can = &cx.peer().capabilities;
                let mut told = Vec::new();
                if can.elicitation_form() {
                    told.push(name_of(&cx, "user_name").await?);
                }
                if can.sampling() {
                    told.push(
                        cx.sample("capital_question", &text_message("What is the capital of France?"))
                            .await?
                            .text(),
                    );
                }
                Ok::<_, Error>(told.join("; "))
            },
        ))
}

fn resources(server: Builder) -> Builder {
    server
        .resource(
            Resource::fixed(
                "Static Text",
                ResourceContents::text("test://static-text", "text/plain", "This is the content of the static text resource."),
            )
            .with("description", "A text that never changes."),
        )
        .resource(
            Resource::fixed("Static Binary", ResourceContents::blob("test://static-binary", "image/png", PNG))
                .with("description", "A picture that never changes."),
        )
        .resource(
            Resource::fixed("Watched", ResourceContents::text("test://watched-resource", "text/plain", "Watch me."))
                .with("description", "Sends an update when touch_resource names it."),
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "Template", |vars: Variables| async move {
                let data = json!({"id": vars.get("id"), "templateTest": true, "data": format!("Data for ID: {}", vars.get("id"))});
                data.to_string()
            })
            .with("description", "Data by id.")
            .with("mimeType", "application/json")
            .complete("id", |typed: CompletionArgument| async move {
                (1..=3).map(|n| format!("{}{n}", typed.value())).collect()
            }),
        )
}

fn prompts(server: Builder) -> Builder {
    server
        .prompt(Prompt::new("test_simple_prompt", "A prompt without arguments.", || async {
            "This is a simple prompt for testing."
        }))
        .prompt(
            Prompt::new(
                "test_prompt_with_arguments",
                "A prompt with two arguments.",
                |Args(two): Args<TwoArguments>| async move {
                    format!("Prompt with arguments: arg1='{}', arg2='{}'", two.arg1, two.arg2)
                },
            )
            .choices("arg1", ["test", "testing", "tested"])
            .complete("arg2", |typed: CompletionArgument| async move {
                // It goes with the first one, where the client says what that is.
                let first = typed.argument("arg1").unwrap_or("any");
                typed.rank((1..=120).map(|n| format!("{first}-{n}")))
            }),
        )
        .prompt(Prompt::new(
            "test_prompt_with_embedded_resource",
            "A prompt with a resource in it.",
            |Args(embedded): Args<Embedded>| async move {
                let said = "Embedded resource content for testing.";
                let contents = ResourceContents::text(&embedded.uri, "text/plain", said);
                Messages::new()
                    .user(Content::resource(contents))
                    .user("Please process the embedded resource above.")
            },
        ))
        .prompt(Prompt::new("test_prompt_with_image", "A prompt with an image in it.", || async {
            Messages::new().user(Content::image(PNG, "image/png")).user("Please analyze the image above.")
        }))
        .prompt(Prompt::new(
            "test_input_required_result_prompt",
            "A prompt that asks first.",
            |cx: Context| async move {
                let form = ElicitForm::<UserContext>::new("What context should the prompt use?");
                let context = match cx.elicit("user_context", form).await? {
                    ElicitResult::Accepted(filled) => filled.context,
                    other => unsaid(&other).to_owned(),
                };
                Ok::<_, Error>(format!("Use this context: {context}"))
            },
        ))
}

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
struct Embedded {
    /// URI of the resource to embed
    #[serde(rename = "resourceUri")]
    uri: String,
}

#[derive(Deserialize, JsonSchema)]
struct UserContext {
    context: String,
}
