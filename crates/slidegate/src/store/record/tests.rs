use super::*;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::{ReceiptId, ReceiptStamp};
use crate::rule::Algorithm;
use crate::testing::Rng;

fn rule(rates: &[&str], algorithm: Algorithm) -> Rule {
    let builder = rates.iter().fold(Rule::builder("api"), |rule, rate| rule.limit(rate.parse().unwrap()));
    builder.algorithm(algorithm).build().unwrap()
}

fn ask(rule: &Rule, cost: u64) -> Charge<'_> {
    Charge { rule, key: Key::new("alice").unwrap(), cost }
}

/// A new record after a charge at the first second, and the charge on its receipt.
fn charged(order: u64, ask: &Charge<'_>) -> (Record, ReceiptCharge) {
    let (record, answer) = Record::charged(None, order, 1_000_000, ask);
    let stamp = ReceiptStamp { id: ReceiptId::new(order), store: 0 };
    let decision = Decision::new(&Admission::new(&[*ask]).unwrap(), [answer], Some(stamp));
    let receipt = decision.receipt().unwrap();
    (record, receipt.charges()[0].clone())
}

fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&body);
    body.extend_from_slice(&sum);
    body
}

#[test]
fn a_newer_version_is_distinguished_from_damage() {
    let rule = rule(&["5/1s", "60/30s"], Algorithm::SlidingLog);
    let (record, ..) = Record::charged(None, 1, 1_000_000, &ask(&rule, 2));
    let mut bytes = record.to_bytes();
    assert_eq!(Record::from_bytes(&bytes).as_ref(), Ok(&record));
    for at in 1..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(matches!(Record::from_bytes(&damaged), Err(BytesError::Damaged { .. })), "byte {at}");
    }
    bytes[0] = 2;
    assert_eq!(Record::from_bytes(&bytes), Err(BytesError::Newer { version: 2, known: 1 }));
    bytes[0] = 0;
    assert!(matches!(Record::from_bytes(&sealed(bytes)), Err(BytesError::Damaged { .. })));
    assert!(Record::from_bytes(&[]).is_err());
}

#[test]
fn any_sealed_bytes_are_a_record_or_an_error() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut body = vec![VERSION, u8::try_from(rng.below(4)).unwrap()];
        for _ in 0..rng.below(60) {
            body.push(u8::try_from(if rng.one_in(3) { rng.below(256) } else { rng.below(9) }).unwrap());
        }
        if let Ok(record) = Record::from_bytes(&sealed(body)) {
            let bytes = record.to_bytes();
            assert_eq!(Record::from_bytes(&bytes).map(|again| again.to_bytes()), Ok(bytes), "seed {seed}");
        }
    }
}

/// A new state has a later sequence number than all receipts so far.
#[test]
fn receipts_are_valid_only_for_the_state_that_they_charged() {
    for algorithm in Algorithm::ALL {
        let rule = rule(&["10/10s"], algorithm);
        let (first, receipt) = charged(7, &ask(&rule, 4));
        assert_eq!(first.clone().refund(0, 1_000_000, &receipt, 4), 4, "{algorithm}");
        assert_eq!(first.clone().refund(u64::MAX, 1_000_001, &receipt, 4), 0, "{algorithm}: expired");
        let (mut second, ..) = Record::charged(None, 8, 1_000_000, &ask(&rule, 4));
        assert_eq!(second.refund(0, 1_000_001, &receipt, 4), 0, "{algorithm}: reset in between");
    }
}

#[test]
fn a_change_keeps_the_receipts_of_the_limits_that_stay() {
    let (before, after) = (
        rule(&["10/10s", "50/1m"], Algorithm::SlidingLog),
        rule(&["60/1m", "100/1h"], Algorithm::SlidingLog),
    );
    let (record, receipt) = charged(7, &ask(&before, 4));
    let mut changed = record.changed(8, 2_000_000, &after);
    assert_eq!(changed.refund(0, 2_000_000, &receipt, 4), 4, "of the minute");
    let used: Vec<_> =
        Record::usages(Some(&changed), 2_000_000, &after).iter().map(|usage| usage.used).collect();
    assert_eq!(used, [0, 4]);
    let (met, ..) = Record::charged(Some(record), 8, 2_000_000, &ask(&after, 1));
    assert_eq!(met.clone().refund(0, 2_000_000, &receipt, 4), 0, "nobody announced the change");
    assert_eq!(met.used_max(2_000_000), 5);
}

/// The state of the short window was charged later than the clock shows after it was set back, that of the long one was not.
#[test]
fn a_clock_set_back_moves_only_the_states_that_were_charged_later() {
    let rule = rule(&["10/10s", "100/1h"], Algorithm::FixedWindow);
    let at = |second: u64| 3_600_000_000 + second * 1_000_000;
    let (record, ..) = Record::charged(None, 7, at(50), &ask(&rule, 4));
    let moved = record.clone().set_back(8, at(55), at(20));
    let resets_s =
        Record::usages(Some(&moved), at(20), &rule).into_iter().map(|of| (of.used, of.reset_after.as_secs()));
    assert_eq!(resets_s.collect::<Vec<_>>(), [(4, 10), (4, 3_580)]);
    assert_eq!(moved.created_order, [8, 7], "the receipts of the moved state are void");
    assert_eq!(
        record.clone().set_back(8, at(55), at(50)),
        record,
        "it was charged in the window of the step"
    );
    let expired = record.set_back(8, at(60), at(20));
    assert_eq!(Record::usages(Some(&expired), at(20), &rule)[0].used, 0, "nothing of it counted any more");
}

/// An index of expiries is not written at every charge.
#[test]
fn expiries_move_in_steps() {
    let rule = rule(&["1000/80s"], Algorithm::SlidingLog);
    let (mut record, mut ends) = (None, Vec::new());
    for second in 0..80 {
        let (charged, ..) = Record::charged(record, second, (1_000 + second) * 1_000_000, &ask(&rule, 1));
        let exact_us = (1_000 + second + 80) * 1_000_000;
        assert!((exact_us..exact_us + 10_000_000).contains(&charged.expires_us()));
        ends.push(charged.expires_us());
        record = Some(charged);
    }
    ends.dedup();
    assert_eq!(ends.len(), 9, "8 steps, and the first");
}
