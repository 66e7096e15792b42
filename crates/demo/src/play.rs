//! Tools, resources and prompts for people.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dateline::{Args, Builder, Context, Error, Json, Prompt, Resource, ResourceContents, Result, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, json};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What comes back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

/// A sum; a whole one is written without a fraction.
fn sum(Add { a, b }: Add) -> Result<Sum> {
    let sum = a + b;
    #[allow(clippy::cast_possible_truncation)]
    let whole = (sum.fract() == 0.0 && sum.abs() < 9e15).then_some(sum as i64);
    let sum = whole.map(Number::from).or_else(|| Number::from_f64(sum));
    Ok(Sum { sum: sum.ok_or_else(|| Error::new("the sum is too large"))? })
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: Number,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Countdown {
    /// Where to start.
    #[schemars(range(min = 0, max = 10_000))]
    from: u32,
    /// Milliseconds between two steps.
    #[schemars(range(max = 60_000))]
    interval_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The region to ask, mirrored in a header over HTTP.
    #[serde(default)]
    #[schemars(with = "String")]
    region: Option<String>,
    query: String,
}

#[derive(Deserialize, JsonSchema)]
struct Haiku {
    /// What it is about.
    topic: String,
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

#[derive(Deserialize, JsonSchema)]
struct Compute {
    /// How long it takes.
    #[schemars(range(min = 0, max = 3600))]
    seconds: f64,
    label: Option<String>,
}

/// The ids of calls that were cancelled.
type Cancelled = Arc<Mutex<Vec<String>>>;

/// Notes the id of a call that is dropped before it is done.
struct Unfinished(Option<(String, Cancelled)>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some((id, cancelled)) = self.0.take() {
            cancelled.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
    }
}

pub(crate) fn add(server: Builder) -> Builder {
    let cancelled = Cancelled::default();
    let listed = Arc::clone(&cancelled);
    server
        .tool(Tool::new("echo", "Says what you say.", |Args(echo): Args<Echo>| async move { echo.message }))
        .tool(
            Tool::new("add", "Adds two numbers.", |Args(add): Args<Add>| async move { sum(add).map(Json) })
                .title("Add")
                .read_only()
                .idempotent()
                .open_world(false)
                .with("icons", json!([{"src": PLUS, "mimeType": "image/svg+xml", "sizes": ["any"]}]))
                .with("_meta", json!({"example.dateline/level": "easy"})),
        )
        .tool(Tool::new(
            "countdown",
            "Counts down to zero, reports progress at each step, and can be cancelled.",
            move |Args(args): Args<Countdown>, cx: Context| countdown(args, cx, Arc::clone(&cancelled)),
        ))
        .tool(Tool::new(
            "cancelled_calls",
            "Lists the ids of the calls that were cancelled so far.",
            move || {
                let ids = listed.lock().unwrap_or_else(PoisonError::into_inner).join(" ");
                async move { ids }
            },
        ))
        .tool(
            Tool::new("query_region", "Asks a region something.", |Args(args): Args<Query>| async move {
                format!("{}: {}", args.region.as_deref().unwrap_or("anywhere"), args.query)
            })
            .header_param("region", "Region"),
        )
        .tool(Tool::new(
            "touch_resource",
            "Tells whoever watches a resource that it changed.",
            |Args(touch): Args<Touch>, cx: Context| async move {
                cx.notifier().resource_updated(&touch.uri);
                format!("touched {}", touch.uri)
            },
        ))
        .tool(Tool::new("slow_compute", "Takes a while.", |Args(args): Args<Compute>| async move {
            tokio::time::sleep(Duration::from_secs_f64(args.seconds.clamp(0.0, 3600.0))).await;
            format!("{} is done after {} s", args.label.as_deref().unwrap_or("it"), args.seconds)
        }))
        .resource(
            Resource::fixed(
                "Welcome",
                ResourceContents::text("demo://welcome", "text/plain", "This is dateline's demo server."),
            )
            .with("description", "A word of welcome."),
        )
        .prompt(
            Prompt::new("haiku", "Asks for a haiku.", |Args(haiku): Args<Haiku>| async move {
                format!("Write a haiku about {}.", haiku.topic)
            })
            .choices("topic", ["rain", "rust", "revisions", "the date line"]),
        )
}

async fn countdown(args: Countdown, cx: Context, cancelled: Cancelled) -> String {
    let mut unfinished = Unfinished(Some((cx.id().to_owned(), cancelled)));
    for done in 0..=args.from {
        let left = args.from - done;
        cx.progress(f64::from(done), Some(f64::from(args.from)), Some(&format!("{left} left"))).await;
        if left > 0 {
            tokio::time::sleep(Duration::from_millis(args.interval_ms)).await;
        }
    }
    unfinished.0 = None;
    format!("counted down from {}", args.from)
}

const PLUS: &str = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxwYXRoIGQ9Ik0zIDBoMnYzaDN2Mkg1djNIM1Y1SDBWM2gzeiIvPjwvc3ZnPg==";
