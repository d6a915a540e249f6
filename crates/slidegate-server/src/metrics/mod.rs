//! Metrics of a running server, in the text format of Prometheus.
//!
//! Rules are labels, keys never, because keys are unbounded; [`Top`](crate::top::Top) lists the busiest keys. Counting
//! takes no lock and allocates nothing, and threads count in separate stripes.

mod decisions;
mod exposition;
mod histogram;
mod operations;
mod outage_answers;
mod process;
mod registry;
mod store_cause;
mod striped;
#[cfg(test)]
mod tests;

pub(crate) use decisions::{ChargeOutcome, Transport};
pub(crate) use exposition::CONTENT_TYPE;
pub(crate) use registry::Metrics;
#[cfg(test)]
pub(crate) use registry::StoreFigures;
pub(crate) use store_cause::StoreCause;
