//! Progress and log messages of a call, written in the revision of the client.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use spec::{Level, Notice, Revision, Rules, meta};

use crate::gates::project;
use crate::gates::repair;
use crate::json::{Object, Raw};
use crate::model::event::Event;
use crate::model::listen::Change;
use crate::rpc::wire;

/// The notifications of one request, on their way to the peer that sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stream {
    #[serde(with = "crate::saved::revision")]
    revision: Revision,
    token: Option<Raw>,
    #[serde(with = "crate::saved::number")]
    last: f64,
    #[serde(with = "crate::saved::level")]
    level: Option<Level>,
}

impl Stream {
    /// For a request with this progress token and log level. Without a token there is no progress, without a
    /// level there are no log messages.
    pub fn new(rules: &Rules, token: Option<Raw>, level: Option<Level>) -> Stream {
        Stream { revision: rules.revision, token, last: f64::NEG_INFINITY, level }
    }

    /// The rules of the peer.
    pub fn rules(&self) -> &'static Rules {
        self.revision.rules()
    }

    /// The notification for an event, where the peer wants one. Progress that does not increase is left out,
    /// since the protocol promises that it does, and what is none is too.
    pub fn event(&mut self, event: Event) -> Option<Bytes> {
        match event {
            Event::Progress(mut params) => {
                let token = self.token.clone()?;
                let progress: f64 = params.get("progress")?.as_str().parse().ok()?;
                if progress <= self.last {
                    return None;
                }
                self.last = progress;
                params.set_first("progressToken", token);
                repair::notice(&mut params, Notice::Progress.row()).ok()?;
                Some(notification(Notice::Progress, params, self.rules()))
            }
            Event::Log(level, mut params) => {
                if self.level.is_none_or(|least| level < least) {
                    return None;
                }
                repair::notice(&mut params, Notice::Message.row()).ok()?;
                Some(notification(Notice::Message, params, self.rules()))
            }
            // It is for the connection, and no message.
            Event::Release(_) => None,
        }
    }
}

/// A notification in the form of a revision.
pub fn notification(notice: Notice, mut params: Object, rules: &Rules) -> Bytes {
    let row = notice.row();
    if row.params.concerns(rules.revision) {
        project::object(&mut params, row.params, rules.revision);
    }
    wire::notification(row.wire, (!params.is_empty()).then_some(&params))
}

/// The notification of a change, tagged with a listen where it belongs to one.
pub fn change(change: &Change, subscription: Option<&Raw>, rules: &Rules) -> Option<Bytes> {
    let notice = change.notice()?;
    let mut params = Object::new();
    if let Some(id) = subscription {
        params.set(meta::META, Raw::from(Object::new().with(meta::SUBSCRIPTION_ID, id.clone())));
    }
    if let Change::Resource(uri) = change {
        params.set("uri", &**uri);
    }
    Some(notification(notice, params, rules))
}
