//! Logs move between slots of two widths as traffic changes, without changing any answer.

use std::time::Duration;

use slidegate::store::MemoryStore;
use slidegate::testing::Rng;
use slidegate::time::ManualClock;
use slidegate::{Algorithm, Charge, Limiter, Receipt};

use crate::common::*;

type ManualLimiter = Limiter<MemoryStore<ManualClock>>;

const KEYS: usize = 60;

fn limiter(locks: usize) -> ManualLimiter {
    let store: MemoryStore = MemoryStore::with_locks(locks, 1 << 20).with_seed(1);
    Limiter::new(store.on_clock(ManualClock::at_us(BOUNDARY_US)))
}

/// Many keys of one shard compared with as many stores of one key, whose slots keep their width, in phases of few and
/// of many requests per window.
#[test]
fn a_change_of_slot_width_changes_no_answer() {
    for rates in [&["11/10s"][..], &["11/10s", "11/11s"]] {
        let rule = rule("api", rates, Algorithm::SlidingLog);
        let mut rng = Rng::new(rates.len() as u64);
        let (together, names) = (limiter(1), (0..KEYS).map(|key| format!("key:{key}")).collect::<Vec<_>>());
        let alone: Vec<ManualLimiter> = names.iter().map(|_| limiter(1)).collect();
        let mut receipts: Vec<(usize, Receipt, Receipt)> = Vec::new();
        let mut bytes = Vec::new();
        for phase in 0..6 {
            // A key is asked once in ten seconds in one phase and about ten times in the next.
            let pause_us = if phase % 2 == 0 { 160_000 } else { 16_000 };
            for step in 0..6_000 {
                let pause = Duration::from_micros(rng.below(2 * pause_us));
                together.clock().advance(pause);
                for alone in &alone {
                    alone.clock().advance(pause);
                }
                let index = usize::try_from(rng.below(KEYS as u64)).unwrap();
                let ask = [Charge::new(&rule, key(&names[index]), 1)];
                let (ours, its) = (together.check_all(&ask).unwrap(), alone[index].check_all(&ask).unwrap());
                assert_eq!(numbers(&ours), numbers(&its), "{rates:?}, phase {phase}, step {step}");
                if let (Some(ours), Some(its)) = (ours.receipt(), its.receipt()) {
                    receipts.push((index, ours, its));
                }
                if rng.one_in(8) && !receipts.is_empty() {
                    let drawn = usize::try_from(rng.below(receipts.len() as u64)).unwrap();
                    let (index, ours, its) = receipts.swap_remove(drawn);
                    let given = (together.refund(&ours).unwrap(), alone[index].refund(&its).unwrap());
                    assert_eq!(given.0, given.1, "{rates:?}, phase {phase}, step {step}");
                }
                receipts.drain(..receipts.len().saturating_sub(200));
            }
            together.sweep();
            // A record of a spent receipt takes 128 bytes, in slots of either width.
            let stats = together.stats().store.unwrap();
            bytes.push(stats.bytes - 128 * stats.spent_receipts);
        }
        // Sixty keys take 11,600 bytes in wide slots, and 14,000 in narrow ones with the rest on the heap; the keys of
        // a quiet phase take 5,400 to 6,600.
        let tables = rates.len() as u64;
        for (phase, bytes) in bytes.iter().enumerate() {
            let expected = if phase % 2 == 0 { 4_000..8_000 } else { 11_000..13_000 };
            assert!(expected.contains(&(bytes / tables)), "{rates:?}: {bytes} bytes in phase {phase}");
        }
    }
}
