use slidegate::rule::{Buckets, Edge};
use slidegate::store::MemoryStore;
use slidegate::{Admission, Rule};

use super::*;

const SECRET: [u8; 32] = [7; 32];
const NOW_US: u64 = 1_745_000_145_000_000;

fn rules() -> Vec<Rule> {
    let algorithms = Algorithm::ALL.into_iter().chain(
        [Edge::Interpolated, Edge::Dropped]
            .map(|edge| Algorithm::SlidingBuckets(Buckets::new(7).unwrap(), edge)),
    );
    let rule = |(number, algorithm): (usize, Algorithm)| {
        let rule = Rule::builder(&format!("rule-{number}")).algorithm(algorithm);
        let rule = rule.limit("1000/1m".parse().unwrap()).limit("9000/24h".parse().unwrap());
        rule.headroom("0.05".parse().unwrap()).build().unwrap()
    };
    algorithms.enumerate().map(rule).collect()
}

fn written(text: &ReceiptText, receipt: &Receipt) -> String {
    let mut out = Vec::new();
    text.write(receipt, &mut Vec::new(), &mut out);
    String::from_utf8(out).unwrap()
}

/// A receipt that went over a wire gives back what the one that stayed at home would: of every algorithm, with
/// several limits and headroom.
#[test]
fn a_receipt_is_worth_the_same_after_a_journey() {
    let text = ReceiptText::new(&SECRET);
    for rule in rules() {
        for key in ["alice", "käse 🧀 {}"] {
            let (home, away) = (MemoryStore::new(), MemoryStore::new());
            let charge = rule.charge(key, 300).unwrap();
            let admission = Admission::new(&[charge]).unwrap();
            let receipts = [&home, &away].map(|store| {
                store.check(NOW_US, &admission).unwrap();
                store.check(NOW_US + 9, &admission).unwrap().receipt().unwrap()
            });
            let travelled = text.read(&written(&text, &receipts[1])).unwrap();
            assert_eq!((travelled.id(), travelled.store()), (receipts[1].id(), receipts[1].store()));
            let [stayed, came] = [
                home.settle(NOW_US + 20, &receipts[0], 100).unwrap(),
                away.settle(NOW_US + 20, &travelled, 100).unwrap(),
            ];
            assert_eq!(stayed, came, "{rule:?}");
            assert!(came.applied, "{rule:?}");
            let used = |store: &MemoryStore| store.inspect(NOW_US + 30, &rule, charge.key());
            assert_eq!(used(&home), used(&away), "{rule:?}");
            assert!(!away.refund(NOW_US + 40, &travelled).unwrap().applied, "it is spent");
        }
    }
}

#[test]
fn charges_of_several_rules_travel_together() {
    let (rules, text, store) = (rules(), ReceiptText::new(&SECRET), MemoryStore::new());
    let charges: Vec<_> = rules.iter().map(|rule| rule.charge("alice", 5).unwrap()).collect();
    let receipt = store.check(NOW_US, &Admission::new(&charges).unwrap()).unwrap().receipt().unwrap();
    let travelled = text.read(&written(&text, &receipt)).unwrap();
    assert_eq!(travelled.charges().len(), rules.len());
    for (before, after) in receipt.charges().iter().zip(travelled.charges()) {
        assert_eq!((before.rule(), before.key(), before.cost()), (after.rule(), after.key(), after.cost()));
        let places = |charge: &ReceiptCharge| {
            charge.places().iter().map(|place| (place.order, place.position)).collect::<Vec<_>>()
        };
        assert_eq!(places(before), places(after));
    }
    assert_eq!(store.refund(NOW_US, &travelled).unwrap().units, 5 * 8);
}

#[test]
fn no_changed_text_is_believed() {
    let (rules, text, store) = (rules(), ReceiptText::new(&SECRET), MemoryStore::new());
    let charge = rules[0].charge("alice", 5).unwrap();
    let receipt = store.check(NOW_US, &Admission::new(&[charge]).unwrap()).unwrap().receipt().unwrap();
    let good = written(&text, &receipt);
    assert!(text.read(&good).is_ok());
    for place in 0..good.len() {
        for other in [b'A', b'_', b'0', b'=', b' '] {
            let mut bytes = good.clone().into_bytes();
            if bytes[place] != other {
                bytes[place] = other;
                assert_eq!(text.read(&String::from_utf8(bytes).unwrap()), Err(BadReceipt), "{place}");
            }
        }
        assert_eq!(text.read(&good[..place]), Err(BadReceipt), "cut at {place}");
    }
    assert_eq!(text.read(&format!("{good}A")), Err(BadReceipt));
    assert_eq!(text.read(&good.repeat(2_000)), Err(BadReceipt));
    assert_eq!(ReceiptText::new(&[8; 32]).read(&good), Err(BadReceipt), "another store's secret");
}

/// A program that has the secret may still be an older or a newer one.
#[test]
fn what_is_signed_and_no_receipt_is_refused() {
    let text = ReceiptText::new(&SECRET);
    let signed = |bytes: &[u8]| {
        let mac = hmac::sign(&text.key, bytes);
        let mut out = Vec::new();
        append_base64url(&[bytes, &mac.as_ref()[..MAC_BYTES]].concat(), &mut out);
        text.read(&String::from_utf8(out).unwrap())
    };
    let mut charge = vec![VERSION];
    charge.extend([0; 24]);
    assert_eq!(signed(&charge), Err(BadReceipt), "no charge");
    for bytes in [
        &b""[..],
        &[2],
        // A text longer than what is left, a number without an end, an unknown algorithm, no limit.
        &[200, 1],
        &[0xFF; 11],
        &[1, b'r', 1, b'k', 1, 9, 0, 1],
        &[1, b'r', 1, b'k', 1, 1, 0, 0],
        &[1, 0xFF, 1, b'k', 1, 1, 0, 0],
    ] {
        let whole = [&charge[..], bytes].concat();
        assert_eq!(signed(&whole), Err(BadReceipt), "{bytes:?}");
    }
}

/// The test vectors of RFC 4648 without their padding, and the two digits that differ from plain base64.
#[test]
fn texts_are_those_of_the_standard() {
    for (bytes, text) in [
        (&b""[..], ""),
        (b"f", "Zg"),
        (b"fo", "Zm8"),
        (b"foo", "Zm9v"),
        (b"foob", "Zm9vYg"),
        (b"fooba", "Zm9vYmE"),
        (b"foobar", "Zm9vYmFy"),
        (b"\xfb\xff", "-_8"),
    ] {
        let mut out = Vec::new();
        append_base64url(bytes, &mut out);
        assert_eq!(out, text.as_bytes());
        assert_eq!(BASE64URL.decode(text).as_deref(), Ok(bytes));
    }
}

#[test]
fn no_two_texts_mean_the_same() {
    for text in ["Zh", "Zm9", "Zg==", "Z", "Zm9v Yg", "Zm+v", "Zm/v", "Zm9vZ", "ä"] {
        assert!(BASE64URL.decode(text).is_err(), "{text}");
    }
}
