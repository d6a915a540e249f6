//! Text that users write and read: JSON and its fields, names that were misspelt, and how errors quote it.

pub(crate) mod fields;
pub(crate) mod json;
mod nearest;
mod shown;

pub(crate) use nearest::{did_you_mean, nearest};
pub(crate) use shown::{escaped, shown};
