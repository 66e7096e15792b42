//! Error codes.

use crate::revision::{Revision, Revisions};
use crate::table::table;

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

/// What holds of a code.
struct CodeRow {
    code: Code,
    number: i64,
    exists: Revisions,
}

/// A row; [`table!`] writes the code of each.
const fn code(number: i64, exists: Revisions) -> CodeRow {
    CodeRow { code: Code::InternalError, number, exists }
}

table! {
    ROWS, row(code: Code) -> CodeRow {
        ParseError: code(-32700, Revisions::ALL),
        InvalidRequest: code(-32600, Revisions::ALL),
        MethodNotFound: code(-32601, Revisions::ALL),
        InvalidParams: code(-32602, Revisions::ALL),
        InternalError: code(-32603, Revisions::ALL),
        ResourceNotFound: code(-32002, Revisions::LEGACY),
        UrlElicitationRequired: code(-32042, Revisions::only(Revision::V2025_11_25)),
        HeaderMismatch: code(-32020, Revisions::MODERN),
        MissingRequiredClientCapability: code(-32021, Revisions::MODERN),
        UnsupportedProtocolVersion: code(-32022, Revisions::MODERN),
    }
}

/// The codes that are the specification's alone since 2026-07-28: a number in it that no row gives to the
/// peer's revision is never sent.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

impl Code {
    /// Every code.
    pub fn all() -> impl Iterator<Item = Code> {
        ROWS.iter().map(|row| row.code)
    }

    /// The number on the wire.
    pub fn number(self) -> i64 {
        row(self).number
    }

    /// The revisions that define it.
    pub fn exists(self) -> Revisions {
        row(self).exists
    }

    /// Finds a code by its number.
    pub fn parse(number: i64) -> Option<Code> {
        ROWS.iter().find(|row| row.number == number).map(|row| row.code)
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
