//! Ordinary traffic sweeps keys without live charges, and no others.

use std::time::Duration;

use crate::common::*;
use slidegate::rule::{Buckets, Edge};
use slidegate::store::{MemoryStore, Stats};
use slidegate::testing::Rng;
use slidegate::time::ManualClock;
use slidegate::{Algorithm, Charge, Limiter, Rule};

const IDLE_KEYS: u64 = 20_000;
/// Most admissions of other keys, per idle key, until all idle keys are swept and their memory is released.
const CALLS_PER_IDLE_KEY: u64 = 8;
/// A limit that ordinary traffic never reaches.
const RATE: &str = "1000000/10s";

type ManualLimiter = Limiter<MemoryStore<ManualClock>>;

fn limiter_at(now_us: u64) -> ManualLimiter {
    Limiter::new(MemoryStore::with_clock(ManualClock::at_us(now_us)).with_seed(1))
}

/// Statistics of its store.
fn store_stats(limiter: &ManualLimiter) -> Stats {
    limiter.stats().store.unwrap()
}

fn admit(limiter: &ManualLimiter, rule: &Rule, name: &str) {
    let charge = Charge::new(rule, key(name), 1);
    assert!(limiter.check_all(&[charge]).unwrap().allowed(), "{name}");
}

/// A limiter with [`IDLE_KEYS`] keys whose windows have passed.
fn filled(rule: &Rule) -> ManualLimiter {
    let limiter = limiter_at(BOUNDARY_US);
    for number in 0..IDLE_KEYS {
        admit(&limiter, rule, &format!("idle:{number}"));
    }
    assert_eq!(store_stats(&limiter).keys, IDLE_KEYS);
    limiter.clock().advance(Duration::from_secs(30));
    limiter
}

/// Admits the names in turn until no other keys are left and memory is released; returns the number of calls.
fn calls_until_forgotten(limiter: &ManualLimiter, rule: &Rule, names: &[String]) -> u64 {
    let bytes_full = store_stats(limiter).bytes;
    for call in 1..=IDLE_KEYS * CALLS_PER_IDLE_KEY {
        limiter.clock().advance(Duration::from_millis(10));
        admit(limiter, rule, &names[usize::try_from(call).unwrap() % names.len()]);
        // Not after every call, as it locks every shard.
        let stats = if call % 64 == 0 { store_stats(limiter) } else { continue };
        if stats.keys <= names.len() as u64 && stats.bytes < bytes_full / 4 {
            return call;
        }
    }
    panic!("{:?} after {} calls", store_stats(limiter), IDLE_KEYS * CALLS_PER_IDLE_KEY);
}

/// Keys that are never freed, until the process runs out of memory.
#[test]
fn row_23_traffic_on_one_key_sweeps_all_idle_keys() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &[RATE], algorithm);
        let limiter = filled(&rule);
        let calls = calls_until_forgotten(&limiter, &rule, &["busy".to_owned()]);
        assert_eq!(store_stats(&limiter).swept, IDLE_KEYS, "{algorithm}");

        let alone = limiter_at(BOUNDARY_US + 30 * SECOND_US);
        for _ in 0..calls {
            alone.clock().advance(Duration::from_millis(10));
            admit(&alone, &rule, "busy");
        }
        let usages = [&limiter, &alone].map(|limiter| limiter.inspect(&rule, "busy").unwrap()[0].used);
        assert_eq!(usages[0], usages[1], "{algorithm}: the busy key lost nothing");
    }
}

#[test]
fn row_23_traffic_on_a_few_hundred_keys_sweeps_all_idle_keys() {
    let names: Vec<String> = (0..300).map(|number| format!("busy:{number}")).collect();
    for algorithm in every_algorithm() {
        let rule = rule("api", &[RATE], algorithm);
        let limiter = filled(&rule);
        calls_until_forgotten(&limiter, &rule, &names);
        let swept = store_stats(&limiter).swept;
        assert!(swept >= IDLE_KEYS, "{algorithm}: {swept}, those that growing dropped included");
    }
}

#[test]
fn one_sweep_drops_all_idle_keys_at_once() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &[RATE], algorithm);
        let limiter = filled(&rule);
        admit(&limiter, &rule, "busy");
        assert_eq!(limiter.sweep() as u64, IDLE_KEYS, "{algorithm}");
        let stats = store_stats(&limiter);
        assert_eq!((stats.keys, stats.swept), (1, IDLE_KEYS), "{algorithm}");
        assert!(stats.bytes < 2_000, "{algorithm}: {} bytes for one key", stats.bytes);
        limiter.clock().advance(Duration::from_secs(30));
        limiter.sweep();
        assert_eq!((store_stats(&limiter).keys, store_stats(&limiter).bytes), (0, 0), "{algorithm}");
    }
}

/// The table of a shard with many keys is split into parts.
#[test]
fn a_full_sweep_covers_every_part() {
    for rates in [&[RATE][..], &[RATE, "2000000/20s"]] {
        let store: MemoryStore = MemoryStore::with_locks(1, 1 << 30).with_seed(1);
        let limiter = Limiter::new(store.on_clock(ManualClock::at_us(BOUNDARY_US)));
        let rule = rule("api", rates, Algorithm::SlidingCounter);
        for number in 0..5_000 {
            admit(&limiter, &rule, &format!("idle:{number}"));
        }
        limiter.clock().advance(Duration::from_secs(60));
        assert_eq!(
            (limiter.sweep(), store_stats(&limiter).keys, store_stats(&limiter).bytes),
            (5_000, 0, 0),
            "{rates:?}"
        );
    }
}

