//! `completion/complete`: which completer is meant, and what it gives.

use std::collections::HashMap;

use proto::{Object, Raw, Rejection, Request};

use crate::complete::{self, Completer, CompletionArgument};
use crate::error::Error;
use crate::guard::caught;
use crate::offer::Offer;
use crate::params::{clipped, named};
use crate::server::Server;

impl Server {
    pub(crate) async fn complete(&self, offer: &Offer, request: &Request) -> Result<Object, Rejection> {
        self.0.completions.check(&request.peer.principal)?;
        let (completer, typed) = completer(offer, request)?;
        let mut values = match completer {
            Some(completer) => caught(async move { Ok(completer(typed).await) })
                .await
                .map_err(|Error(kind)| kind.rejection())?,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(complete::MOST);
        let completion =
            serde_json::json!({"values": values, "total": total, "hasMore": total > complete::MOST});
        Ok(Object::new().with("completion", Raw::of(&completion)))
    }
}

/// What completes the argument that is asked about, and what is known of it.
fn completer(offer: &Offer, request: &Request) -> Result<(Option<Completer>, CompletionArgument), Rejection> {
    let params = &request.params;
    let wrong = |why: String| Rejection::Params(why);
    let part = |name: &str| {
        let object = params.get(name).and_then(|raw| raw.object().ok());
        object.ok_or_else(|| wrong(format!("{name:?} is required, and must be an object")))
    };
    let (reference, argument) = (part("ref")?, part("argument")?);
    let (name, typed) = (named(&argument, "name")?, named(&argument, "value")?);
    let completer = match reference.string("type").as_deref() {
        Some("ref/prompt") => {
            let prompt = named(&reference, "name")?;
            let found = offer.prompts.get(&prompt);
            let found = found.ok_or_else(|| wrong(format!("there is no prompt {:?}", clipped(&prompt))))?;
            let argument = found.arguments.iter().find(|a| a.name == *name);
            let unknown = || wrong(format!("{prompt} has no argument {:?}", clipped(&name)));
            argument.ok_or_else(unknown)?.complete.clone()
        }
        Some("ref/resource") => {
            let uri = named(&reference, "uri")?;
            let found = offer.templates.get(&uri);
            let found =
                found.ok_or_else(|| wrong(format!("there is no resource template {:?}", clipped(&uri))))?;
            if !found.template.variables().any(|v| v == &*name) {
                return Err(wrong(format!("{uri} has no variable {:?}", clipped(&name))));
            }
            found.completers.get(&*name).cloned()
        }
        _ => return Err(wrong("\"ref\" must have the type ref/prompt or ref/resource".into())),
    };
    // Where the revision has no such field it is one that nobody knows.
    let field = request.method.row().params.field("context");
    let exists = field.is_some_and(|field| field.exists.contains(request.peer.revision));
    let arguments = match params.get("context").filter(|_| exists) {
        None => HashMap::new(),
        Some(context) => {
            let arguments = context.object().ok().map(|context| context.get("arguments").cloned());
            let arguments = arguments.ok_or_else(|| wrong("\"context\" must be an object".into()))?;
            let read = arguments.map(|raw| raw.read()).transpose();
            let not = |_| wrong("\"context.arguments\" must be an object of strings".into());
            read.map_err(not)?.unwrap_or_default()
        }
    };
    Ok((completer, CompletionArgument { value: typed.to_string(), arguments }))
}
