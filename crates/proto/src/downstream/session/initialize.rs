//! The handshake of a session.

use std::sync::Arc;

use bytes::Bytes;
use spec::{Era, Method, Notice, Revision};

use crate::downstream::output::Served;
use crate::gates::{admit, project};
use crate::json::{Object, Raw};
use crate::model::capability::ClientCapabilities;
use crate::model::level::Level;
use crate::model::rejection::Rejection;
use crate::model::request::{Peer, Principal};
use crate::model::service::Description;
use crate::rpc::wire;

/// Reads an `initialize` request: who the client is, and the reply.
///
/// # Errors
/// When the request is not a proper one. A revision that is not served is not an error: the reply names another one.
pub(super) fn open(
    call: &wire::Call,
    served: &Served,
    principal: Principal,
) -> Result<(Peer, Bytes), Rejection> {
    let params = admit::opened(call.params.as_ref())?;
    let field = |name: &str| Rejection::Params(format!("initialize needs {name:?}"));
    let requested = params.string("protocolVersion").ok_or_else(|| field("protocolVersion"))?;
    // A null declares as much as an empty object.
    let declared = params.get("capabilities").ok_or_else(|| field("capabilities"))?;
    let capabilities = match declared.is_null() {
        true => Object::new(),
        false => kept(declared)?.object().map_err(|_| field("capabilities"))?,
    };
    let client = params.get("clientInfo").filter(|raw| !raw.is_null()).map(kept).transpose()?;
    let served_here = served.revisions;
    let revision = Revision::parse(&requested)
        .filter(|r| r.era() == Era::Legacy && served_here.contains(*r))
        .or_else(|| served_here.newest(Era::Legacy))
        .ok_or(Rejection::UnsupportedVersion { requested, served: served_here })?;
    let description = served.service.describe();
    let peer = Peer {
        revision,
        capabilities: Arc::new(ClientCapabilities::read(capabilities, revision)),
        client,
        // Where the client sets no level the server decides; the debug noise stays out.
        log_level: description.capabilities.satisfies(Notice::Message.row().needs).then_some(Level::Info),
        principal,
    };
    let reply = wire::result(&call.id, &initialized(&description, revision));
    Ok((peer, reply))
}

/// How long each thing may be that a client says of itself and that is kept as long as its session, in bytes: ten
/// times what a client with icons and extensions says.
const SAID: usize = 64 << 10;

/// What is kept as long as the session: without the message that it came in.
fn kept(said: &Raw) -> Result<Raw, Rejection> {
    let length = said.as_str().len();
    if length <= SAID {
        return Ok(Raw::trusted(said.as_str().into()));
    }
    Err(Rejection::Params(format!(
        "what initialize says of the client may be {SAID} bytes long each; this is {length} bytes long"
    )))
}

/// The result of `initialize`.
fn initialized(description: &Description, revision: Revision) -> Object {
    let mut result = Object::new()
        .with("protocolVersion", revision.as_str())
        .with("capabilities", Raw::from(description.capabilities.object()))
        .with("serverInfo", description.identity.clone());
    if let Some(instructions) = &description.instructions {
        result.set("instructions", instructions.as_str());
    }
    project::object(&mut result, Method::Initialize.row().result, revision);
    result
}
