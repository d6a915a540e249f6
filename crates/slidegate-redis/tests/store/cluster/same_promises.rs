//! What holds on one Redis holds on a cluster: the conformance suite, equality with the model, flushed scripts, live
//! changes, the secret.

use std::sync::Arc;

use super::{key_on_each, keys_on, options_of, store_in};
use crate::common::*;
use crate::faults::{PLENTY, under_load};
use slidegate::Algorithm;
use slidegate::store::{Call, Store, Update};
use slidegate::testing::trace::{Trace, algorithms};
use slidegate::testing::{Coverage, conformance, differential, search_size};
use slidegate_redis::{LogLayout, RedisStore};

/// Steps and traces of the comparison with the model. The traces of one Redis are many more: this one looks at what a
/// cluster adds, admissions and receipts over several slots.
const STEPS: usize = 150;
const TRACES: u64 = 2;

#[test]
fn the_store_passes_the_conformance_suite() {
    let cluster = RedisCluster::shared();
    run(async {
        let fresh = async || store_in(&cluster).await;
        conformance::promises(&fresh).await.unwrap_or_else(|broken| panic!("{broken}"));
    });
}

#[test]
fn every_algorithm_equals_the_model() {
    let cluster = RedisCluster::shared();
    run(async {
        let mut coverage = Coverage::default();
        for algorithm in algorithms() {
            for seed in 0..search_size(TRACES) {
                let (store, trace) = (store_in(&cluster).await, Trace::new(seed, algorithm));
                let judged = differential::run_trace(&store, trace, STEPS, &mut coverage).await;
                judged.unwrap_or_else(|wrong| panic!("{algorithm}, seed {seed}: {wrong}"));
            }
        }
    });
}

#[test]
fn sorted_sets_equal_the_model() {
    let cluster = RedisCluster::shared();
    run(async {
        let options = options_of(&cluster).0.log_layout(LogLayout::SortedSet);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let trace = Trace::of_small_limits(7, Algorithm::SlidingLog);
        let judged = differential::run_trace(&store, trace, STEPS, &mut Coverage::default()).await;
        judged.unwrap_or_else(|wrong| panic!("{wrong}"));
    });
}

/// Row 9: a cluster refuses a script whose keys lie in several slots. What users write as a key must not change the slot.
#[test]
fn row_9_keys_with_braces_share_the_slot_of_their_own_states() {
    let cluster = RedisCluster::shared();
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let [api, search] =
            ["api", "search"].map(|name| rule(name, &["5/1h", "50/2h"], Algorithm::SlidingLog));
        let names = ["}", "{", "{}", "{a}", "a{b", "}a{", "{{a}}", "{}{a}", "%7B", "a b", "\u{e9}}{"];
        for name in names {
            let both = admission(&[(&api, name, 2), (&search, name, 3)]);
            let decision =
                store.check(Call::now(), &both).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(decision.allowed() && decision.atomic(), "{name}");
            assert_eq!(used_by(&store, Call::now(), &search, name).await, 3, "{name}");
            let receipt = decision.receipt().unwrap();
            assert_eq!(store.update(Call::now(), Update::Refund(&receipt)).await.unwrap().units, 5, "{name}");
        }
        // Two states and the record of the spent receipt, for every key.
        assert_eq!(cluster.keys(&format!("{prefix}:")).len(), 3 * names.len());
    });
}

/// Row 10: every node has a script cache of its own.
#[test]
fn row_10_flushed_scripts_are_sent_again() {
    let cluster = RedisCluster::shared();
    let rule = Arc::new(rule("api", &[PLENTY], Algorithm::SlidingLog));
    run(async {
        let store = Arc::new(store_in(&cluster).await);
        let flush = || cluster.nodes().iter().for_each(|node| drop(node.command(&["SCRIPT", "FLUSH"])));
        let tally = under_load(&store, &rule, 30, flush).await;
        tally.assert_answered();
        assert!(tally.admitted > 30, "{tally:?}");
        assert_eq!(used(&*store, Call::now(), &rule).await, tally.admitted, "none lost, none twice");
    });
}

#[test]
fn row_16_a_thousand_callers_get_exactly_the_limit() {
    let cluster = RedisCluster::shared();
    run(async {
        let store = Arc::new(store_in(&cluster).await);
        for (number, algorithm) in every_algorithm().into_iter().enumerate() {
            let rule = Arc::new(rule(&format!("rule-{number}"), &["50/400d"], algorithm));
            let tally = tally::all_at_once(&store, &rule, 1_000).await;
            tally.assert_answered();
            assert_eq!(tally.admitted, 50, "{algorithm}");
        }
    });
}

/// A batch is answered in its order, although its admissions go to several nodes, and some to more than one.
#[test]
fn a_batch_is_answered_in_its_order() {
    let cluster = RedisCluster::shared();
    let [here, _, there] = key_on_each(&cluster);
    run(async {
        let store = store_in(&cluster).await;
        let api = rule("api", &["9/1h"], Algorithm::SlidingLog);
        let one = |name| admission(&[(&api, name, 1)]);
        let both = admission(&[(&api, &here, 1), (&api, &there, 1)]);
        let batch = [one(&here), one(&there), both.clone(), one(&here), both, one(&there)];
        let decisions = store.check_batch(Call::now(), &batch).await;
        let used: Vec<_> = decisions.into_iter().map(|decision| decision.unwrap().used().unwrap()).collect();
        assert_eq!(used, [1, 1, 2, 3, 4, 4]);
    });
}

#[test]
fn a_live_change_reaches_the_states_of_every_node() {
    let cluster = RedisCluster::shared();
    let names: Vec<_> = (0..3).flat_map(|primary| keys_on(&cluster, primary, 2)).collect();
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let [before, after] = ["9/1h", "9/2h"].map(|rate| rule("api", &[rate], Algorithm::SlidingLog));
        for name in &names {
            assert!(store.check(Call::now(), &admission(&[(&before, name, 4)])).await.unwrap().allowed());
        }
        let value = |name: &str| {
            let node = &cluster.nodes()[cluster.primary_of(name)];
            node.command(&["GET", &format!("{prefix}:{{{name}}}:api")])
        };
        let old: Vec<_> = names.iter().map(|name| value(name)).collect();
        store.change(Call::now(), &after).await.unwrap();
        for (name, old) in names.iter().zip(old) {
            assert_ne!(value(name), old, "{name}");
            assert_eq!(used_by(&store, Call::now(), &after, name).await, 4, "{name}");
        }
    });
}

#[test]
fn all_processes_get_the_same_secret() {
    let cluster = RedisCluster::shared();
    run(async {
        let (options, _) = options_of(&cluster);
        let [first, second] = [(); 2].map(|()| RedisStore::lazy(&options).unwrap());
        let secret = first.secret().await.unwrap();
        assert!(secret.is_some());
        assert_eq!(second.secret().await.unwrap(), secret);
    });
}
