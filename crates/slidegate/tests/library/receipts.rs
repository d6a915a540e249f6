//! Refunds, settlements and credits: at most the units that still count are given back.

use crate::common::*;
use slidegate::rule::Entries;
use slidegate::store::MemoryStore;
use slidegate::testing::Auditor;
use slidegate::{Algorithm, Charge, Decision, ReceiptError};

#[test]
fn settling_for_less_refunds_the_difference() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["100/10s"], algorithm);
        let store = MemoryStore::new();
        let receipt = check(&store, BOUNDARY_US, &rule, 40).receipt().unwrap();
        let settled = store.settle(BOUNDARY_US, &receipt, 15).unwrap();
        assert_eq!((settled.applied, settled.units), (true, 25), "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 15, "{algorithm}");
    }
}

#[test]
fn settling_for_more_charges_the_excess_unconditionally() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["100/10s"], algorithm);
        let store = MemoryStore::new();
        let receipt = check(&store, BOUNDARY_US, &rule, 40).receipt().unwrap();
        let settled = store.settle(BOUNDARY_US, &receipt, 340).unwrap();
        assert_eq!((settled.applied, settled.units), (true, 300), "{algorithm}");
        let denied = check(&store, BOUNDARY_US, &rule, 1);
        assert_eq!(
            (denied.allowed(), denied.used(), denied.remaining()),
            (false, Some(340), Some(0)),
            "{algorithm}"
        );
        let passes_us = BOUNDARY_US + retry_us(&denied);
        assert!(!peek(&store, passes_us - 1, &rule, 1).allowed(), "{algorithm}");
        assert!(peek(&store, passes_us, &rule, 1).allowed(), "{algorithm}");
    }
}

#[test]
fn settling_as_charged_spends_the_receipt() {
    let rule = rule("api", &["100/10s"], Algorithm::SlidingLog);
    let store = MemoryStore::new();
    let receipt = check(&store, BOUNDARY_US, &rule, 40).receipt().unwrap();
    assert_eq!(store.settle(BOUNDARY_US, &receipt, 40).unwrap().units, 0);
    assert!(!store.refund(BOUNDARY_US, &receipt).unwrap().applied);
    assert_eq!(used(&store, BOUNDARY_US, &rule), 40);
}

#[test]
fn bad_settlements_name_the_field_and_change_nothing() {
    let quota = rule("quota", &["100/10s"], Algorithm::SlidingLog);
    let costly = rule("costly", &["5/10s"], Algorithm::SlidingLog);
    let store = MemoryStore::new();
    let both = store.check(BOUNDARY_US, &admission(&[(&quota, "alice", 50), (&costly, "alice", 1)])).unwrap();
    let unequal = store.settle(BOUNDARY_US, &both.receipt().unwrap(), 20).unwrap_err();
    assert_eq!(unequal, ReceiptError::UnequalCosts { first: 50, second: 1 });
    let receipt = check(&store, BOUNDARY_US, &costly, 1).receipt().unwrap();
    let excess = store.settle(BOUNDARY_US, &receipt, 1 + 16 * 5 + 1).unwrap_err();
    assert_eq!(excess, ReceiptError::Excess { rule: "costly".into(), excess: 81, excess_max: 80 });
    assert!(excess.to_string().starts_with("actual: 81 units above"));
    assert_eq!(used(&store, BOUNDARY_US, &costly), 2);
    assert!(store.refund(BOUNDARY_US, &receipt).unwrap().applied, "a refused settlement does not spend");
    let other = receipt.expect_rule("quota").unwrap_err().to_string();
    assert!(other.contains("not of rule `quota` but of costly"), "{other}");
    assert_eq!(receipt.expect_rule("costly"), Ok(()));
}

#[test]
fn a_credit_takes_the_oldest_first_and_at_most_what_is_used() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["100/10s"], algorithm);
        let store = MemoryStore::new();
        let credit =
            |store: &MemoryStore, units| store.credit(BOUNDARY_US, &Charge::new(&rule, key("alice"), units));
        assert!(!credit(&store, 5).applied, "{algorithm}: nobody there");
        check(&store, BOUNDARY_US, &rule, 30);
        assert_eq!(credit(&store, 10).units, 10, "{algorithm}");
        assert_eq!(credit(&store, u64::MAX).units, 20, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 0, "{algorithm}");
    }
    let rule = rule("api", &["100/10s"], Algorithm::SlidingLog);
    let store = MemoryStore::new();
    check(&store, BOUNDARY_US, &rule, 30);
    check(&store, BOUNDARY_US + SECOND_US, &rule, 30);
    store.credit(BOUNDARY_US + SECOND_US, &Charge::new(&rule, key("alice"), 30));
    assert_eq!(
        used(&store, BOUNDARY_US + 10 * SECOND_US, &rule),
        30,
        "the newer ones stay for their whole window"
    );
}

