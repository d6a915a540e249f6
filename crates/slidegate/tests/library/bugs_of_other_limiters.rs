//! Regression tests for bugs of other limiters. The names begin with the row in our table of these bugs.

use crate::common::*;
use slidegate::rule::{Buckets, Edge};
use slidegate::store::MemoryStore;
use slidegate::testing::Rng;
use slidegate::{Admission, Algorithm, Charge, ChargeError, ReceiptError, Rule};

/// Increment first, compare after: a client that keeps retrying is never admitted.
#[test]
fn row_01_a_refused_request_costs_nothing() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let store = MemoryStore::new();
        assert!(check(&store, BOUNDARY_US, &rule, 5).allowed());
        let seen = || (store.state(&rule, key("alice")), store.stats());
        let before = seen();
        let passes_us = BOUNDARY_US + retry_us(&peek(&store, BOUNDARY_US, &rule, 1));
        for knock in 0..10_000 {
            let now_us = BOUNDARY_US + knock * (passes_us - BOUNDARY_US) / 10_000;
            let outcome = check(&store, now_us, &rule, 1);
            assert!(!outcome.allowed() && outcome.receipt().is_none(), "{algorithm}");
            assert_eq!(now_us + retry_us(&outcome), passes_us, "{algorithm}: a retry postpones nothing");
        }
        assert!(before.0.is_some() && before.1.bytes > 0);
        assert_eq!(seen(), before, "{algorithm}: the state is untouched and no larger");
        assert!(check(&store, passes_us, &rule, 1).allowed(), "{algorithm}");
    }
}

/// Cost ignored, or not bounded by the check.
#[test]
fn row_02_cost_counts_and_is_bounded() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["100/10s"], algorithm);
        let store = MemoryStore::new();
        let first = check(&store, BOUNDARY_US, &rule, 60);
        assert_eq!((first.used(), first.remaining()), (Some(60), Some(40)), "{algorithm}");
        assert!(!check(&store, BOUNDARY_US, &rule, 41).allowed(), "{algorithm}");
        assert!(check(&store, BOUNDARY_US, &rule, 40).allowed(), "{algorithm}: remaining passes");
        let full = Charge::new(&rule, key("bob"), 100);
        assert!(
            store.check(BOUNDARY_US, &Admission::new(&[full]).unwrap()).unwrap().allowed(),
            "cost = limit"
        );
        for cost in [101, u64::MAX] {
            let error = Admission::new(&[Charge::new(&rule, key("bob"), cost)]).unwrap_err();
            assert_eq!(error, ChargeError::Never { rule: "api".into(), cost, limit: 100 });
        }
        assert!(matches!(
            Admission::new(&[Charge::new(&rule, key("bob"), 0)]),
            Err(ChargeError::Zero { .. })
        ));
    }
}

/// Retry-After that is the window's end, counts from the newest entry, or ignores the cost.
#[test]
fn row_03_the_wait_is_exact_for_the_asked_cost() {
    let log = rule("log", &["10/10s"], Algorithm::SlidingLog);
    let store = MemoryStore::new();
    for second in 0..10 {
        assert!(check(&store, BOUNDARY_US + second * SECOND_US, &log, 1).allowed());
    }
    let now_us = BOUNDARY_US + 9 * SECOND_US;
    for cost in 1..=10 {
        let wait_us = retry_us(&peek(&store, now_us, &log, cost));
        assert_eq!(wait_us, cost * SECOND_US, "{cost} units wait for the {cost} oldest");
    }
    for algorithm in every_algorithm() {
        let rule = rule("api", &["10/10s"], algorithm);
        let mut rng = Rng::new(3);
        for round in 0..50 {
            let store = MemoryStore::new();
            let mut now_us = BOUNDARY_US + round * 700_001;
            loop {
                let cost = rng.between(1, 10);
                let decision = check(&store, now_us, &rule, cost);
                if !decision.allowed() {
                    let passes_us = now_us + retry_us(&decision);
                    assert!(
                        !peek(&store, passes_us - 1, &rule, cost).allowed(),
                        "{algorithm}: not a microsecond early"
                    );
                    assert!(
                        peek(&store, passes_us, &rule, cost).allowed(),
                        "{algorithm}: at the very instant"
                    );
                    break;
                }
                now_us += rng.below(900_000);
            }
        }
    }
}

