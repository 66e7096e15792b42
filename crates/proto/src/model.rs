//! The types that edges and services share: requests, answers, questions, changes, and the service trait.

pub(crate) mod boxed;
pub(crate) mod capability;
pub(crate) mod event;
pub(crate) mod input;
pub(crate) mod listen;
pub(crate) mod params;
pub(crate) mod prepared_filter;
pub(crate) mod rejection;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod watchers;
