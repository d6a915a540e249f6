//! Text that users write and read: JSON and its fields, names that were misspelt, and how errors quote it.

pub(crate) mod fields;
pub(crate) mod json;
mod wording;

pub(crate) use wording::{did_you_mean, escaped, nearest, shown};