/// A key has ended when all its limits have.
#[test]
fn several_limits_of_a_key_are_swept_together() {
    for algorithm in every_algorithm() {
        let idle = rule("idle", &["2/1s", "2/10s", "2/100s"], algorithm);
        let busy = rule("busy", &[RATE], Algorithm::Gcra);
        let limiter = filled(&idle);
        for _ in 0..IDLE_KEYS {
            admit(&limiter, &busy, "busy");
        }
        assert_eq!(limiter.sweep(), 0, "{algorithm}: the longest window has not passed");
        assert_eq!(store_stats(&limiter).keys, IDLE_KEYS + 1, "{algorithm}");
        assert!(limiter.inspect(&idle, "idle:7").unwrap()[2].used > 0, "{algorithm}");
        limiter.clock().advance(Duration::from_secs(200));
        calls_until_forgotten(&limiter, &busy, &["busy".to_owned()]);
        assert!(limiter.inspect(&idle, "idle:7").unwrap().iter().all(|limit| limit.used == 0), "{algorithm}");
    }
}

/// Keys come and go at random. Each live key gets the same answers as in a separate store that holds no other keys.
#[test]
fn a_live_key_is_never_swept() {
    for algorithm in every_algorithm() {
        for seed in 0..2 {
            let mut rng = Rng::new(seed);
            let rule = rule("api", &["20/10s"], algorithm);
            let limiter = limiter_at(BOUNDARY_US);
            let names: Vec<String> = (0..40).map(|number| format!("key:{number}")).collect();
            let alone: Vec<ManualLimiter> = names.iter().map(|_| limiter_at(BOUNDARY_US)).collect();
            for step in 0..10_000 {
                let pass_us_max = if rng.one_in(500) { 20_000_000 } else { 20_000 };
                let pass = Duration::from_micros(rng.below(pass_us_max));
                let (index, cost) = (usize::try_from(rng.below(40)).unwrap(), rng.between(1, 3));
                limiter.clock().advance(pass);
                for alone in &alone {
                    alone.clock().advance(pass);
                }
                if rng.one_in(3) {
                    admit(&limiter, &rule, &format!("passing:{step}"));
                }
                let ask = [Charge::new(&rule, key(&names[index]), cost)];
                let (beside, alone) =
                    (limiter.check_all(&ask).unwrap(), alone[index].check_all(&ask).unwrap());
                assert_eq!(numbers(&beside), numbers(&alone), "{algorithm}, seed {seed}, step {step}");
            }
            assert!(store_stats(&limiter).swept > 200, "{algorithm}: {:?}", store_stats(&limiter));
        }
    }
}

#[test]
fn denials_alone_sweep_nothing() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["1/100s"], algorithm);
        let limiter = limiter_at(BOUNDARY_US);
        for number in 0..1_000 {
            admit(&limiter, &rule, &format!("key:{number}"));
        }
        let before = store_stats(&limiter);
        for call in 0..10_000 {
            limiter.clock().advance(Duration::from_millis(1));
            let ask = [Charge::new(&rule, key("key:7"), 1)];
            assert!(!limiter.check_all(&ask).unwrap().allowed(), "{algorithm}, call {call}");
        }
        assert_eq!(store_stats(&limiter), before, "{algorithm}");
        assert_eq!(limiter.inspect(&rule, "key:8").unwrap()[0].used, 1, "{algorithm}");
    }
}

#[test]
fn after_an_idle_year_a_key_is_like_a_new_one() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let limiter = limiter_at(BOUNDARY_US);
        for name in ["alice", "bob"] {
            for _ in 0..5 {
                admit(&limiter, &rule, name);
            }
        }
        limiter.clock().advance(Duration::from_secs(365 * 86_400));
        for _ in 0..5 {
            admit(&limiter, &rule, "alice");
        }
        let ask = [Charge::new(&rule, key("alice"), 1)];
        assert!(!limiter.check_all(&ask).unwrap().allowed(), "{algorithm}: it still limits");
        assert_eq!((limiter.sweep(), store_stats(&limiter).keys), (1, 1), "{algorithm}: bob is forgotten");
    }
}

/// Rules of one name that differ in geometry, as inline rules may, have a table each. The sweep reaches the ends of
/// these tables at different times, and still moves on to other rules.
#[test]
fn geometries_of_one_name_do_not_keep_the_sweep_from_other_rules() {
    let buckets = |count| Algorithm::SlidingBuckets(Buckets::new(count).unwrap(), Edge::Full);
    let (tens, twenties) = (rule("api", &["9/1h"], buckets(10)), rule("api", &["9/1h"], buckets(20)));
    let (idle, busy) = (rule("idle", &[RATE], Algorithm::Gcra), rule("busy", &[RATE], Algorithm::Gcra));
    let admit = |store: &MemoryStore, now_us, rule, name: &str| {
        assert!(store.check(now_us, &admission(&[(rule, name, 1)])).unwrap().allowed());
    };
    for lead in 0..64 {
        let store: MemoryStore = MemoryStore::with_locks(1, 1 << 20);
        for number in 0..20 {
            admit(&store, BOUNDARY_US, &tens, &format!("ten:{number}"));
            admit(&store, BOUNDARY_US, &idle, &format!("idle:{number}"));
        }
        for call in 0..lead {
            admit(&store, BOUNDARY_US + call, &busy, "busy");
        }
        for number in 0..20 {
            admit(&store, BOUNDARY_US, &twenties, &format!("twenty:{number}"));
        }
        for call in 0..2_000 {
            admit(&store, BOUNDARY_US + 30 * SECOND_US + call, &busy, "busy");
        }
        assert_eq!(store.stats().keys, 41, "the second geometry came {lead} calls later");
    }
}
