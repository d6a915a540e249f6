//! Shares of the memory budget: neither inline rules nor one rule's refunds can take what others need.

use slidegate::store::{BUDGET_BYTES_MIN, MemoryStore, StoreError};
use slidegate::{Algorithm, ReceiptError, Rule};

use crate::budget::{ask, small_store};
use crate::common::*;

/// Admits and refunds a unit.
fn check_and_refund(store: &MemoryStore, now_us: u64, rule: &Rule, name: &str) -> Result<u64, ReceiptError> {
    let decision = ask(store, now_us, &[(rule, name, 1)]).unwrap();
    Ok(store.refund(now_us, &decision.receipt().unwrap())?.units)
}

/// A client that checks and refunds in a loop has no units in use, and once blocked the refunds of everybody for as long
/// as its window, with a million records that no budget knew of.
#[test]
fn refunds_of_one_key_leave_refunds_to_others() {
    let store = small_store();
    let (quota, other) =
        (rule("quota", &["10/24h"], Algorithm::SlidingLog), rule("other", &["10/24h"], Algorithm::Gcra));
    let bytes_before = {
        check_and_refund(&store, BOUNDARY_US, &quota, "busy").unwrap();
        store.stats().bytes
    };
    let refused = (1..2_000).find_map(|_| check_and_refund(&store, BOUNDARY_US, &quota, "busy").err());
    let Some(error @ ReceiptError::ShareFull { records, owner: "this key" }) = refused else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains("retry when older ones have expired, or raise the memory budget"));
    let stats = store.stats();
    assert_eq!(stats.spent_receipts, records as u64);
    assert!(stats.bytes > bytes_before + 100 * (stats.spent_receipts - 1), "{stats:?}");
    // What could not be refunded stays charged: never over.
    assert_eq!(store.inspect(BOUNDARY_US, &quota, key("busy"))[0].used, 1);
    for (rule, name) in [(&quota, "alice"), (&other, "busy")] {
        assert_eq!(check_and_refund(&store, BOUNDARY_US, rule, name), Ok(1), "{name}");
    }
    // A day later the records have expired.
    assert_eq!(check_and_refund(&store, BOUNDARY_US + DAY_US, &quota, "busy"), Ok(1));
    store.sweep(BOUNDARY_US + 3 * DAY_US);
    let stats = store.stats();
    assert_eq!((stats.bytes, stats.spent_receipts), (0, 0));
}

/// Refunds end, and their records go with the traffic of others.
#[test]
fn expired_records_are_dropped_without_another_refund() {
    let store = small_store();
    let quota = rule("quota", &["10/10s"], Algorithm::FixedWindow);
    for number in 0..300 {
        check_and_refund(&store, BOUNDARY_US, &quota, &format!("refunding:{number}")).unwrap();
    }
    assert_eq!(store.stats().spent_receipts, 300);
    for number in 0..1_000 {
        ask(&store, BOUNDARY_US + 30 * SECOND_US, &[(&quota, &format!("other:{number}"), 1)]).unwrap();
    }
    assert_eq!(store.stats().spent_receipts, 0);
}

/// Requests may invent inline rules, each with a table of its own. They once filled the budget for as long as their
/// windows, up to 400 days, and new keys of configured rules were refused.
#[test]
fn inline_rules_leave_room_for_configured_ones() {
    for algorithm in every_algorithm() {
        let store = small_store();
        let mut refused = None;
        for seconds in 1..20_000 {
            let inline = Rule::inline(format!("5/{}s", 30 * 86_400 + seconds).parse().unwrap(), algorithm);
            if let Err(full) = store.check(BOUNDARY_US, &admission(&[(&inline, "alice", 1)])) {
                refused = Some(full);
                break;
            }
        }
        let share_bytes = BUDGET_BYTES_MIN / 2;
        assert_eq!(refused, Some(StoreError::InlineFull { share_bytes }), "{algorithm}");
        assert!(store.stats().bytes <= share_bytes, "{algorithm}: {:?}", store.stats());
        let default = rule("default", &["5/1m"], algorithm);
        for number in 0..500 {
            let name = format!("user:{number}");
            let decision = ask(&store, BOUNDARY_US, &[(&default, &name, 1)]).unwrap();
            assert!(decision.allowed() && !decision.degraded(), "{algorithm}");
        }
        store.sweep(BOUNDARY_US + 500 * DAY_US);
        let stats = store.stats();
        assert_eq!((stats.keys, stats.bytes), (0, 0), "{algorithm}");
    }
}

/// Keys, growth and logs on the heap count for the part too, and sweeping gives it back.
#[test]
fn many_keys_of_one_inline_rule_leave_room_too() {
    for algorithm in every_algorithm() {
        let store = small_store();
        let inline = Rule::inline("30/10s".parse().unwrap(), algorithm);
        let (mut admitted, mut refused) = (0, 0);
        while refused < 300 {
            let name = format!("flood:{}", admitted + refused);
            match store.check(BOUNDARY_US, &admission(&[(&inline, &name, 1)])) {
                Ok(_) => admitted += 1,
                Err(full) => {
                    assert!(matches!(full, StoreError::InlineFull { .. }), "{full}");
                    refused += 1;
                }
            }
            assert!(admitted < 100_000, "{algorithm}: so many keys do not fit");
        }
        assert!(store.stats().bytes <= BUDGET_BYTES_MIN / 2, "{algorithm}");
        let default = rule("default", &["5/1m"], algorithm);
        ask(&store, BOUNDARY_US, &[(&default, "alice", 1)]).unwrap();
        // Refused requests sweep, as admitted ones do.
        let later_us = BOUNDARY_US + 60 * SECOND_US;
        let found_room = (0..20_000)
            .any(|number| ask(&store, later_us, &[(&inline, &format!("new:{number}"), 1)]).is_ok());
        assert!(found_room, "{algorithm}");
    }
}