/// Off by one at the boundary; limits of 1 that never admit.
#[test]
fn row_05_boundaries_to_the_microsecond() {
    for rate in ["1/1ms", "1/10s", "2/10s", "1/400d"] {
        let log = rule("log", &[rate], Algorithm::SlidingLog);
        let window_us = log.limits()[0].window_us();
        for algorithm in [Algorithm::SlidingLog, Algorithm::ALL[1]] {
            let rule = rule("log", &[rate], algorithm);
            let store = MemoryStore::new();
            let limit = rule.cost_max();
            for _ in 0..limit {
                assert!(check(&store, BOUNDARY_US, &rule, 1).allowed(), "{rate}: limit {limit} admits");
            }
            for (age_us, allowed) in
                [(0, false), (window_us - 1, false), (window_us, true), (window_us + 1, true)]
            {
                let decision = peek(&store, BOUNDARY_US + age_us, &rule, 1);
                assert_eq!(decision.allowed(), allowed, "{rate}: an entry {age_us} us old");
            }
        }
    }
    for algorithm in every_algorithm() {
        for rate in ["1/10s", "2/10s"] {
            let rule = rule("api", &[rate], algorithm);
            let store = MemoryStore::new();
            let mut now_us = BOUNDARY_US - 1;
            for _ in 0..20 {
                let decision = check(&store, now_us, &rule, 1);
                now_us += retry_us(&decision);
                assert!(decision.allowed() || peek(&store, now_us, &rule, 1).allowed(), "{algorithm} {rate}");
            }
        }
    }
}

/// Rounding in the weighted counter.
#[test]
fn row_06_the_weighted_counter_rounds_nothing() {
    let rule = rule("api", &["5/60s"], Algorithm::SlidingCounter);
    for (previous, current, allowed, used) in [(8, 3, false, 5), (4, 3, true, 5), (6, 3, false, 5)] {
        let loose =
            Rule::builder("api").limit("20/60s".parse().unwrap()).algorithm(Algorithm::SlidingCounter);
        let loose = loose.build().unwrap();
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US - 30 * SECOND_US, &loose, previous);
        check(&store, BOUNDARY_US + 45 * SECOND_US, &loose, current);
        store.change(BOUNDARY_US + 45 * SECOND_US, &rule);
        let decision = check(&store, BOUNDARY_US + 45 * SECOND_US, &rule, 1);
        assert_eq!((decision.allowed(), decision.used()), (allowed, Some(used)), "{previous} and {current}");
    }
    // One microsecond of overlap is one part in sixty million, and it counts.
    let store = MemoryStore::new();
    check(&store, BOUNDARY_US - 1, &rule, 5);
    let last_us = BOUNDARY_US + 60 * SECOND_US - 1;
    assert!(check(&store, last_us, &rule, 4).allowed());
    let decision = peek(&store, last_us, &rule, 1);
    assert_eq!((decision.allowed(), decision.used(), retry_us(&decision)), (false, Some(5), 1));
}

/// Products that overflow 64 bits or lose precision above 2^53.
#[test]
fn row_07_great_limits_and_windows_are_exact() {
    for algorithm in every_algorithm() {
        for rate in [
            "1/1ms",
            "2147483647/1ms",
            "2147483648/400d",
            "2147483649/1s",
            "1000000000000/1ms",
            "1000000000000/400d",
        ] {
            let rule = rule("api", &[rate], algorithm);
            let limit = rule.cost_max();
            let store = MemoryStore::new();
            let start_us = BOUNDARY_US - 7;
            assert!(check(&store, start_us, &rule, limit).allowed(), "{algorithm} {rate}");
            let denied = check(&store, start_us, &rule, 1);
            assert_eq!(
                (denied.allowed(), denied.used(), denied.remaining()),
                (false, Some(limit), Some(0)),
                "{algorithm} {rate}"
            );
            for cost in [1, limit / 3 + 1, limit] {
                let passes_us = start_us + retry_us(&peek(&store, start_us, &rule, cost));
                assert!(!peek(&store, passes_us - 1, &rule, cost).allowed(), "{algorithm} {rate} {cost}");
                assert!(peek(&store, passes_us, &rule, cost).allowed(), "{algorithm} {rate} {cost}");
            }
        }
    }
    // 3 per second for 1,000 s: an emission interval rounded to microseconds would drift by a millisecond.
    let rule = rule("api", &["3/1s"], Algorithm::Gcra);
    let store = MemoryStore::new();
    check(&store, BOUNDARY_US, &rule, 3);
    let mut now_us = BOUNDARY_US;
    for unit in 1..=3_000_u64 {
        now_us += retry_us(&peek(&store, now_us, &rule, 1));
        assert!(check(&store, now_us, &rule, 1).allowed());
        assert_eq!(now_us, BOUNDARY_US + (unit * SECOND_US).div_ceil(3));
    }
}

