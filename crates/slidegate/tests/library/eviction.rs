//! Eviction at the budget: old keys are evicted, and none without need.

use slidegate::Algorithm;
use slidegate::store::BUDGET_BYTES_MIN;

use crate::budget::{ask, evicting, flood, known_names, small_store, used_by};
use crate::common::*;

/// Old keys are evicted first; busy keys stay.
#[test]
fn a_rule_may_evict_old_keys() {
    for algorithm in every_algorithm() {
        for rates in [&["60/10s"][..], &["60/10s", "600/100s"]] {
            let (store, rule) = (small_store(), evicting(rates, algorithm));
            let old: Vec<String> = (0..500).map(|number| format!("old:{number}")).collect();
            for name in &old {
                ask(&store, BOUNDARY_US - 5 * SECOND_US, &[(&rule, name, 60)]).unwrap();
            }
            let busy = known_names();
            let mut receipts = Vec::new();
            for call in 0..40_000_u64 {
                // Every busy key is charged ten times a second, and all charges live longer than that.
                let now_us = BOUNDARY_US + call * 50;
                if call % 4 == 0 {
                    let name = &busy[usize::try_from(call / 4).unwrap() % busy.len()];
                    drop(store.check(now_us, &admission(&[(&rule, name, 1)])));
                }
                let name = format!("flood:{call}");
                let Ok(outcome) = store.check(now_us, &admission(&[(&rule, &name, 30)])) else { continue };
                assert!(outcome.allowed() && !outcome.degraded(), "{rule:?}");
                if call < 1_000 {
                    receipts.push(outcome.receipt().unwrap());
                }
                if call % 64 == 0 {
                    assert!(store.stats().bytes <= BUDGET_BYTES_MIN, "{:?}", store.stats());
                }
            }
            let now_us = BOUNDARY_US + 4 * SECOND_US;
            let stats = store.stats();
            // A key is evicted within its shard only: without another key there is no room. Five keys with logs of two
            // limits fit a shard, so one call in ten to twenty is refused, whatever the seed.
            assert!(stats.full < 5_000, "{rule:?}: {stats:?}");
            assert!(stats.evicted + stats.keys + stats.full >= 40_000, "{rule:?}: {stats:?}");
            let kept = |names: &[String]| {
                names.iter().filter(|name| store.state(&rule, key(name)).is_some()).count()
            };
            assert!(kept(&old) < 10, "{rule:?}: {} old ones stayed", kept(&old));
            assert!(kept(&busy) > 100, "{rule:?}: {} busy ones stayed", kept(&busy));
            for receipt in &receipts {
                let name = receipt.charges()[0].key().as_str();
                let evicted = store.state(&rule, key(name)).is_none();
                if evicted && store.check(now_us, &admission(&[(&rule, name, 5)])).is_ok() {
                    // The receipt does not lower a new state of the same window, bucket or instant.
                    assert_eq!(store.refund(now_us, receipt).unwrap().units, 0, "{rule:?}");
                    assert_eq!(used_by(&store, now_us, &rule, name), 5, "{rule:?}");
                }
            }
        }
    }
}

/// An existing key that needs heap memory does not evict neighbours without any.
#[test]
fn keys_without_heap_memory_are_not_evicted_for_heap_memory() {
    let (store, rule) = (small_store(), evicting(&["60/1h"], Algorithm::SlidingLog));
    for name in known_names() {
        ask(&store, BOUNDARY_US, &[(&rule, &name, 1)]).unwrap();
    }
    let filler = crate::common::rule("filler", &["9/1h"], Algorithm::SlidingCounter);
    flood(&store, BOUNDARY_US, &crate::common::rule("api", &["60/1h"], Algorithm::SlidingLog));
    flood(&store, BOUNDARY_US, &filler);
    let mut full = 0;
    for second in 1..8 {
        let now_us = BOUNDARY_US + second * SECOND_US;
        for name in known_names() {
            full += u64::from(store.check(now_us, &admission(&[(&rule, &name, 1)])).is_err());
        }
    }
    let stats = store.stats();
    assert!(full > 0 && stats.evicted <= 500, "{full} were refused: {stats:?}");
}
