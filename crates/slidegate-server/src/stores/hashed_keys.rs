//! A store that never gets a key in clear: for stores, and their backups, that must hold no personal data.
//!
//! Every key is replaced by an HMAC-SHA256 under a secret that the store does not know. Overrides, answers, receipts and
//! the list of the busiest keys are made from the caller's key, above this store. The rule is not part of the hash:
//! charges of one request on the same key then stay on keys of the same text, as a partitioned store needs. A tag is
//! replaced by a hash of its own, so that keys of one tag stay together.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::hmac;
use slidegate::receipt::{ReceiptCharge, ReceiptStamp};
use slidegate::store::{BoxStore, Call, LimitUsage, SECRET_BYTES, Stats, Store, Update};
use slidegate::time::Clock;
use slidegate::{
    Admission, Applied, Charge, Decision, Key, OwnedKey, Receipt, Rule, StoreError, UpdateError,
};

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

    /// The text that replaces a key or a tag in the store.
    fn hash(&self, text: &str) -> String {
        BASE64URL.encode(&hmac::sign(&self.secret, text.as_bytes()).as_ref()[..HASH_BYTES])
    }

    /// The key that replaces a key in the store.
    fn hashed(&self, key: Key<'_>) -> OwnedKey {
        let hash = self.hash(key.as_str());
        let tagged = key.tag().map(|tag| OwnedKey::tagged(&hash, &self.hash(tag)));
        let hashed = tagged.unwrap_or_else(|| Key::new(&hash).map(OwnedKey::from));
        let hashed = hashed.expect("base64url is a key and a tag");
        match key.shard() {
            Some(shard) => hashed.key().of_shard(shard),
            None => hashed,
        }
    }

    fn hashed_asks(&self, admission: &Admission<'_>) -> Vec<OwnedKey> {
        admission.asks().iter().map(|ask| self.hashed(ask.key())).collect()
    }

    fn hashed_receipt(&self, receipt: &Receipt) -> Receipt {
        let stamp = ReceiptStamp { id: receipt.id(), store: receipt.store() };
        let charges = receipt.charges().iter().map(|charge| {
            let places = charge.places().iter().copied();
            ReceiptCharge::new(charge.rule(), self.hashed(charge.key()).key(), charge.cost(), places)
        });
        Receipt::new(stamp, charges)
    }
}

/// The admission for the same rules and costs under other keys: one per ask.
fn with_keys<'k>(admission: &Admission<'k>, keys: &'k [OwnedKey]) -> Admission<'k> {
    let asks = admission.asks().iter().zip(keys);
    let asks: Vec<_> = asks.map(|(ask, hash)| Charge::new(ask.rule(), hash.key(), ask.cost())).collect();
    Admission::new(&asks).expect("its charges were admissible, one per state")
}

/// The store's decision, on the admission that the caller knows.
fn restored<'a>(admission: &Admission<'a>, decision: &Decision<'_>) -> Decision<'a> {
    let (answers, stamp) = decision.state_answers();
    Decision::new(admission, answers, stamp).with_atomic(decision.atomic())
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
                let hash = self.hashed(charge.key());
                let charge = Charge::new(charge.rule(), hash.key(), charge.cost());
                self.store.update(call, Update::Credit(charge)).await
            }
            Update::Reset(rule, clear) => {
                let hash = self.hashed(clear);
                self.store.update(call, Update::Reset(rule, hash.key())).await
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, clear: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let hash = self.hashed(clear);
        self.store.inspect(call, rule, hash.key()).await
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

    fn is_remote(&self) -> bool {
        self.store.is_remote()
    }

    fn deny_cache_hold(&self) -> Option<Duration> {
        self.store.deny_cache_hold()
    }

    fn splits_keys(&self) -> bool {
        self.store.splits_keys()
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
        let key = |name| Key::new(name).unwrap();
        let hash = store.hashed(key("alice"));
        assert_eq!(hash.key().as_str().len(), 22);
        assert_ne!(hash, over_memory(b"0123456789abcdeg").hashed(key("alice")));
        assert_ne!(hash, store.hashed(key("alicf")));
        let tagged = OwnedKey::tagged("alice", "team").unwrap();
        let hashed = store.hashed(tagged.key());
        assert_eq!(hashed.key().as_str(), hash.key().as_str());
        assert_eq!(hashed.key().tag(), store.hashed(key("team")).key().as_str().into());

        let limiter = Limiter::new(store);
        let api = Rule::new("api", "5/1m").unwrap();
        let decision = block_on(limiter.check_async(&api, "alice")).unwrap();
        assert_eq!((decision.binding().key(), decision.used()), ("alice", Some(1)));
        let receipt = decision.receipt().unwrap();
        assert_eq!(receipt.charges()[0].key().as_str(), "alice");
        let in_store = async || {
            let hashed = limiter.store().store.inspect(Call::now(), &api, hash.key()).await.unwrap();
            hashed[0].used
        };
        assert_eq!(block_on(in_store()), 1);
        assert!(block_on(limiter.refund_async(&receipt)).unwrap().applied);
        assert_eq!(block_on(in_store()), 0);
    }
}
