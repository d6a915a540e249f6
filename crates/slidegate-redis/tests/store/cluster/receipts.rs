//! Receipts over several slots: one record per slot, applied once.

use super::{key_on_each, options_as, options_of};
use crate::common::*;
use slidegate::store::{Call, Store, StoreError, Update, UpdateError};
use slidegate::{Algorithm, Receipt, ReceiptError, Rule};
use slidegate_redis::RedisStore;

/// Time stands still: `gcra` would give back less with every microsecond.
fn now() -> Call {
    Call::at_us(BOUNDARY_US)
}

/// Charges 3 units for a key in every slot.
async fn charged(store: &RedisStore, rule: &Rule, keys: &[String; 3]) -> Receipt {
    let asks: Vec<_> = keys.iter().map(|key| (rule, key.as_str(), 3)).collect();
    store.check(now(), &admission(&asks)).await.unwrap().receipt().unwrap()
}

async fn used_of_each(store: &RedisStore, rule: &Rule, keys: &[String; 3]) -> Vec<u64> {
    let mut used = Vec::new();
    for key in keys {
        used.push(used_by(store, now(), rule, key).await);
    }
    used
}

#[test]
fn a_receipt_is_refunded_once_in_all_slots() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        for (number, algorithm) in every_algorithm().into_iter().enumerate() {
            let rule = rule(&format!("rule-{number}"), &["100/400d"], algorithm);
            let receipt = charged(&store, &rule, &keys).await;
            assert_eq!(receipt.charges().len(), 3);
            let refunded = store.update(now(), Update::Refund(&receipt)).await.unwrap();
            assert_eq!((refunded.applied, refunded.units), (true, 9), "{algorithm}");
            for update in [Update::Refund(&receipt), Update::Settle(&receipt, 1)] {
                let again = store.update(now(), update).await.unwrap();
                assert_eq!((again.applied, again.units), (false, 0), "{algorithm}");
            }
            assert_eq!(used_of_each(&store, &rule, &keys).await, [0, 0, 0], "{algorithm}");
        }
        let records = cluster.keys(&prefix).into_iter().filter(|key| key.contains("%spent")).count();
        assert_eq!(records, 3 * every_algorithm().len(), "one per slot");
    });
}

#[test]
fn a_receipt_is_settled_in_all_slots() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let store = RedisStore::connect_with(&options_of(&cluster).0).await.unwrap();
        let api = rule("api", &["10/400d"], Algorithm::SlidingLog);
        for (actual, units, used) in [(1, 6, [1, 1, 1]), (5, 6, [6, 6, 6])] {
            let receipt = charged(&store, &api, &keys).await;
            let settled = store.update(now(), Update::Settle(&receipt, actual)).await.unwrap();
            assert_eq!((settled.applied, settled.units), (true, units));
            assert_eq!(used_of_each(&store, &api, &keys).await, used);
        }
        let receipt = charged(&store, &api, &keys).await;
        let excess = store.update(now(), Update::Settle(&receipt, 1_000)).await.unwrap_err();
        assert!(matches!(excess, UpdateError::Receipt(ReceiptError::Excess { .. })), "{excess}");
        assert_eq!(used_of_each(&store, &api, &keys).await, [9, 9, 9]);
    });
}

/// A node fails between two slots. The error says that some were refunded, and a second try refunds the rest only.
#[test]
fn a_half_refunded_receipt_is_completed_by_a_second_try() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let store = RedisStore::connect_with(&options_as(&cluster, "half-refunder").0).await.unwrap();
        let api = rule("api", &["100/400d"], Algorithm::SlidingLog);
        let receipt = charged(&store, &api, &keys).await;
        let second = &cluster.nodes()[1];
        second.command(&["ACL", "SETUSER", "half-refunder", "-set"]);
        let failed = store.update(now(), Update::Refund(&receipt)).await.unwrap_err();
        second.command(&["ACL", "SETUSER", "half-refunder", "+set"]);
        assert!(matches!(failed, UpdateError::Store(StoreError::Ambiguous { .. })), "{failed}");
        assert!(failed.to_string().contains("present it again"), "{failed}");
        assert_eq!(used_of_each(&store, &api, &keys).await, [0, 3, 3]);

        let completed = store.update(now(), Update::Refund(&receipt)).await.unwrap();
        assert_eq!((completed.applied, completed.units), (true, 6));
        assert_eq!(used_of_each(&store, &api, &keys).await, [0, 0, 0]);
        assert!(!store.update(now(), Update::Refund(&receipt)).await.unwrap().applied);
    });
}
