//! The sample of one slice.

use serde::{Deserialize, Serialize};
use slidegate_bench::statistics::Spread;

use crate::subject::Subject;

/// One entry of the JSON file, with one of the three figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<ClosedLoop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<OpenLoop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryFigures>,
}

/// A slice of `wrk` at the maximum rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClosedLoop {
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    /// Processor time of the server.
    pub(crate) server_us: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

/// A slice at a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenLoop {
    /// Of the maximum rate that the server reached with `wrk`.
    pub(crate) percent: u64,
    pub(crate) per_second: u64,
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    pub(crate) p50_us: u64,
    pub(crate) p90_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
}

/// Resident memory before and after filling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryFigures {
    pub(crate) keys: u64,
    pub(crate) empty_bytes: u64,
    pub(crate) bytes: u64,
}

impl Sample {
    pub(crate) fn of(subject: Subject) -> Self {
        Self { subject: subject.to_string(), closed: None, open: None, memory: None }
    }
}

impl ClosedLoop {
    pub(crate) fn per_second(&self) -> u64 {
        self.requests * 1_000_000 / self.elapsed_us.max(1)
    }

    /// Nanoseconds of the server's processor time per request.
    pub(crate) fn server_ns(&self) -> u64 {
        self.server_us * 1_000 / self.requests.max(1)
    }
}

/// The spread of a figure over the samples of a subject.
fn spread(samples: &[Sample], subject: Subject, figure: impl Fn(&Sample) -> Option<u64>) -> Option<Spread> {
    let name = subject.to_string();
    Spread::of(samples.iter().filter(|sample| sample.subject == name).filter_map(figure).collect())
}

/// A figure of the slices of `wrk`.
pub(crate) fn closed(samples: &[Sample], subject: Subject, figure: fn(&ClosedLoop) -> u64) -> Option<Spread> {
    spread(samples, subject, |sample| sample.closed.as_ref().map(figure))
}

/// A figure at a percentage of the maximum rate.
pub(crate) fn open(
    samples: &[Sample],
    subject: Subject,
    percent: u64,
    figure: fn(&OpenLoop) -> u64,
) -> Option<Spread> {
    spread(samples, subject, |sample| sample.open.as_ref().filter(|open| open.percent == percent).map(figure))
}

/// A figure of memory.
pub(crate) fn memory(
    samples: &[Sample],
    subject: Subject,
    figure: fn(&MemoryFigures) -> u64,
) -> Option<Spread> {
    spread(samples, subject, |sample| sample.memory.as_ref().map(figure))
}
