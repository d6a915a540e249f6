//! A latency histogram with fixed buckets from a microsecond to a second.

use super::exposition::{Exposition, Labels, seconds};
use super::striped::Striped;

/// Inclusive upper bounds of the buckets in microseconds. A last bucket, `+Inf`, counts longer times.
const BOUNDS_US: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000,
];

/// Index of the sum of all times, after the buckets and `+Inf`.
const SUM: usize = BOUNDS_US.len() + 1;

/// Counts per bucket, and the sum of all times in microseconds.
#[derive(Debug, Default)]
pub(super) struct Histogram(Striped<{ SUM + 1 }>);

impl Histogram {
    #[inline]
    pub(super) fn observe(&self, took_us: u64) {
        self.0.add(BOUNDS_US.partition_point(|&bound_us| bound_us < took_us), 1);
        self.0.add(SUM, took_us);
    }

    /// Whether nothing was observed so far.
    pub(super) fn is_empty(&self) -> bool {
        self.0.read()[..SUM].iter().all(|&count| count == 0)
    }

    /// Writes the samples of one set of labels.
    pub(super) fn expose(&self, to: &mut Exposition, labels: Labels) {
        let counters = self.0.read();
        let mut count = 0;
        for (bucket, more) in counters[..SUM].iter().enumerate() {
            count += more;
            let bound = BOUNDS_US.get(bucket).map_or_else(|| "+Inf".to_owned(), |&us| seconds(us));
            to.sample("_bucket", &[labels, &[("le", &bound)]].concat(), count);
        }
        to.sample("_sum", labels, seconds(counters[SUM]));
        to.sample("_count", labels, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_buckets_cumulative() {
        let histogram = Histogram::default();
        assert!(histogram.is_empty());
        for us in [0, 1, 2, 2, 1_000_000, 1_000_001, 3_000_000] {
            histogram.observe(us);
        }
        assert!(!histogram.is_empty());
        let mut to = Exposition::default();
        to.family("took_seconds", "histogram", "How long.");
        histogram.expose(&mut to, &[("op", "check")]);
        for line in [
            r#"took_seconds_bucket{op="check",le="0.000001"} 2"#,
            r#"took_seconds_bucket{op="check",le="0.000002"} 4"#,
            r#"took_seconds_bucket{op="check",le="0.5"} 4"#,
            r#"took_seconds_bucket{op="check",le="1"} 5"#,
            r#"took_seconds_bucket{op="check",le="+Inf"} 7"#,
            r#"took_seconds_sum{op="check"} 5.000006"#,
            r#"took_seconds_count{op="check"} 7"#,
        ] {
            assert!(to.text.lines().any(|other| other == line), "{line} in\n{}", to.text);
        }
    }
}
