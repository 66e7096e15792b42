//! Which era a request belongs to that comes outside of a session.

use spec::{Era, Method, Revisions};

use crate::gates::admit;
use crate::rpc::wire;

/// What a request outside of a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EraChoice {
    /// A modern request, complete in itself.
    Modern,
    /// An `initialize` request, which opens a session.
    Session,
    /// A `ping` request, which legacy clients may send before they open a session.
    Ping,
    /// The request shows no era.
    Neither,
}

/// Says what a request outside of a session is, where these revisions are served.
///
/// A request that names its revision in `_meta` is modern, whatever its method: the mark decides first.
pub(super) fn choose(call: &wire::Call, served: Revisions) -> EraChoice {
    if served.serves(Era::Modern) && admit::is_marked_modern(call) {
        return EraChoice::Modern;
    }
    match Method::parse(&call.method).filter(|_| served.serves(Era::Legacy)) {
        Some(Method::Initialize) => EraChoice::Session,
        Some(Method::Ping) => EraChoice::Ping,
        _ => EraChoice::Neither,
    }
}
