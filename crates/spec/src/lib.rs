//! What exists in which revision of the Model Context Protocol, and how each revision behaves.
//!
//! **Rows** say what exists: [`Method`], [`Notice`], [`fields`], [`Code`], [`Capability`], [`meta`] keys and
//! [`header`] names, each with the [`Revisions`] that have it. **Columns** say how a revision behaves:
//! [`Rules`], named values that code reads instead of comparing dates. There is one table of each; nothing
//! else in the workspace names a method, a code or a date.

mod code;
pub mod fields;
pub mod header;
pub mod meta;
mod method;
mod revision;
mod rules;
pub mod shape;
mod shapes;
pub mod skills;

pub use code::Code;
pub use method::{Capability, Direction, Home, Method, MethodRow, Notice, NoticeRow, Question};
pub use revision::{Era, Revision, Revisions};
pub use rules::{Column, Disconnect, InvalidInput, LogScope, Rules, Setting, VersionHeader};
pub use shape::Shape;
pub use shapes::shapes;
