//! Text that users write and read: JSON and its fields, how errors quote input and suggest names, and how durations are
//! rounded.

pub(crate) mod fields;
pub(crate) mod json;
mod quoting;
mod rounding;

pub(crate) use quoting::{did_you_mean, escaped, excerpt, nearest};
pub(crate) use rounding::{whole_ms, whole_us};

/// May precede the text of a file. It is skipped.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
