//! Handlers in axum's manner: async functions whose arguments are taken from the call.

use std::sync::Arc;

use proto::{BoxFuture, Raw, Rejection};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::content::{Content, ToolResult};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::schema::{value_of, with_integers};

/// Something that a handler can take: [`Args`] and [`Cx`].
pub trait FromCall: Sized + Send + 'static {
    /// Takes it from the call.
    ///
    /// # Errors
    /// When the call does not have it.
    fn from_call(cx: &Cx) -> Result<Self>;

    /// The schema of the tool's arguments, where this says something about them.
    fn input() -> Option<Raw> {
        None
    }
}

/// The call's arguments, as a type that says what they are. Its [`JsonSchema`] becomes the tool's input schema.
#[derive(Clone, Copy, Debug)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn from_call(cx: &Cx) -> Result<Self> {
        let read = cx.arguments().read().or_else(|error| {
            let value = value_of(cx.arguments()).map(with_integers);
            value.ok().and_then(|value| serde_json::from_value(value).ok()).ok_or(error)
        });
        read.map(Args).map_err(|e| Error::reject(Rejection::Params(format!("the arguments do not fit: {e}"))))
    }

    fn input() -> Option<Raw> {
        Some(schema_of::<T>())
    }
}

impl FromCall for Cx {
    fn from_call(cx: &Cx) -> Result<Self> {
        Ok(cx.clone())
    }
}

/// The JSON Schema (2020-12) of a type.
pub(crate) fn schema_of<T: JsonSchema>() -> Raw {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    Raw::of(&generator.into_root_schema_for::<T>())
}

/// Something that a tool can return: text, [`Content`], [`ToolResult`], [`Json`], or a [`Result`] of these.
pub trait Reply: Send + 'static {
    /// As a tool's result.
    ///
    /// # Errors
    /// The handler's own.
    fn into_result(self) -> Result<ToolResult>;

    /// The schema of structured results, where they are.
    fn output() -> Option<Raw> {
        None
    }
}

/// A structured result. The type's [`JsonSchema`] becomes the tool's output schema.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send + 'static> Reply for Json<T> {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::structured(&self.0))
    }

    fn output() -> Option<Raw> {
        Some(schema_of::<T>())
    }
}

impl Reply for ToolResult {
    fn into_result(self) -> Result<ToolResult> {
        Ok(self)
    }
}

impl Reply for () {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::default())
    }
}

impl Reply for String {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::new([Content::text(self)]))
    }
}

impl Reply for &'static str {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::new([Content::text(self)]))
    }
}

impl Reply for Content {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::new([self]))
    }
}

impl Reply for Vec<Content> {
    fn into_result(self) -> Result<ToolResult> {
        Ok(ToolResult::new(self))
    }
}

impl<T: Reply, E: Into<Error> + Send + 'static> Reply for Result<T, E> {
    fn into_result(self) -> Result<ToolResult> {
        self.map_err(Into::into)?.into_result()
    }

    fn output() -> Option<Raw> {
        T::output()
    }
}

/// A tool's handler: an async function of up to two [`FromCall`] arguments that returns a [`Reply`].
pub trait Handler<Taken>: Send + Sync + 'static {
    /// Runs it.
    fn run(&self, cx: Cx) -> BoxFuture<'static, Result<ToolResult>>;
    /// The schema of its arguments.
    fn input() -> Option<Raw>;
    /// The schema of its structured result.
    fn output() -> Option<Raw>;
}

/// A handler whose types are forgotten.
pub(crate) type ToolHandler = Arc<dyn Fn(Cx) -> BoxFuture<'static, Result<ToolResult>> + Send + Sync>;

macro_rules! handler {
    ($($taken:ident),*) => {
        impl<F, Fut, R, $($taken),*> Handler<($($taken,)*)> for F
        where
            F: Fn($($taken),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: Reply,
            $($taken: FromCall,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn run(&self, cx: Cx) -> BoxFuture<'static, Result<ToolResult>> {
                $(let $taken = match $taken::from_call(&cx) {
                    Ok(taken) => taken,
                    Err(error) => return Box::pin(std::future::ready(Err(error))),
                };)*
                let future = self($($taken),*);
                Box::pin(async move { future.await.into_result() })
            }

            fn input() -> Option<Raw> {
                let inputs: Vec<Option<Raw>> = vec![$($taken::input()),*];
                inputs.into_iter().flatten().next()
            }

            fn output() -> Option<Raw> {
                R::output()
            }
        }
    };
}

handler!();
handler!(A);
handler!(A, B);
