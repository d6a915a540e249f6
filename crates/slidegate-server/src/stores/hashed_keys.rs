//! A store that never gets a key in clear: for stores, and their backups, that must hold no personal data.
//!
//! Every key is replaced by an HMAC-SHA256 under a secret that the store does not know. Overrides, answers, receipts and
//! the list of the busiest keys are made from the caller's key, above this store. The rule is not part of the hash:
//! charges of one request on the same key then stay on keys of the same text, as a partitioned store needs.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::hmac;
use slidegate::receipt::{ReceiptCharge, ReceiptStamp};
use slidegate::store::{BoxStore, Call, LimitUsage, SECRET_BYTES, Stats, Store, Update};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Receipt, Rule, StoreError, UpdateError};

/// Bytes of a hash that are kept: two of 2^40 keys are equal with a probability of 2^-49.
const HASH_BYTES: usize = 16;

/// A store whose keys are hashed.
#[derive(Debug)]
pub(crate) struct HashedKeys {
    store: BoxStore,
    secret: hmac::Key,
}

impl HashedKeys {
    pub(crate) fn new(store: BoxStore, secret: &[u8]) -> Self {
        Self { store, secret: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The text that replaces a key in the store.
    fn hashed(&self, key: &str) -> String {
        BASE64URL.encode(&hmac::sign(&self.secret, key.as_bytes()).as_ref()[..HASH_BYTES])
    }

    fn hashed_asks(&self, admission: &Admission<'_>) -> Vec<String> {
        admission.asks().iter().map(|ask| self.hashed(ask.key().as_str())).collect()
    }

    fn hashed_receipt(&self, receipt: &Receipt) -> Receipt {
        let stamp = ReceiptStamp { id: receipt.id(), store: receipt.store() };
        let charges = receipt.charges().iter().map(|charge| {
            let places = charge.places().iter().copied();
            ReceiptCharge::new(charge.rule(), &self.hashed(charge.key()), charge.cost(), places)
        });
        Receipt::new(stamp, charges)
    }
}

/// The admission for the same rules and costs under other keys: one per ask.
fn with_keys<'k>(admission: &Admission<'k>, keys: &'k [String]) -> Admission<'k> {
    let asks = admission.asks().iter().zip(keys);
    let asks: Vec<_> = asks.map(|(ask, hash)| Charge::new(ask.rule(), key(hash), ask.cost())).collect();
    Admission::new(&asks).expect("its charges were admissible, one per state")
}

fn key(hash: &str) -> Key<'_> {
    Key::new(hash).expect("base64url is a key")
}

/// The store's decision, on the admission that the caller knows.
fn restored<'a>(admission: &Admission<'a>, decision: &Decision<'_>) -> Decision<'a> {
    let (answers, stamp) = decision.state_answers();
    Decision::new(admission, answers, stamp)
}

impl Store for HashedKeys {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let keys = self.hashed_asks(admission);
        Ok(restored(admission, &self.store.check(call, &with_keys(admission, &keys)).await?))
    }

    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        let keys = self.hashed_asks(admission);
        let decided = self.store.try_check(call, &with_keys(admission, &keys))?;
        Some(decided.map(|decision| restored(admission, &decision)))
    }

    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let keys: Vec<_> = admissions.iter().map(|admission| self.hashed_asks(admission)).collect();
        let hashed: Vec<_> =
            admissions.iter().zip(&keys).map(|(admission, keys)| with_keys(admission, keys)).collect();
        let decided = self.store.check_batch(call, &hashed).await;
        let decided = admissions.iter().zip(decided);
        decided.map(|(admission, decided)| Ok(restored(admission, &decided?))).collect()
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let keys = self.hashed_asks(admission);
        Ok(restored(admission, &self.store.peek(call, &with_keys(admission, &keys)).await?))
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        match update {
            Update::Refund(receipt) => {
                self.store.update(call, Update::Refund(&self.hashed_receipt(receipt))).await
            }
            Update::Settle(receipt, actual) => {
                self.store.update(call, Update::Settle(&self.hashed_receipt(receipt), actual)).await
            }
            Update::Credit(charge) => {
                let hash = self.hashed(charge.key().as_str());
                let charge = Charge::new(charge.rule(), key(&hash), charge.cost());
                self.store.update(call, Update::Credit(charge)).await
            }
            Update::Reset(rule, clear) => {
                let hash = self.hashed(clear.as_str());
                self.store.update(call, Update::Reset(rule, key(&hash))).await
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, clear: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let hash = self.hashed(clear.as_str());
        self.store.inspect(call, rule, key(&hash)).await
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.store.change(call, rule).await
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        self.store.secret().await
    }

    async fn share_secret(&self, own: &[u8; SECRET_BYTES]) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        self.store.share_secret(own).await
    }

    fn stats(&self) -> Option<Stats> {
        self.store.stats()
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.store.wait_clock()
    }
}

#[cfg(test)]
mod tests {
    use slidegate::Limiter;
    use slidegate::store::MemoryStore;
    use slidegate::testing::{ExpiringStore, block_on, conformance};

    use super::*;

    fn over_memory(secret: &[u8]) -> HashedKeys {
        HashedKeys::new(BoxStore::new(MemoryStore::new()), secret)
    }

    impl ExpiringStore for HashedKeys {}

    /// Every verb, receipt and denial is as without hashes.
    #[test]
    fn it_keeps_every_promise_of_a_store() {
        block_on(conformance::promises(&async || over_memory(b"0123456789abcdef")))
            .unwrap_or_else(|broken| panic!("{broken}"));
    }

    #[test]
    fn another_secret_gives_other_hashes_and_the_callers_key_is_shown() {
        let store = over_memory(b"0123456789abcdef");
        let hash = store.hashed("alice");
        assert_eq!(hash.len(), 22);
        assert_ne!(hash, over_memory(b"0123456789abcdeg").hashed("alice"));
        assert_ne!(hash, store.hashed("alicf"));

        let limiter = Limiter::new(store);
        let api = Rule::new("api", "5/1m").unwrap();
        let decision = block_on(limiter.check_async(&api, "alice")).unwrap();
        assert_eq!((decision.binding().key(), decision.used()), ("alice", Some(1)));
        let receipt = decision.receipt().unwrap();
        assert_eq!(receipt.charges()[0].key(), "alice");
        let in_store = async || {
            let hashed = limiter.store().store.inspect(Call::now(), &api, key(&hash)).await.unwrap();
            hashed[0].used
        };
        assert_eq!(block_on(in_store()), 1);
        assert!(block_on(limiter.refund_async(&receipt)).unwrap().applied);
        assert_eq!(block_on(in_store()), 0);
    }
}
