//! Admissions over several slots: all or none, never over, and nothing is left of a denied one.

use std::sync::Arc;

use super::{key_on_each, options_as, options_of, store_in};
use crate::common::*;
use slidegate::store::{Call, Store, StoreError};
use slidegate::{Algorithm, Rule};
use slidegate_redis::RedisStore;
use tokio::task::JoinSet;

fn rules(rates: [&str; 3]) -> [Rule; 3] {
    let names = ["first", "second", "third"];
    [0, 1, 2].map(|index| rule(names[index], &[rates[index]], Algorithm::SlidingLog))
}

#[test]
fn a_decision_says_whether_it_was_one_step() {
    let cluster = RedisCluster::shared();
    let [first, second, _] = key_on_each(&cluster);
    run(async {
        let store = store_in(&cluster).await;
        let [api, search, _] = rules(["5/1h", "9/1h", "9/1h"]);
        let one_slot = admission(&[(&api, &first, 1), (&search, &first, 1)]);
        let two_slots = admission(&[(&api, &first, 1), (&search, &second, 1)]);
        for (asked, atomic) in [(&one_slot, true), (&two_slots, false)] {
            let peeked = store.peek(Call::now(), asked).await.unwrap();
            assert_eq!((peeked.allowed(), peeked.atomic(), peeked.is_charged()), (true, atomic, false));
            let checked = store.check(Call::now(), asked).await.unwrap();
            assert_eq!((checked.allowed(), checked.atomic(), checked.is_charged()), (true, atomic, true));
        }
    });
}

/// The binding rule, the waits and every verdict are as of one step.
#[test]
fn a_denial_names_the_rule_that_binds_and_charges_nowhere() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let rules = rules(["9/1h", "9/1h", "2/2h"]);
        let now = Call::at_us(BOUNDARY_US);
        let asks: Vec<_> = rules.iter().zip(&keys).map(|(rule, key)| (rule, key.as_str(), 2)).collect();
        let all = admission(&asks);
        let admitted = store.check(now, &all).await.unwrap();
        assert_eq!((admitted.allowed(), admitted.rule(), admitted.remaining()), (true, "third", Some(0)));
        let before = cluster.keys(&prefix);

        let denied = store.check(now, &all).await.unwrap();
        assert_eq!((denied.allowed(), denied.rule(), denied.used()), (false, "third", Some(2)));
        assert_eq!(denied.retry_after().unwrap().as_secs(), 7_200);
        let verdicts: Vec<_> = denied.verdicts().map(|verdict| (verdict.allowed(), verdict.used())).collect();
        assert_eq!(verdicts, [(true, Some(2)), (true, Some(2)), (false, Some(2))]);
        for (rule, key) in rules.iter().zip(&keys) {
            assert_eq!(used_by(&store, now, rule, key).await, 2, "{key}");
        }
        assert_eq!(cluster.keys(&prefix), before);
    });
}

/// Many callers race for the last units of rules in three slots, in every order of the charges. All slots end with the
/// same use, which is that of the admitted callers; and denied callers have left nothing.
#[test]
fn concurrent_admissions_are_all_or_none() {
    let cluster = RedisCluster::shared();
    let keys = Arc::new(key_on_each(&cluster));
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = Arc::new(RedisStore::connect_with(&options).await.unwrap());
        for algorithm in every_algorithm() {
            let name = format!("{prefix}-{algorithm}");
            let rules =
                Arc::new([0, 1, 2].map(|index| rule(&format!("{name}-{index}"), &["20/400d"], algorithm)));
            let mut callers = JoinSet::new();
            for caller in 0..60 {
                let (store, rules, keys) = (Arc::clone(&store), Arc::clone(&rules), Arc::clone(&keys));
                callers.spawn(async move {
                    let mut asks: Vec<_> =
                        rules.iter().zip(keys.iter()).map(|(rule, key)| (rule, key.as_str(), 1)).collect();
                    asks.rotate_left(caller % 3);
                    let decision = store.check(Call::now(), &admission(&asks)).await.unwrap();
                    assert_eq!(decision.allowed(), decision.is_charged());
                    u64::from(decision.allowed())
                });
            }
            let admitted: u64 = callers.join_all().await.into_iter().sum();
            assert!((1..=20).contains(&admitted), "{algorithm}: {admitted}");
            for (rule, key) in rules.iter().zip(keys.iter()) {
                assert_eq!(used_by(&*store, Call::now(), rule, key).await, admitted, "{algorithm}, {key}");
            }
            // Nobody races any more: exactly the rest is admitted.
            for number in admitted + 1..=21 {
                let asks: Vec<_> =
                    rules.iter().zip(keys.iter()).map(|(rule, key)| (rule, key.as_str(), 1)).collect();
                let decision = store.check(Call::now(), &admission(&asks)).await.unwrap();
                assert_eq!(decision.allowed(), number <= 20, "{algorithm}, request {number}");
            }
        }
        let left: Vec<_> = cluster.keys(&prefix).into_iter().filter(|key| key.contains("%spent")).collect();
        assert!(left.is_empty(), "giving back leaves no record: {left:?}");
    });
}

/// A slot that fails after earlier ones were charged: they are given back, and the error is that of the slot.
#[test]
fn a_slot_that_refuses_gives_the_earlier_ones_back() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let (options, prefix) = options_as(&cluster, "half-charger");
        let store = RedisStore::connect_with(&options).await.unwrap();
        let rules = rules(["9/400d"; 3]);
        let asks: Vec<_> = rules.iter().zip(&keys).map(|(rule, key)| (rule, key.as_str(), 1)).collect();
        assert!(store.check(Call::now(), &admission(&asks)).await.unwrap().allowed());
        // On the last node a peek still passes, and a charge does not.
        cluster.nodes()[2].command(&["ACL", "SETUSER", "half-charger", "-set"]);
        let error = store.check(Call::now(), &admission(&asks)).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        for (rule, key) in rules.iter().zip(&keys) {
            assert_eq!(used_by(&store, Call::now(), rule, key).await, 1, "{key}");
        }
        assert!(!cluster.keys(&prefix).iter().any(|key| key.contains("%spent")));
    });
}

/// A caller that gives up, at any moment, leaves all of its admission or none of it.
#[test]
fn a_dropped_admission_is_not_half_made() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let store = store_in(&cluster).await;
        let rules = rules(["1000/400d"; 3]);
        let asks: Vec<_> = rules.iter().zip(&keys).map(|(rule, key)| (rule, key.as_str(), 1)).collect();
        let asked = admission(&asks);
        for polls in 0..40 {
            let mut check = Box::pin(store.check(Call::now(), &asked));
            for _ in 0..polls {
                let polled =
                    std::future::poll_fn(|context| std::task::Poll::Ready(check.as_mut().poll(context)));
                if polled.await.is_ready() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_micros(100)).await;
            }
        }
        let used = async |index: usize| used_by(&store, Call::now(), &rules[index], &keys[index]).await;
        // The tasks of the last ones may still be under way.
        for _ in 0..1_000 {
            if used(0).await == used(1).await && used(1).await == used(2).await {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let used = [used(0).await, used(1).await, used(2).await];
        assert!(used[0] == used[1] && used[1] == used[2] && used[0] > 0, "{used:?}");
    });
}
