//! The memory that a key may take, for capacity planning.

use slidegate::Algorithm;
use slidegate::rule::{Buckets, Limit};

/// Bytes of one entry of an exact log: a stamp, and a cost beside it.
const LOG_ENTRY_BYTES: u64 = 16;
const COMPACT_ENTRY_BYTES: u64 = 12;
/// A slot of the table (fingerprint and inline state), with its share of free slots and of allocator overhead.
const SLOT_BYTES: u64 = 64;
const GCRA_SLOT_BYTES: u64 = 88;
const LOG_SLOT_BYTES: u64 = 104;

/// The most bytes that one limit takes in memory per key, with costs above 1.
pub(crate) fn bytes_per_key(limit: &Limit) -> u64 {
    match limit.algorithm() {
        Algorithm::SlidingLog => LOG_SLOT_BYTES + LOG_ENTRY_BYTES.saturating_mul(limit.units()),
        Algorithm::CompactLog(entries) => {
            LOG_SLOT_BYTES + COMPACT_ENTRY_BYTES * u64::from(entries.get()).min(limit.units())
        }
        Algorithm::SlidingBuckets(buckets, _) => LOG_SLOT_BYTES + buckets_bytes(buckets, limit.units()),
        Algorithm::SlidingCounter | Algorithm::FixedWindow => SLOT_BYTES,
        Algorithm::Gcra => GCRA_SLOT_BYTES,
    }
}

/// Counts have the narrowest width that holds the limit. The ring has one bucket more than the window, for its edge.
fn buckets_bytes(buckets: Buckets, units: u64) -> u64 {
    let width = match units {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    (u64::from(buckets.get()) + 1) * width
}

#[cfg(test)]
mod tests {
    use slidegate::{Limiter, Rule};

    use super::*;

    /// The bound is within a factor of three of the memory that the store reports.
    #[test]
    fn the_bound_is_near_the_measured_memory() {
        const KEYS: u64 = 20_000;
        for algorithm in Algorithm::ALL {
            let rule = Rule::inline("10/1m".parse().unwrap(), algorithm);
            let limiter = Limiter::in_memory();
            for key in (0..KEYS).map(|number| format!("203.0.113.{number}")) {
                for _ in 0..10 {
                    assert!(limiter.at_us(1_745_000_145_000_000).check(&rule, &key).unwrap().allowed());
                }
            }
            let (bound, measured) =
                (bytes_per_key(&rule.limits()[0]), limiter.stats().store.unwrap().bytes / KEYS);
            let near = measured <= 2 * bound && bound <= 3 * measured;
            assert!(near, "{algorithm}: the bound is {bound}, measured are {measured}");
        }
    }
}
