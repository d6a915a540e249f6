//! The model store on hand-written histories.

use super::super::samples::SECOND_US;
use super::*;
use crate::charge::Charge;
use crate::charge::ChargeError;
use crate::key::Key;
use crate::rule::Algorithm;

fn rule(name: &str, rates: &[&str]) -> Rule {
    let builder =
        rates.iter().fold(Rule::builder(name), |builder, rate| builder.limit(rate.parse().unwrap()));
    builder.build().unwrap()
}

fn shadow(name: &str, rate: &str) -> Rule {
    Rule::builder(name).limit(rate.parse().unwrap()).shadow(true).build().unwrap()
}

fn admission<'a>(charges: &[(&'a Rule, &'a str, u64)]) -> Admission<'a> {
    let charges: Vec<_> =
        charges.iter().map(|&(rule, key, cost)| Charge::new(rule, Key::new(key).unwrap(), cost)).collect();
    Admission::new(&charges).unwrap()
}

const NOTHING: Applied = Applied { applied: false, units: 0 };

fn applied(units: u64) -> Applied {
    Applied { applied: true, units }
}

#[test]
fn worked_example_10_both_or_neither() {
    let (quota, search) = (rule("yt-quota", &["9500/24h"]), rule("yt-search", &["500/10m", "9400/24h"]));
    let key = Key::new("key1").unwrap();
    let never = Admission::new(&[Charge::new(&quota, key, 9_501)]).unwrap_err();
    assert_eq!(never, ChargeError::Never { rule: "yt-quota".into(), cost: 9_501, limit: 9_500 });

    let mut store = ModelStore::new();
    let both = admission(&[(&quota, "key1", 100), (&search, "key1", 100)]);
    let call_us = |call: u64| call * 150 * SECOND_US;
    for call in 0..94 {
        assert!(store.check(call_us(call), &both).0.allowed, "call {call}");
    }
    let (denied, receipt) = store.check(call_us(94), &both);
    assert!(!denied.allowed && receipt.is_none());
    assert_eq!((denied.rule.as_str(), denied.limit, denied.used), ("yt-search", 9_400, 9_400));
    assert_eq!(denied.retry_after_us, 86_400 * SECOND_US - call_us(94));
    assert!(denied.verdicts[0].allowed && !denied.verdicts[1].allowed);
    assert_eq!(store.inspect(call_us(94), &quota, "key1")[0].1.used, 9_400, "the quota was not charged");
    let alone = admission(&[(&quota, "key1", 100)]);
    assert!(store.check(call_us(94), &alone).0.allowed);
    let (refused, _) = store.check(call_us(95), &alone);
    assert_eq!((refused.used, refused.retry_after_us), (9_500, 86_400 * SECOND_US - call_us(95)));
}

#[test]
fn a_peek_leaves_no_trace_and_an_admission_counts_itself() {
    let api = rule("api", &["5/1s", "8/1m"]);
    let mut store = ModelStore::new();
    let ask = admission(&[(&api, "alice", 2), (&api, "alice", 1)]);
    let peeked = store.peek(0, &ask);
    assert_eq!((peeked.allowed, peeked.limit, peeked.used, peeked.remaining), (true, 5, 0, 5));
    let (decision, receipt) = store.check(0, &ask);
    assert_eq!((decision.limit, decision.used, decision.remaining), (5, 3, 2));
    assert_eq!((decision.window_us, decision.reset_after_us), (SECOND_US, 60 * SECOND_US));
    assert_eq!(decision.verdicts.len(), 2);
    assert_eq!(decision.verdicts[0], decision.verdicts[1]);
    assert_eq!(receipt.unwrap().charges.len(), 1, "one per state");
    let (decision, _) = store.check(SECOND_US, &ask);
    assert_eq!((decision.limit, decision.remaining), (8, 2), "2 left of both: the longest window binds");
}

#[test]
fn a_shadow_is_charged_when_it_would_admit() {
    let (api, tight) = (rule("api", &["9/1m"]), shadow("tight", "2/1m"));
    let mut store = ModelStore::new();
    let both = admission(&[(&api, "a", 2), (&tight, "a", 2)]);
    let (first, receipt) = store.check(0, &both);
    assert_eq!((first.allowed, first.used, first.verdicts[1].used), (true, 2, 2));
    assert_eq!(receipt.unwrap().charges.len(), 2);
    let (second, receipt) = store.check(SECOND_US, &both);
    assert_eq!((second.allowed, second.used, second.retry_after_us), (true, 4, 0));
    assert_eq!((second.verdicts[1].allowed, second.verdicts[1].retry_after_us), (false, 59 * SECOND_US));
    assert_eq!(receipt.unwrap().charges.len(), 1);
    let (alone, receipt) = store.check(SECOND_US, &admission(&[(&tight, "b", 3)]));
    assert!(alone.allowed && receipt.is_none());
    assert_eq!((alone.verdicts[0].allowed, alone.verdicts[0].retry_after_us), (false, 0), "never");
}