/// Small credits of a fading window add up, although each lowers `used` by less than a unit.
#[test]
fn small_credits_are_not_lost() {
    let rule = rule("api", &["10/10s"], Algorithm::SlidingCounter);
    let store = MemoryStore::new();
    check(&store, BOUNDARY_US - 1, &rule, 3);
    let now_us = BOUNDARY_US + 4 * SECOND_US;
    assert_eq!(used(&store, now_us, &rule), 2, "3 x 0.6, rounded up");
    store.credit(now_us, &Charge::new(&rule, key("alice"), 1));
    store.credit(now_us, &Charge::new(&rule, key("alice"), 1));
    assert_eq!(used(&store, now_us, &rule), 1);
}

/// Taking one charge out of the line moves the later ones forward; a receipt must not give back units that
/// have drained since.
#[test]
fn gcra_refunds_only_what_has_not_drained() {
    let rule = rule("api", &["10/10s"], Algorithm::Gcra);
    let store = MemoryStore::new();
    let mut auditor = Auditor::new(10, 10 * SECOND_US);
    let mut admitted = |now_us: u64, decision: &Decision<'_>, cost: u64| {
        auditor.saw(now_us, cost, decision.allowed());
        auditor.findings().most_in_window
    };
    let first = check(&store, BOUNDARY_US, &rule, 5).receipt().unwrap();
    let second = check(&store, BOUNDARY_US, &rule, 5).receipt().unwrap();
    assert_eq!(store.refund(BOUNDARY_US, &first).unwrap().units, 5);
    let later_us = BOUNDARY_US + 4 * SECOND_US;
    let third = check(&store, later_us, &rule, 5);
    admitted(later_us, &third, 5);
    assert_eq!(store.refund(later_us, &second).unwrap().units, 1, "4 of its 5 units have drained");
    for step in 0..1_000 {
        let now_us = later_us + step * 10 * MILLISECOND_US;
        let outcome = check(&store, now_us, &rule, 1);
        assert!(admitted(now_us, &outcome, 1) <= 19, "2L-1, although charges were refunded");
    }

    // Undisturbed, a charge at the end of the line has not begun to drain.
    let store = MemoryStore::new();
    check(&store, BOUNDARY_US, &rule, 4);
    let last = check(&store, BOUNDARY_US, &rule, 4).receipt().unwrap();
    assert_eq!(store.refund(BOUNDARY_US + 4 * SECOND_US, &last).unwrap().units, 4);
}

/// A credit of merged charges may have taken a receipt's units: a refund must not give them back again.
#[test]
fn a_compact_log_does_not_refund_what_was_credited() {
    let rule = rule("api", &["20/10s"], Algorithm::CompactLog(Entries::new(4).unwrap()));
    let store = MemoryStore::new();
    let first = check(&store, BOUNDARY_US, &rule, 5).receipt().unwrap();
    store.credit(BOUNDARY_US, &Charge::new(&rule, key("alice"), 5));
    for step in 1..=6 {
        check(&store, BOUNDARY_US + step, &rule, 1);
    }
    assert!(!store.refund(BOUNDARY_US + 7, &first).unwrap().applied);
    assert_eq!(used(&store, BOUNDARY_US + 7, &rule), 6);
}

#[test]
fn a_receipt_of_several_charges_gives_back_all_of_them() {
    for algorithm in every_algorithm() {
        let (quota, costly) =
            (rule("quota", &["100/1h"], algorithm), rule("costly", &["5/10s", "9/1m"], algorithm));
        let store = MemoryStore::new();
        let charges =
            [(&quota, "alice", 10), (&costly, "alice", 2), (&costly, "alice", 1), (&quota, "bob", 7)];
        let receipt = store.check(BOUNDARY_US, &admission(&charges)).unwrap().receipt().unwrap();
        assert_eq!(receipt.charges().len(), 3, "one entry per state");
        assert_eq!(store.refund(BOUNDARY_US, &receipt).unwrap().units, 20, "{algorithm}");
        for (rule, name) in [(&quota, "alice"), (&costly, "alice"), (&quota, "bob")] {
            assert!(
                store.inspect(BOUNDARY_US, rule, key(name)).iter().all(|limit| limit.used == 0),
                "{algorithm}"
            );
        }
    }
}

/// A live change to another window and back creates new states whose buckets and windows have the same numbers.
#[test]
fn a_receipt_from_before_a_live_change_and_back_gives_nothing() {
    for algorithm in every_algorithm() {
        let hourly = rule("api", &["10/1h"], algorithm);
        let store = MemoryStore::new();
        let old = check(&store, BOUNDARY_US, &hourly, 6).receipt().unwrap();
        store.change(BOUNDARY_US + SECOND_US, &rule("api", &["10/1s"], algorithm));
        store.change(BOUNDARY_US + 10 * SECOND_US, &hourly);
        let now_us = BOUNDARY_US + 11 * SECOND_US;
        let left = 10 - used(&store, now_us, &hourly);
        let new = check(&store, now_us, &hourly, left).receipt().unwrap();
        assert!(!store.refund(now_us, &old).unwrap().applied, "{algorithm}");
        assert!(!peek(&store, now_us, &hourly, 1).allowed(), "{algorithm}: never over");
        assert_eq!(store.refund(now_us, &new).unwrap().units, left, "{algorithm}: its own receipts work");
    }
}

