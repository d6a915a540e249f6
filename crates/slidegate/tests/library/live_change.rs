//! Live changes of rules. Other limiters lost counters, panicked or stopped limiting after an edit (row 22 of our
//! table of bugs in other limiters).

use crate::common::*;
use slidegate::store::MemoryStore;
use slidegate::{Algorithm, Rule};

/// Editing a rule loses counters or panics.
#[test]
fn row_22_a_live_change_keeps_what_is_used() {
    let everything = every_algorithm();
    for &algorithm in &everything {
        let old = rule("api", &["10/10s"], algorithm);
        let changes = everything.iter().flat_map(|&other| {
            [
                &["7/10s"][..],
                &["20/10s"],
                &["7/20s"],
                &["3/1s"],
                &["7/10s", "100/1h"],
                &["1000000000000/400d"],
            ]
            .map(|rates| rule("api", rates, other))
        });
        for new in changes {
            // At once, half faded, at the very end, and long after.
            for after_us in [0, 5 * SECOND_US, 10 * SECOND_US - 1, 60 * SECOND_US] {
                let store = MemoryStore::new();
                let now_us = BOUNDARY_US + SECOND_US + after_us;
                check(&store, BOUNDARY_US + SECOND_US, &old, 6);
                let before = used(&store, now_us, &old);
                assert_change_holds(&store, now_us, &new, before);
            }
        }
    }
}

/// Changes the rule to `new` with `before` units used, and asserts that they still count.
fn assert_change_holds(store: &MemoryStore, now_us: u64, new: &Rule, before: u64) {
    store.change(now_us, new);
    assert_eq!(used(store, now_us, new), before, "{new:?}");
    let remaining = new.cost_max().saturating_sub(before);
    assert_eq!(peek(store, now_us, new, 1).remaining(), Some(remaining), "{new:?}");
    if remaining > 0 {
        assert!(check(store, now_us, new, remaining).allowed());
    }
    let denied = check(store, now_us, new, 1);
    assert!(!denied.allowed(), "never over: {new:?}");
    let passes_us = now_us + retry_us(&denied);
    assert!(!peek(store, passes_us - 1, new, 1).allowed(), "{new:?}");
    assert!(peek(store, passes_us, new, 1).allowed(), "{new:?}");
}

#[test]
fn row_22_headroom_and_shadow_change_live() {
    for algorithm in every_algorithm() {
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US, &rule("api", &["10/10s"], algorithm), 8);
        let build = |headroom: &str, shadow: bool| {
            let builder = Rule::builder("api").limit("10/10s".parse().unwrap()).algorithm(algorithm);
            builder.headroom(headroom.parse().unwrap()).shadow(shadow).build().unwrap()
        };
        let tighter = build("0.3", false);
        store.change(BOUNDARY_US, &tighter);
        let denied = peek(&store, BOUNDARY_US, &tighter, 1);
        assert_eq!(
            (denied.allowed(), denied.limit(), denied.used()),
            (false, Some(7), Some(8)),
            "{algorithm}"
        );
        let shadow = build("0.3", true);
        store.change(BOUNDARY_US, &shadow);
        let watched = check(&store, BOUNDARY_US, &shadow, 1);
        assert!(watched.allowed() && watched.receipt().is_none(), "{algorithm}: counted, not refused");
        assert!(!watched.verdicts().next().unwrap().allowed(), "{algorithm}");
        store.change(BOUNDARY_US, &build("0", false));
        assert!(check(&store, BOUNDARY_US, &build("0", false), 2).allowed(), "{algorithm}");
    }
}

/// An invalid change is rejected before it reaches a store.
#[test]
fn row_22_a_bad_change_cannot_be_built() {
    let api = rule("api", &["10/10s"], Algorithm::SlidingLog);
    assert!(api.with_rates(&[]).unwrap_err().to_string().contains("limits: 0 given"));
    let twice = ["5/1m".parse().unwrap(), "6/60s".parse().unwrap()];
    assert!(api.with_rates(&twice).unwrap_err().to_string().contains("same window"));
}