#[test]
fn a_receipt_works_once_and_until_it_expires() {
    let (api, costly) = (rule("api", &["9/1s", "9/1m"]), rule("costly", &["9/1s"]));
    let mut store = ModelStore::new();
    let both = admission(&[(&api, "a", 4), (&costly, "a", 4)]);
    let (_, first) = store.check(0, &both);
    let (_, second) = store.check(SECOND_US, &both);
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(store.refund(SECOND_US, &first), applied(4), "it has expired for all but the minute");
    assert_eq!(store.refund(SECOND_US, &first), NOTHING);
    assert_eq!(store.clone().refund(61 * SECOND_US, &second), NOTHING);
    assert_eq!(store.clone().settle(SECOND_US, &second, 1), applied(6), "3 on both");
    assert_eq!(store.clone().settle(SECOND_US, &second, 4), applied(0));
    assert_eq!(store.settle(2 * SECOND_US, &second, 20), applied(32));
    assert_eq!(
        store.inspect(2 * SECOND_US, &api, "a").iter().map(|(_, usage)| usage.used).collect::<Vec<_>>(),
        [16, 20]
    );
    assert_eq!(store.refund(2 * SECOND_US, &second), NOTHING);
}

#[test]
fn a_reset_voids_earlier_receipts() {
    let api = rule("api", &["9/1m"]);
    let mut store = ModelStore::new();
    let ask = admission(&[(&api, "a", 4)]);
    let (_, early) = store.check(5, &ask);
    let (_, other) = store.check(5, &ask);
    assert_eq!(store.reset(5, &api, "a"), applied(8));
    assert_eq!(store.reset(5, &api, "a"), NOTHING);
    let (_, late) = store.check(6, &ask);
    assert_eq!(store.refund(6, &early.unwrap()), NOTHING);
    assert_eq!(store.refund(6, &late.unwrap()), applied(4));
    store.reset(7, &api, "a");
    assert_eq!(store.settle(8, &other.unwrap(), 6), applied(2), "the work was done: a new state is charged");
    assert_eq!(store.inspect(8, &api, "a")[0].1.used, 2);
}

#[test]
fn a_credit_gives_back_at_most_what_is_used() {
    let api = rule("api", &["9/1s", "9/1m"]);
    let mut store = ModelStore::new();
    assert_eq!(store.credit(0, &api, "a", 5), NOTHING);
    store.check(0, &admission(&[(&api, "a", 4)]));
    assert_eq!(store.credit(2 * SECOND_US, &api, "a", 3), applied(3), "of the minute");
    assert_eq!(store.credit(2 * SECOND_US, &api, "a", 3), applied(1));
    assert_eq!(store.credit(2 * SECOND_US, &api, "a", 3), NOTHING);
}

#[test]
fn a_changed_rule_applies_with_or_without_an_announced_change() {
    let (old, new) = (rule("api", &["9/1s"]), rule("api", &["9/1m"]));
    let mut store = ModelStore::new();
    let (_, receipt) = store.check(0, &admission(&[(&old, "a", 4)]));
    let mut untold = store.clone();
    store.change(500_000, &new);
    assert_eq!(store.inspect(SECOND_US, &new, "a")[0].1, Usage { used: 4, reset_after_us: 59_500_000 });
    assert_eq!(store.refund(SECOND_US - 1, &receipt.unwrap()), NOTHING, "of another geometry");
    let ask = admission(&[(&new, "a", 6)]);
    assert_eq!(untold.peek(500_000, &ask).retry_after_us, 59_500_000, "counted from the last charge");
    assert_eq!(
        untold.peek(SECOND_US, &ask).retry_after_us,
        59 * SECOND_US,
        "independent of the time of the call"
    );
    untold.check(500_000, &admission(&[(&new, "a", 1)]));
    assert_eq!(untold.inspect(SECOND_US, &new, "a")[0].1.used, 5);
}

#[test]
fn every_algorithm_works_in_the_model_store() {
    for algorithm in Algorithm::ALL {
        let inline = Rule::inline("5/60s".parse().unwrap(), algorithm);
        let mut store = ModelStore::new();
        let ask = admission(&[(&inline, "alice", 1)]);
        let counts: Vec<_> =
            (0..6).map(|_| (store.peek(0, &ask).used, store.check(0, &ask).0.allowed)).collect();
        let expected: Vec<_> = (0..6).map(|count| (count, count < 5)).collect();
        assert_eq!(counts, expected, "{algorithm}");
    }
}
