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

fn written(codec: &ReceiptCodec, receipt: &Receipt) -> String {
    let mut out = Vec::new();
    codec.write(receipt, &mut Vec::new(), &mut out);
    String::from_utf8(out).unwrap()
}

/// A receipt that was written and read back settles like the original: for every algorithm, with several limits and
/// headroom.
#[test]
fn a_receipt_read_back_from_text_settles_like_the_original() {
    let codec = ReceiptCodec::new(&SECRET);
    for rule in rules() {
        for key in ["alice", "käse 🧀 {}"] {
            let stores = [MemoryStore::new(), MemoryStore::new()];
            let charge = rule.charge(key, 300).unwrap();
            let admission = Admission::new(&[charge]).unwrap();
            let receipts = stores.each_ref().map(|store| {
                store.check(NOW_US, &admission).unwrap();
                store.check(NOW_US + 9, &admission).unwrap().receipt().unwrap()
            });
            let read_back = codec.read(&written(&codec, &receipts[1])).unwrap();
            assert_eq!((read_back.id(), read_back.store()), (receipts[1].id(), receipts[1].store()));
            let settled = [
                stores[0].settle(NOW_US + 20, &receipts[0], 100).unwrap(),
                stores[1].settle(NOW_US + 20, &read_back, 100).unwrap(),
            ];
            assert_eq!(settled[0], settled[1], "{rule:?}");
            assert!(settled[1].applied, "{rule:?}");
            let used = |store: &MemoryStore| store.inspect(NOW_US + 30, &rule, charge.key());
            assert_eq!(used(&stores[0]), used(&stores[1]), "{rule:?}");
            assert!(!stores[1].refund(NOW_US + 40, &read_back).unwrap().applied, "the receipt is spent");
        }
    }
}

#[test]
fn a_receipt_holds_charges_of_several_rules() {
    let (rules, codec, store) = (rules(), ReceiptCodec::new(&SECRET), MemoryStore::new());
    let charges: Vec<_> = rules.iter().map(|rule| rule.charge("alice", 5).unwrap()).collect();
    let receipt = store.check(NOW_US, &Admission::new(&charges).unwrap()).unwrap().receipt().unwrap();
    let read_back = codec.read(&written(&codec, &receipt)).unwrap();
    assert_eq!(read_back.charges().len(), rules.len());
    for (before, after) in receipt.charges().iter().zip(read_back.charges()) {
        assert_eq!((before.rule(), before.key(), before.cost()), (after.rule(), after.key(), after.cost()));
        let places = |charge: &ReceiptCharge| {
            charge.places().iter().map(|place| (place.order, place.position)).collect::<Vec<_>>()
        };
        assert_eq!(places(before), places(after));
    }
    assert_eq!(store.refund(NOW_US, &read_back).unwrap().units, 5 * 8);
}

#[test]
fn a_changed_text_is_refused() {
    let (rules, codec, store) = (rules(), ReceiptCodec::new(&SECRET), MemoryStore::new());
    let charge = rules[0].charge("alice", 5).unwrap();
    let receipt = store.check(NOW_US, &Admission::new(&[charge]).unwrap()).unwrap().receipt().unwrap();
    let good = written(&codec, &receipt);
    assert!(codec.read(&good).is_ok());
    for place in 0..good.len() {
        for other in [b'A', b'_', b'0', b'=', b' '] {
            let mut bytes = good.clone().into_bytes();
            if bytes[place] != other {
                bytes[place] = other;
                assert_eq!(codec.read(&String::from_utf8(bytes).unwrap()), Err(BadReceipt), "{place}");
            }
        }
        assert_eq!(codec.read(&good[..place]), Err(BadReceipt), "cut at {place}");
    }
    assert_eq!(codec.read(&format!("{good}A")), Err(BadReceipt));
    assert_eq!(codec.read(&good.repeat(2_000)), Err(BadReceipt));
    assert_eq!(ReceiptCodec::new(&[8; 32]).read(&good), Err(BadReceipt), "another store's secret");
}

/// An older or a newer program may sign other bytes with the same secret.
#[test]
fn signed_bytes_that_are_no_receipt_are_refused() {
    let codec = ReceiptCodec::new(&SECRET);
    let signed = |bytes: &[u8]| {
        let mac = hmac::sign(&codec.keys.load()[0].key, bytes);
        let mut out = Vec::new();
        append_base64url(&[bytes, &mac.as_ref()[..MAC_BYTES]].concat(), &mut out);
        codec.read(&String::from_utf8(out).unwrap())
    };
    let mut charge = vec![VERSION];
    charge.extend([0; 24]);
    assert_eq!(signed(&charge), Err(BadReceipt), "no charge");
    for bytes in [
        &b""[..],
        &[2],
        // A text longer than the bytes left, a number without an end, an unknown algorithm, no limit.
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
fn base64url_matches_the_test_vectors() {
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
fn base64url_has_one_text_per_value() {
    for text in ["Zh", "Zm9", "Zg==", "Z", "Zm9v Yg", "Zm+v", "Zm/v", "Zm9vZ", "ä"] {
        assert!(BASE64URL.decode(text).is_err(), "{text}");
    }
}
