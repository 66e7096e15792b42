//! Error codes.

use crate::revision::{Revision, Revisions};
use crate::table::table;

/// An error code that JSON-RPC or the protocol defines.
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

/// The number of a code, and the revisions that define it.
struct CodeRow {
    code: Code,
    number: i64,
    exists: Revisions,
}

/// Returns a row. The macro `table!` fills in which code it belongs to.
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

/// The numbers that the specification reserves since 2026-07-28. A peer is sent one of them only where its revision
/// defines it.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

impl Code {
    /// Iterates over every code.
    pub fn all() -> impl Iterator<Item = Code> {
        ROWS.iter().map(|row| row.code)
    }

    /// Returns the number that messages carry.
    pub fn number(self) -> i64 {
        row(&self).number
    }

    /// Returns the revisions that define the code.
    pub fn exists(self) -> Revisions {
        row(&self).exists
    }

    /// Finds the code of this number.
    pub fn parse(number: i64) -> Option<Code> {
        ROWS.iter().find(|row| row.number == number).map(|row| row.code)
    }

    /// Returns whether a peer of this revision may be sent this number.
    ///
    /// A number that some revision defines is sent only in revisions that define it; other reserved numbers are never
    /// sent. Servers may use all other numbers as they like.
    pub fn may_send(number: i64, revision: Revision) -> bool {
        match Code::parse(number) {
            Some(code) => code.exists().contains(revision),
            None => !RESERVED.contains(&number),
        }
    }
}