/// Refunds into the wrong window, twice, of more than was charged, after a reset; negative counters.
#[test]
fn row_12_refunds_are_one_sided() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["10/10s"], algorithm);
        let store = MemoryStore::new();
        let receipt = check(&store, BOUNDARY_US, &rule, 4).receipt().unwrap();
        check(&store, BOUNDARY_US, &rule, 3);
        let applied = store.refund(BOUNDARY_US, &receipt).unwrap();
        assert_eq!((applied.applied, applied.units), (true, 4), "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 3, "{algorithm}");
        let again = store.refund(BOUNDARY_US, &receipt).unwrap();
        assert_eq!((again.applied, again.units), (false, 0), "{algorithm}: a receipt works once");
        assert!(!store.settle(BOUNDARY_US, &receipt, 2).unwrap().applied, "{algorithm}: in either way");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 3, "{algorithm}");

        let late = check(&store, BOUNDARY_US, &rule, 2).receipt().unwrap();
        let long_after_us = BOUNDARY_US + 25 * SECOND_US;
        check(&store, long_after_us, &rule, 5);
        assert!(!store.refund(long_after_us, &late).unwrap().applied, "{algorithm}: its window is gone");
        assert_eq!(used(&store, long_after_us, &rule), 5, "{algorithm}");

        let before_reset = check(&store, long_after_us, &rule, 5).receipt().unwrap();
        store.reset(long_after_us, &rule, key("alice"));
        assert!(check(&store, long_after_us + 1, &rule, 10).allowed(), "{algorithm}");
        assert!(
            !store.refund(long_after_us + 1, &before_reset).unwrap().applied,
            "{algorithm}: a reset voids it"
        );
        assert!(!peek(&store, long_after_us + 1, &rule, 1).allowed(), "{algorithm}: nothing was given twice");

        let foreign = check(&MemoryStore::new(), long_after_us, &rule, 1).receipt().unwrap();
        assert_eq!(store.refund(long_after_us + 1, &foreign), Err(ReceiptError::Foreign));
    }
}

/// A refund after the window has rolled must not lower the new window.
#[test]
fn row_12_a_refund_after_the_roll_stays_in_its_window() {
    let fixed = rule("fixed", &["10/10s"], Algorithm::FixedWindow);
    let counter = rule("counter", &["10/10s"], Algorithm::SlidingCounter);
    let store = MemoryStore::new();
    let (before_us, after_us) = (BOUNDARY_US - SECOND_US, BOUNDARY_US + 5 * SECOND_US);
    let fixed_receipt = check(&store, before_us, &fixed, 6).receipt().unwrap();
    let counter_receipt = check(&store, before_us, &counter, 6).receipt().unwrap();
    check(&store, after_us, &fixed, 2);
    check(&store, after_us, &counter, 2);
    assert!(!store.refund(after_us, &fixed_receipt).unwrap().applied);
    assert_eq!(used(&store, after_us, &fixed), 2);
    assert_eq!(used(&store, after_us, &counter), 5, "6 x 0.5 + 2");
    assert_eq!(store.refund(after_us, &counter_receipt).unwrap().units, 6);
    assert_eq!(used(&store, after_us, &counter), 2);
}

/// Ring cells that are not cleared for some strides; one loop iteration per idle window.
#[test]
fn row_13_every_stride_over_the_ring_clears_the_skipped_cells() {
    for cells in 1..=12 {
        for edge in Edge::ALL {
            let algorithm = Algorithm::SlidingBuckets(Buckets::new(cells).unwrap(), edge);
            let rule = rule("api", &["1000000/60ms"], algorithm);
            let bucket_us = rule.limits()[0].bucket_us();
            for stride in 1..=30 {
                let store = MemoryStore::new();
                let mut charged = Vec::new();
                for step in 0..40 {
                    let now_us =
                        BOUNDARY_US / bucket_us * bucket_us + step * stride * bucket_us + step % bucket_us;
                    let decision = check(&store, now_us, &rule, step + 1);
                    charged.push((now_us / bucket_us, step + 1));
                    assert_eq!(
                        decision.used(),
                        Some(ring_truth(&charged, now_us, &rule, edge)),
                        "{algorithm} by {stride}"
                    );
                }
            }
        }
    }
}

