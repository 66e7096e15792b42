//! The commands of the program, one a file: each has its arguments, and `run`.

pub(crate) mod add;
pub(crate) mod call;
pub(crate) mod check_config;
pub(crate) mod demo;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod remove;
pub(crate) mod restart;
pub(crate) mod revisions;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stdio;
