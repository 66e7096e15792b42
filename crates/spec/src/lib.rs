//! What exists in which revision of the Model Context Protocol, and how each revision behaves.
//!
//! **Rows** say what exists: [`Method`], [`Notice`], [`fields`], [`Code`], [`Capability`], [`meta`] keys and
//! [`header`] names. Each row names the [`Revisions`] that have it. **Columns** say how a revision behaves: [`Rules`]
//! holds named values, and code reads them instead of comparing dates. There is one table of each kind. Nothing else
//! in the workspace writes down the name of a method, the number of a code or the date of a revision.

mod code;
pub mod fields;
pub mod header;
mod level;
pub mod meta;
mod method;
mod question;
mod revision;
mod rules;
pub mod shape;
mod shapes;
pub mod skills;
mod table;
pub mod tasks;

pub use code::Code;
pub use level::Level;
pub use method::{Capability, Direction, Home, Method, MethodRow, Notice, NoticeRow};
pub use question::Question;
pub use revision::{Era, Revision, Revisions};
pub use rules::{Column, Disconnect, InvalidInput, Rules, Setting, VersionHeader};
pub use shape::Shape;
pub use shapes::shapes;
