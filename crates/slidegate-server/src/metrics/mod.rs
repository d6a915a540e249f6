//! What is counted while a server runs, and the text in which Prometheus reads it.
//!
//! Rules are labels, keys never: there is no end to keys. Who is limited most is told by
//! [`Top`](crate::top::Top). Counting takes no lock and allocates nothing, and threads count apart.

mod decisions;
mod exposition;
mod histogram;
mod operations;
mod process;
mod registry;
mod striped;
#[cfg(test)]
mod tests;

pub(crate) use decisions::{Outcome, Transport};
pub(crate) use exposition::CONTENT_TYPE;
pub(crate) use registry::Metrics;
