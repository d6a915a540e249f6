//! How long something takes, in classic buckets from a microsecond to a second.

use std::time::Duration;

use super::exposition::{Exposition, Labels};
use super::seconds::seconds;
use super::striped::Striped;

/// Upper bounds of the buckets in nanoseconds, each inclusive: 1, 2, 5 and so on. What takes longer is counted too.
const BOUNDS_NS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// Where the sum of all times stands, behind the buckets and what is above them.
const SUM: usize = BOUNDS_NS.len() + 1;

/// Counts per bucket, and the sum of all times in nanoseconds.
#[derive(Debug)]
pub(super) struct Histogram {
    counters: Striped<{ SUM + 1 }>,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { counters: Striped::new() }
    }

    #[inline]
    pub(super) fn observe(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counters.add(BOUNDS_NS.partition_point(|&bound| bound < ns), 1);
        self.counters.add(SUM, ns);
    }

    /// Whether nothing was observed yet.
    pub(super) fn is_empty(&self) -> bool {
        self.counters.read()[..SUM].iter().all(|&count| count == 0)
    }

    /// Writes the samples of one set of labels.
    pub(super) fn expose(&self, to: &mut Exposition, labels: Labels) {
        let counters = self.counters.read();
        let mut count = 0;
        for (bucket, more) in counters[..SUM].iter().enumerate() {
            count += more;
            let bound = BOUNDS_NS.get(bucket).map_or_else(|| "+Inf".to_owned(), |&ns| seconds(ns));
            to.sample("_bucket", &[labels, &[("le", &bound)]].concat(), &count.to_string());
        }
        to.sample("_sum", labels, &seconds(counters[SUM]));
        to.sample("_count", labels, &count.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_buckets_cumulative() {
        let histogram = Histogram::new();
        assert!(histogram.is_empty());
        for ns in [0, 1_000, 1_001, 2_000, 1_000_000_000, 1_000_000_001, 3_000_000_000] {
            histogram.observe(Duration::from_nanos(ns));
        }
        assert!(!histogram.is_empty());
        let mut to = Exposition::default();
        to.family("took_seconds", "histogram", "How long.");
        histogram.expose(&mut to, &[("op", "check")]);
        let text = to.finish();
        for line in [
            r#"took_seconds_bucket{op="check",le="0.000001"} 2"#,
            r#"took_seconds_bucket{op="check",le="0.000002"} 4"#,
            r#"took_seconds_bucket{op="check",le="0.5"} 4"#,
            r#"took_seconds_bucket{op="check",le="1"} 5"#,
            r#"took_seconds_bucket{op="check",le="+Inf"} 7"#,
            r#"took_seconds_sum{op="check"} 5.000004002"#,
            r#"took_seconds_count{op="check"} 7"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
    }
}
