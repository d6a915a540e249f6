//! The rules in force: by name (`named`), with overrides for keys and patterns of keys, or inline with a request.
//! `live` swaps them as a whole while the server runs.

mod algorithm;
pub(crate) mod inline;
mod live;
mod named;
mod overrides;
mod pattern;

pub(crate) use algorithm::AlgorithmText;
pub(crate) use live::Live;
pub(crate) use named::{InlineForbidden, Resolved, Rules, UnknownRule};
pub(crate) use overrides::{Override, Overrides, PATTERNS_MAX};
