//! What one slice found.

use serde::{Deserialize, Serialize};
use slidegate_bench::statistics::Spread;

use crate::subject::Subject;

/// One entry of the JSON file: one of the three.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<Closed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<Open>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Memory>,
}

/// As fast as `wrk` and the server go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    /// Processor time of the server.
    pub(crate) server_us: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

/// At a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// Of the most that the server reached with `wrk`.
    pub(crate) percent: u64,
    pub(crate) per_second: u64,
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    pub(crate) p50_us: u64,
    pub(crate) p90_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
}

/// Before and after the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) keys: u64,
    pub(crate) empty_bytes: u64,
    pub(crate) bytes: u64,
}

impl Sample {
    pub(crate) fn of(subject: Subject) -> Self {
        Self { subject: subject.to_string(), closed: None, open: None, memory: None }
    }
}

impl Closed {
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
pub(crate) fn closed(samples: &[Sample], subject: Subject, figure: fn(&Closed) -> u64) -> Option<Spread> {
    spread(samples, subject, |sample| sample.closed.as_ref().map(figure))
}

/// A figure at a share of the most.
pub(crate) fn open(
    samples: &[Sample],
    subject: Subject,
    percent: u64,
    figure: fn(&Open) -> u64,
) -> Option<Spread> {
    spread(samples, subject, |sample| sample.open.as_ref().filter(|open| open.percent == percent).map(figure))
}

/// A figure of memory.
pub(crate) fn memory(samples: &[Sample], subject: Subject, figure: fn(&Memory) -> u64) -> Option<Spread> {
    spread(samples, subject, |sample| sample.memory.as_ref().map(figure))
}
