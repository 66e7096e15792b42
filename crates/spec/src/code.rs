//! Error codes.

use crate::revision::{Revision, Revisions};

/// A JSON-RPC error code that the protocol gives a meaning to.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic/index#error-codes>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Code {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    InternalError,
    ResourceNotFound,
    UrlElicitationRequired,
    HeaderMismatch,
    MissingRequiredClientCapability,
    UnsupportedProtocolVersion,
}

/// Every code with its number and lifetime.
const ROWS: &[(Code, i64, Revisions)] = &[
    (Code::ParseError, -32700, Revisions::ALL),
    (Code::InvalidRequest, -32600, Revisions::ALL),
    (Code::MethodNotFound, -32601, Revisions::ALL),
    (Code::InvalidParams, -32602, Revisions::ALL),
    (Code::InternalError, -32603, Revisions::ALL),
    (Code::ResourceNotFound, -32002, Revisions::LEGACY),
    (Code::UrlElicitationRequired, -32042, Revisions::only(Revision::V2025_11_25)),
    (Code::HeaderMismatch, -32020, Revisions::MODERN),
    (Code::MissingRequiredClientCapability, -32021, Revisions::MODERN),
    (Code::UnsupportedProtocolVersion, -32022, Revisions::MODERN),
];

/// The codes that are the specification's alone since 2026-07-28: a number in it that no row gives to the
/// peer's revision is never sent.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

impl Code {
    /// Every code.
    pub fn all() -> impl Iterator<Item = Code> {
        ROWS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Code, i64, Revisions) {
        let found = ROWS.iter().find(|row| row.0 == self);
        found.unwrap_or(&ROWS[4])
    }

    /// The number on the wire.
    pub fn number(self) -> i64 {
        self.row().1
    }

    /// The revisions that define it.
    pub fn exists(self) -> Revisions {
        self.row().2
    }

    /// Finds a code by its number.
    pub fn parse(number: i64) -> Option<Code> {
        ROWS.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    /// Whether a peer of this revision may be sent this number at all: defined codes only where they are
    /// defined, and no other number of the reserved range.
    pub fn may_send(number: i64, revision: Revision) -> bool {
        match Code::parse(number) {
            Some(code) => code.exists().contains(revision),
            None => !RESERVED.contains(&number),
        }
    }
}