/// The use at `now_us` by the definition, rounded up.
fn ring_truth(charged: &[(u64, u64)], now_us: u64, rule: &Rule, edge: Edge) -> u64 {
    let (window_us, width_us) = (rule.limits()[0].window_us(), rule.limits()[0].bucket_us());
    let gone_us = now_us - window_us;
    let weighted = charged.iter().map(|&(bucket, units)| {
        let (first_us, last_us) = (bucket * width_us, (bucket + 1) * width_us - 1);
        let weight_us = match edge {
            _ if first_us > gone_us => width_us,
            _ if last_us <= gone_us => 0,
            Edge::Full => width_us,
            Edge::Interpolated => last_us + 1 - gone_us,
            Edge::Dropped => 0,
        };
        units * weight_us
    });
    weighted.sum::<u64>().div_ceil(width_us)
}

/// A year idle costs the same as a second: the ring is walked at most once.
#[test]
fn row_13_a_year_idle_is_one_step() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/1ms"], algorithm);
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US, &rule, 5);
        // A loop over idle windows would run 3 x 10^10 times per year, for 2,000 years.
        for year in 1..=2_000 {
            let now_us = BOUNDARY_US + year * 365 * DAY_US;
            let decision = check(&store, now_us, &rule, 5);
            assert_eq!(
                (decision.allowed(), decision.used()),
                (true, Some(5)),
                "{algorithm} after year {year}"
            );
        }
    }
}

/// A reset that misses parts of the state.
#[test]
fn row_18_after_a_reset_the_key_is_like_a_new_one() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["3/1s", "10/10s"], algorithm);
        let store = MemoryStore::new();
        for second in 0..9 {
            check(&store, BOUNDARY_US + second * SECOND_US, &rule, 1);
        }
        let now_us = BOUNDARY_US + 9 * SECOND_US;
        check(&store, now_us, &rule, 2);
        let fresh = check(&MemoryStore::new(), now_us, &rule, 3);
        assert!(store.reset(now_us, &rule, key("alice")).applied);
        assert!(store.state(&rule, key("alice")).is_none(), "{algorithm}");
        assert!(
            store.inspect(now_us, &rule, key("alice")).iter().all(|limit| limit.used == 0),
            "{algorithm}"
        );
        assert_eq!(numbers(&check(&store, now_us, &rule, 3)), numbers(&fresh), "{algorithm}");
        assert!(!store.reset(now_us, &rule, key("bob")).applied, "nothing to reset");
    }
}

/// Several limits: the first is charged although the second denies; the wait considers one limit only.
#[test]
fn row_19_a_denial_charges_nowhere_and_names_the_latest() {
    for algorithm in every_algorithm() {
        let quota = rule("quota", &["100/1h"], algorithm);
        let costly = rule("costly", &["1/1s", "3/1m"], algorithm);
        let store = MemoryStore::new();
        let both = admission(&[(&quota, "alice", 10), (&costly, "alice", 1)]);
        let first = store.check(BOUNDARY_US, &both).unwrap();
        assert!(first.allowed());
        assert_eq!((first.rule(), first.remaining()), ("costly", Some(0)), "{algorithm}: the tightest binds");
        let denied = store.check(BOUNDARY_US + 1, &both).unwrap();
        assert!(!denied.allowed() && denied.receipt().is_none());
        assert_eq!(denied.rule(), "costly");
        let verdicts: Vec<_> = denied.verdicts().collect();
        assert!(verdicts[0].allowed() && !verdicts[1].allowed(), "{algorithm}: each charge's own verdict");
        assert_eq!(used(&store, BOUNDARY_US + 1, &quota), 10, "{algorithm}: charged once, not twice");

        // Fill both and let the longer wait bind.
        let store = MemoryStore::new();
        store.check(BOUNDARY_US, &admission(&[(&quota, "alice", 100)])).unwrap();
        store.check(BOUNDARY_US, &admission(&[(&costly, "alice", 1)])).unwrap();
        let denied = store.check(BOUNDARY_US + 1, &both).unwrap();
        let waits = [&quota, &costly].map(|rule| {
            let cost = if rule.name() == "quota" { 10 } else { 1 };
            retry_us(&peek(&store, BOUNDARY_US + 1, rule, cost))
        });
        assert_eq!(retry_us(&denied), waits[0].max(waits[1]), "{algorithm}");
        assert_eq!(denied.rule(), "quota", "{algorithm}");
    }
}
