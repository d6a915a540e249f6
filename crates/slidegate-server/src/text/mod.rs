//! Text that users write and read: JSON and its fields, and how errors quote input and suggest names.

pub(crate) mod fields;
pub(crate) mod json;
mod quoting;

pub(crate) use quoting::{did_you_mean, escaped, excerpt, nearest};
