//! Tools.

use std::sync::Arc;

use proto::{HeaderParam, Object, Raw};
use serde::Serialize;
use serde_json::Value;

use crate::build_error::BuildError;
use crate::content::ToolResult;
use crate::handler::{Handler, Run, run};
use crate::schema::Validator;

/// The member of a definition that is the output schema.
const OUTPUT: &str = "outputSchema";

/// A tool: its definition and its handler.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
pub struct Tool {
    pub(crate) name: String,
    definition: Object,
    /// The output schema is the one of the handler's type.
    typed_output: bool,
    pub(crate) handler: Run<ToolResult>,
}

/// Whether results are checked whose output schema comes from their own type.
const CHECKS_TYPED: bool = cfg!(any(feature = "validate-output", debug_assertions));

/// A tool that was checked.
pub(crate) struct Ready {
    pub(crate) definition: Raw,
    pub(crate) handler: Run<ToolResult>,
    pub(crate) input: Validator,
    pub(crate) output: Option<Validator>,
    pub(crate) mirrors: Arc<[HeaderParam]>,
}

impl Tool {
    /// Makes a tool of its name (1 to 128 characters out of `A-Z a-z 0-9 _ - .`), a description that a model
    /// understands, and an async function.
    pub fn new<T, H: Handler<T, ToolResult>>(name: &str, description: &str, handler: H) -> Tool {
        let input =
            H::input_schema().unwrap_or(Raw::literal(r#"{"type":"object","additionalProperties":false}"#));
        let mut definition =
            Object::new().with("name", name).with("description", description).with("inputSchema", input);
        let output = H::output_schema();
        let typed_output = output.is_some();
        if let Some(output) = output {
            definition.set(OUTPUT, output);
        }
        Tool { name: name.to_owned(), definition, typed_output, handler: run(handler) }
    }

    /// Makes a tool of its definition in JSON, with every member that it has. The handler reads
    /// [`crate::Context::arguments`].
    ///
    /// # Errors
    /// When it is no object, or has no name.
    pub fn from_json<T, H: Handler<T, ToolResult>>(
        definition: &Value,
        handler: H,
    ) -> Result<Tool, BuildError> {
        let wrong = |why| BuildError::definition("tool", "", why);
        let object = Raw::of(definition).object().map_err(|_| wrong("the definition must be an object"))?;
        let name =
            object.string("name").ok_or_else(|| wrong("\"name\" is required, and must be a string"))?;
        Ok(Tool { name: name.to_string(), definition: object, typed_output: false, handler: run(handler) })
    }

    /// Says that the tool changes nothing (`readOnlyHint`).
    #[must_use]
    pub fn read_only(self) -> Tool {
        self.hint("readOnlyHint", true)
    }

    /// Says whether the tool may destroy something, or only adds (`destructiveHint`).
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Tool {
        self.hint("destructiveHint", destructive)
    }

    /// Says that a second call with the same arguments does nothing more (`idempotentHint`).
    #[must_use]
    pub fn idempotent(self) -> Tool {
        self.hint("idempotentHint", true)
    }

    /// Says whether the tool reaches things that are not the server's own, such as the web (`openWorldHint`).
    #[must_use]
    pub fn open_world(self, open: bool) -> Tool {
        self.hint("openWorldHint", open)
    }

    /// A hint at how the tool behaves
    /// (<https://modelcontextprotocol.io/specification/2026-07-28/schema#toolannotations>).
    fn hint(mut self, hint: &'static str, holds: bool) -> Tool {
        let hints = self.definition.get("annotations").and_then(|raw| raw.object().ok()).unwrap_or_default();
        self.definition.set("annotations", Raw::from(hints.with(hint, Raw::of(&holds))));
        self
    }

    /// Sets a title for people.
    #[must_use]
    pub fn title(self, title: &str) -> Tool {
        self.with("title", title)
    }

    /// Sets an input schema that is written by hand; the handler reads [`crate::Context::arguments`].
    #[must_use]
    pub fn input_schema(self, schema: impl Serialize) -> Tool {
        self.with("inputSchema", schema)
    }

    /// Sets an output schema that is written by hand. Every result is checked against it: one that does not fit ends
    /// its call with an internal error. A schema that comes from the type of a [`Json`](crate::Json) result is only
    /// checked in debug builds, and where the feature `validate-output` is on.
    #[must_use]
    pub fn output_schema(self, schema: impl Serialize) -> Tool {
        self.with(OUTPUT, schema)
    }

    /// Sets that HTTP clients repeat a parameter in the header `Mcp-Param-{header}`. A parameter within another one is
    /// named by its path: `order.region`. The attribute `#[schemars(extend("x-mcp-header" = "Region"))]` of a type's
    /// field does the same.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters>
    #[must_use]
    pub fn header_param(mut self, parameter: &str, header: &str) -> Tool {
        let mut schema: Value =
            self.definition.get("inputSchema").and_then(|s| s.read().ok()).unwrap_or_default();
        let place = parameter.split('.').fold(&mut schema, |within, name| &mut within["properties"][name]);
        place[spec::header::PARAM_KEYWORD] = header.into();
        self.definition.set("inputSchema", Raw::of(&schema));
        self
    }

    /// Sets a member of the definition, such as `annotations`, `icons`, `_meta`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Serialize) -> Tool {
        self.typed_output &= member != OUTPUT;
        self.definition.set(member, Raw::of(&value));
        self
    }

    /// Checks the definition.
    pub(crate) fn ready(self) -> Result<Ready, BuildError> {
        let named = |why: String| BuildError::definition("tool", &self.name, why);
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        if self.name.is_empty() || self.name.len() > 128 || !self.name.bytes().all(legal) {
            return Err(named("a name is 1 to 128 characters out of A-Z a-z 0-9 _ - .".into()));
        }
        let schema = self.definition.get("inputSchema").cloned().unwrap_or(Raw::literal("{}"));
        if schema.object().ok().and_then(|s| s.string("type")).as_deref() != Some("object") {
            return Err(named("the input schema must have \"type\": \"object\"".into()));
        }
        let input = Validator::new(&schema).map_err(|e| named(format!("input: {e}")))?;
        let output = match self.definition.get(OUTPUT) {
            None => None,
            Some(schema) => Some(Validator::new(schema).map_err(|e| named(format!("output: {e}")))?),
        };
        // A schema that cannot be used is an error in every build.
        let output = output.filter(|_| CHECKS_TYPED || !self.typed_output);
        let mirrors = proto::header::header_params(&schema).map_err(named)?.into();
        Ok(Ready { definition: Raw::from(self.definition), handler: self.handler, input, output, mirrors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Json;

    fn checked(tool: Tool) -> bool {
        tool.ready().ok().unwrap().output.is_some()
    }

    #[test]
    fn a_schema_that_is_written_by_hand_is_checked_in_every_build() {
        let typed = || Tool::new("t", "Gives a number.", || async { Json(vec![1]) });
        let any = serde_json::json!({});
        assert_eq!(checked(typed()), CHECKS_TYPED);
        assert!(checked(typed().output_schema(&any)));
        assert!(checked(typed().with("outputSchema", &any)));
        let definition =
            serde_json::json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": any});
        assert!(checked(Tool::from_json(&definition, || async { "text" }).unwrap()));
    }
}
