//! Handlers as in axum: async functions that take parts of the request and return what becomes the response.

use std::collections::HashMap;
use std::sync::Arc;

use proto::{BoxFuture, Object, Raw, Rejection};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::content::{Content, ResourceContents, ToolResult};
use crate::contents::Contents;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::messages::Messages;
use crate::schema::{value_of, with_integers};
use crate::variables::Variables;

/// A type that a handler can take as an argument: [`Args`], [`Variables`], [`State`](crate::State),
/// [`Headers`](crate::Headers), [`RequestExtension`](crate::RequestExtension) or [`Context`].
pub trait FromRequest: Sized + Send + 'static {
    /// Takes the value from a request.
    ///
    /// # Errors
    /// When the request does not have it.
    fn from_request(cx: &Context) -> Result<Self>;

    /// Gives the schema of the call's arguments, where this type determines it.
    fn input_schema() -> Option<Raw> {
        None
    }
}

/// The arguments of a tool, a prompt or an extension's method, or the variables of a resource template, as a Rust type.
///
/// The type's [`JsonSchema`] becomes the tool's input schema, or the prompt's list of arguments.
#[derive(Clone, Copy, Debug)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromRequest for Args<T> {
    fn from_request(cx: &Context) -> Result<Self> {
        let read = cx.arguments().read().or_else(|error| {
            let value = value_of(cx.arguments()).map(with_integers);
            value.ok().and_then(|value| serde_json::from_value(value).ok()).ok_or(error)
        });
        read.map(Args).map_err(|e| Error(Kind::Unfit(format!("the arguments do not fit: {e}"))))
    }

    fn input_schema() -> Option<Raw> {
        Some(schema_of::<T>())
    }
}

impl FromRequest for Context {
    fn from_request(cx: &Context) -> Result<Self> {
        Ok(cx.clone())
    }
}

impl FromRequest for Variables {
    fn from_request(cx: &Context) -> Result<Self> {
        Ok(cx.variables().clone())
    }
}

/// The JSON Schema (2020-12) of a type. Types within it stand where they are used, unless they hold themselves: that is
/// easier to read, and header annotations count only there.
pub(crate) fn schema_of<T: JsonSchema>() -> Raw {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a model.
    schema.remove("title");
    Raw::of(&schema)
}

/// A type that a handler can return. `R` is the result that the client gets.
///
/// | result | made of |
/// |---|---|
/// | a tool's [`ToolResult`] | text, [`Content`] or several, [`Json`], `()` |
/// | a prompt's [`Messages`] | text or [`Content`], as one message of the user |
/// | a resource's [`Contents`] | text or bytes, [`ResourceContents`] or several; an [`Option`] of these for one that may not exist |
/// | an extension's [`Object`] | [`Json`], a [`Value`] that is an object |
///
/// and a [`Result`] of any of these.
pub trait IntoResponse<R>: Send + 'static {
    /// Makes the result.
    ///
    /// # Errors
    /// When the handler failed.
    fn into_response(self) -> Result<R>;

    /// Gives the schema of the structured result, where there is one.
    fn output_schema() -> Option<Raw> {
        None
    }
}

impl<M, T: IntoResponse<M>, E: Into<Error> + Send + 'static> IntoResponse<M> for Result<T, E> {
    fn into_response(self) -> Result<M> {
        self.map_err(Into::into)?.into_response()
    }

    fn output_schema() -> Option<Raw> {
        T::output_schema()
    }
}

/// A structured result. The type's [`JsonSchema`] becomes the tool's output schema.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send + 'static> IntoResponse<ToolResult> for Json<T> {
    fn into_response(self) -> Result<ToolResult> {
        Ok(ToolResult::structured(&self.0))
    }

    fn output_schema() -> Option<Raw> {
        Some(schema_of::<T>())
    }
}

impl<T: Serialize + Send + 'static> IntoResponse<Object> for Json<T> {
    fn into_response(self) -> Result<Object> {
        Raw::of(&self.0).object().map_err(|e| Error::new(format_args!("the result is no object: {e}")))
    }
}

impl IntoResponse<Object> for Value {
    fn into_response(self) -> Result<Object> {
        Json(self).into_response()
    }
}

/// What is made of something that is given back as it is.
macro_rules! reply {
    ($($from:ty => $made:ty: |$it:ident| $result:expr;)*) => {$(
        impl IntoResponse<$made> for $from {
            fn into_response(self) -> Result<$made> {
                let $it = self;
                Ok($result)
            }
        }
    )*};
}

