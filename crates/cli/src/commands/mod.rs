//! The commands of the program, one a file.

pub(crate) mod logs;
pub(crate) mod restart;
pub(crate) mod status;