#[test]
fn a_spent_or_expired_receipt_is_not_examined_further() {
    let (quota, costly) =
        (rule("quota", &["100/10s"], Algorithm::Gcra), rule("costly", &["5/10s"], Algorithm::Gcra));
    let store = MemoryStore::new();
    let both = store
        .check(BOUNDARY_US, &admission(&[(&quota, "alice", 50), (&costly, "alice", 1)]))
        .unwrap()
        .receipt()
        .unwrap();
    assert!(store.refund(BOUNDARY_US, &both).unwrap().applied);
    assert!(
        !store.settle(BOUNDARY_US, &both, 20).unwrap().applied,
        "spent, although it could not be settled"
    );
    let late = check(&store, BOUNDARY_US, &costly, 1).receipt().unwrap();
    assert!(!store.settle(BOUNDARY_US + 60 * SECOND_US, &late, u64::MAX).unwrap().applied, "expired");
}

/// The order of calls decides, not the clock, which may have been set back or stand still.
#[test]
fn a_reset_voids_earlier_receipts_and_no_others() {
    for algorithm in every_algorithm() {
        for reset_us in [BOUNDARY_US - MILLISECOND_US, BOUNDARY_US, BOUNDARY_US + MILLISECOND_US] {
            let rule = rule("api", &["5/10s"], algorithm);
            let store = MemoryStore::new();
            let old = check(&store, BOUNDARY_US, &rule, 5).receipt().unwrap();
            store.reset(reset_us, &rule, key("alice"));
            let new = check(&store, BOUNDARY_US, &rule, 5).receipt().unwrap();
            assert!(!store.refund(BOUNDARY_US, &old).unwrap().applied, "{algorithm}: reset at {reset_us}");
            assert!(!peek(&store, BOUNDARY_US, &rule, 1).allowed(), "{algorithm}: never over");
            assert_eq!(store.refund(BOUNDARY_US, &new).unwrap().units, 5, "{algorithm}: reset at {reset_us}");
        }
    }
}

#[test]
fn a_live_change_voids_receipts_although_the_clock_was_set_back() {
    for algorithm in every_algorithm() {
        let hourly = rule("api", &["10/1h"], algorithm);
        let store = MemoryStore::new();
        let old = check(&store, BOUNDARY_US + 10 * SECOND_US, &hourly, 8).receipt().unwrap();
        store.change(BOUNDARY_US, &rule("api", &["10/1s"], algorithm));
        store.change(BOUNDARY_US + 5 * SECOND_US, &hourly);
        let now_us = BOUNDARY_US + 11 * SECOND_US;
        let left = 10 - used(&store, now_us, &hourly);
        if left > 0 {
            check(&store, now_us, &hourly, left);
        }
        assert!(!store.refund(now_us, &old).unwrap().applied, "{algorithm}");
        assert!(!peek(&store, now_us, &hourly, 1).allowed(), "{algorithm}");
    }
}

/// A new state after a sweep does not accept old receipts, even if the clock was set back and its numbers are
/// equal.
#[test]
fn a_receipt_is_void_for_a_new_state_after_a_sweep() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["1000000000/10s"], algorithm);
        let store = MemoryStore::new();
        let old = check(&store, BOUNDARY_US, &rule, 1_000_000_000).receipt().unwrap();
        assert_eq!(store.sweep(BOUNDARY_US + 60 * SECOND_US), 1, "{algorithm}");
        check(&store, BOUNDARY_US, &rule, 1_000_000_000);
        assert!(!store.refund(BOUNDARY_US, &old).unwrap().applied, "{algorithm}");
        assert!(!peek(&store, BOUNDARY_US, &rule, 1).allowed(), "{algorithm}");
    }
}

#[test]
fn a_settlement_is_bounded_by_the_smallest_limit() {
    let rule = rule("api", &["5/1s", "100/1m"], Algorithm::SlidingLog);
    let store = MemoryStore::new();
    let receipt = check(&store, BOUNDARY_US, &rule, 1).receipt().unwrap();
    let error = store.settle(BOUNDARY_US, &receipt, 1 + 81).unwrap_err();
    assert_eq!(error, ReceiptError::Excess { rule: "api".into(), excess: 81, excess_max: 80 });
    assert_eq!(store.settle(BOUNDARY_US, &receipt, 1 + 80).unwrap().units, 80);
}

/// Settlements far above the limit saturate instead of overflowing.
#[test]
fn used_saturates() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["1000000000000/400d"], algorithm);
        let store = MemoryStore::new();
        let receipts: Vec<_> =
            (0..100).map(|step| check(&store, BOUNDARY_US + step, &rule, 1).receipt()).collect();
        for receipt in receipts.into_iter().flatten() {
            store.settle(BOUNDARY_US + 100, &receipt, 16_000_000_000_000).unwrap();
        }
        assert_eq!(used(&store, BOUNDARY_US + 100, &rule), slidegate::algorithm::USED_MAX, "{algorithm}");
        assert!(!peek(&store, BOUNDARY_US + 100, &rule, 1).allowed(), "{algorithm}");
    }
}