reply! {
    ToolResult => ToolResult: |it| it;
    () => ToolResult: |_it| ToolResult::default();
    String => ToolResult: |it| ToolResult::new([Content::text(it)]);
    &'static str => ToolResult: |it| ToolResult::new([Content::text(it)]);
    Content => ToolResult: |it| ToolResult::new([it]);
    Vec<Content> => ToolResult: |it| ToolResult::new(it);
    Messages => Messages: |it| it;
    String => Messages: |it| Messages::new().user(it);
    &'static str => Messages: |it| Messages::new().user(it);
    Content => Messages: |it| Messages::new().user(it);
    Contents => Contents: |it| it;
    String => Contents: |it| Contents::Text(it);
    &'static str => Contents: |it| Contents::Text(it.to_owned());
    Vec<u8> => Contents: |it| Contents::Bytes(it);
    ResourceContents => Contents: |it| Contents::Resources(vec![it]);
    Vec<ResourceContents> => Contents: |it| Contents::Resources(it);
    Object => Object: |it| it;
}

impl<T: IntoResponse<Contents>> IntoResponse<Contents> for Option<T> {
    fn into_response(self) -> Result<Contents> {
        self.map_or(Ok(Contents::NotFound), IntoResponse::into_response)
    }
}

/// A handler: an async function of up to three [`FromRequest`] arguments that returns a [`IntoResponse`].
pub trait Handler<Taken, Made>: Send + Sync + 'static {
    /// Runs the handler for one request.
    fn run(&self, cx: Context) -> BoxFuture<'static, Result<Made>>;
    /// Gives the schema of its arguments.
    fn input_schema() -> Option<Raw>;
    /// Gives the schema of its structured result.
    fn output_schema() -> Option<Raw>;
}

/// A handler whose types are forgotten.
pub(crate) type Run<Made> = Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Made>> + Send + Sync>;

pub(crate) fn run<T, M, H: Handler<T, M>>(handler: H) -> Run<M> {
    Arc::new(move |cx| handler.run(cx))
}

macro_rules! handler {
    ($($taken:ident),*) => {
        impl<F, Fut, R, M, $($taken),*> Handler<($($taken,)*), M> for F
        where
            F: Fn($($taken),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: IntoResponse<M>,
            M: Send + 'static,
            $($taken: FromRequest,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn run(&self, cx: Context) -> BoxFuture<'static, Result<M>> {
                $(let $taken = match $taken::from_request(&cx) {
                    Ok(taken) => taken,
                    Err(error) => return Box::pin(std::future::ready(Err(error))),
                };)*
                let future = self($($taken),*);
                Box::pin(async move { future.await.into_response() })
            }

            fn input_schema() -> Option<Raw> {
                let inputs: Vec<Option<Raw>> = vec![$($taken::input_schema()),*];
                inputs.into_iter().flatten().next()
            }

            fn output_schema() -> Option<Raw> {
                R::output_schema()
            }
        }
    };
}

handler!();
handler!(A);
handler!(A, B);
handler!(A, B, C);

/// What is known of arguments that come as text: their names, and which of them are something else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    /// Name, description, and whether it is required, in the order of the schema.
    pub(crate) fields: Vec<(String, String, bool)>,
    /// The type of those that are not text.
    kinds: HashMap<String, String>,
}

impl Named {
    /// Reads the schema of a type.
    pub(crate) fn read(schema: Option<Raw>) -> Named {
        let schema: Value = schema.and_then(|raw| raw.read().ok()).unwrap_or_default();
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
        };
        let mut named = Named::default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let description = property["description"].as_str().unwrap_or_default().to_owned();
            named.fields.push((name.clone(), description, required(name)));
            let kinds = match &property["type"] {
                Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                kind => Vec::from_iter(kind.as_str()),
            };
            if let Some(kind) = kinds.iter().find(|kind| matches!(**kind, "integer" | "number" | "boolean")) {
                named.kinds.insert(name.clone(), (*kind).to_owned());
            }
        }
        named
    }

    /// The arguments with numbers and truth values where the type has them.
    ///
    /// # Errors
    /// Says which one is not of its type.
    pub(crate) fn typed<'a>(
        &self,
        texts: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Raw, Rejection> {
        let mut arguments = serde_json::Map::new();
        for (name, text) in texts {
            let value = match self.kinds.get(name) {
                None => Value::from(text.as_str()),
                Some(kind) => {
                    let read: Option<Value> = serde_json::from_str(text).ok();
                    let fits = |value: &Value| match kind.as_str() {
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_i64() || value.is_u64(),
                        _ => value.is_number(),
                    };
                    read.filter(fits).ok_or_else(|| {
                        Rejection::Params(format!("the argument {name:?} must be of type {kind}"))
                    })?
                }
            };
            arguments.insert(name.clone(), value);
        }
        Ok(Raw::of(&arguments))
    }
}
