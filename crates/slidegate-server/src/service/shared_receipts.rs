//! The receipts of a service, under the secret that its store shares with other servers.
//!
//! The secret is read from the store when the first receipt needs it: the server may start while the store is gone. A
//! store that lost its data gets a new secret, which another server may have drawn; so it is read again, once a second at
//! most, when a receipt does not have the MAC of the secret that is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slidegate::store::{Store, StoreError};
use slidegate::time::Clock;
use slidegate::{Limiter, Receipt};

use super::error::ServiceError;
use crate::receipts::ReceiptCodec;

/// Between two readings of the secret after bad receipts, which callers can send as often as they like.
const PAUSE_US: u64 = 1_000_000;

/// Writes and reads receipts.
pub(crate) struct SharedReceipts {
    pub(crate) codec: ReceiptCodec,
    clock: Arc<dyn Clock>,
    /// When a bad receipt may next have the secret read again.
    next_us: AtomicU64,
}

impl SharedReceipts {
    pub(super) fn new(codec: ReceiptCodec, clock: Arc<dyn Clock>) -> Self {
        Self { codec, clock, next_us: AtomicU64::new(0) }
    }

    /// Reads the secret if it is unknown. If that fails, the answer has no receipt.
    #[inline]
    pub(super) async fn prepare(&self, limiter: &Limiter<impl Store>) {
        if !self.codec.has_secret() {
            // The failure shows in the next answer of the store.
            let _ = self.read_secret(limiter).await;
        }
    }

    /// Reads the text of a receipt.
    pub(super) async fn read(
        &self,
        limiter: &Limiter<impl Store>,
        text: &str,
    ) -> Result<Receipt, ServiceError> {
        if !self.codec.has_secret() {
            self.read_secret(limiter).await?;
        }
        match self.codec.read(text) {
            Err(_) if self.may_read_again() && self.read_secret(limiter).await? => {
                Ok(self.codec.read(text)?)
            }
            read => Ok(read?),
        }
    }

    fn may_read_again(&self) -> bool {
        let now_us = self.clock.now_us();
        let next_us = self.next_us.load(Ordering::Relaxed);
        let until_us = now_us.saturating_add(PAUSE_US);
        // A clock that was set back must not keep it for as long as the step.
        (now_us >= next_us || next_us > until_us)
            && self.next_us.compare_exchange(next_us, until_us, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Reads the secret from the store; returns whether it is another one than before.
    async fn read_secret(&self, limiter: &Limiter<impl Store>) -> Result<bool, StoreError> {
        let secret = limiter.secret_async().await?;
        Ok(secret.is_some_and(|secret| self.codec.set_secret(&secret)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use slidegate::store::{Call, FailedStore, LimitUsage, MemoryStore, SECRET_BYTES, Update, UpdateError};
    use slidegate::testing::block_on;
    use slidegate::time::ManualClock;
    use slidegate::{Admission, Applied, Decision, Key, Rule};

    use super::*;
    use crate::service::ServiceErrorKind;

    /// A store in memory that shares a secret, or fails to tell it.
    struct SecretStore {
        store: MemoryStore,
        secret: Mutex<Result<[u8; SECRET_BYTES], StoreError>>,
        asked: AtomicU64,
    }

    impl Store for SecretStore {
        async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
            Store::check(&self.store, call, admission).await
        }

        async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
            Store::peek(&self.store, call, admission).await
        }

        async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
            self.store.update(call, update).await
        }

        async fn inspect(
            &self,
            call: Call,
            rule: &Rule,
            key: Key<'_>,
        ) -> Result<Vec<LimitUsage>, StoreError> {
            Store::inspect(&self.store, call, rule, key).await
        }

        async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
            Store::change(&self.store, call, rule).await
        }

        async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.secret.lock().unwrap().clone().map(Some)
        }
    }

    fn down() -> StoreError {
        StoreError::Unavailable { why: "connection refused".into() }
    }

    fn limiter(secret: Result<[u8; SECRET_BYTES], StoreError>) -> Limiter<SecretStore> {
        let (store, asked) = (MemoryStore::new(), AtomicU64::new(0));
        Limiter::new(SecretStore { store, secret: Mutex::new(secret), asked })
    }

    fn receipts() -> (SharedReceipts, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at_us(1_000_000_000));
        (SharedReceipts::new(ReceiptCodec::without_secret(), Arc::clone(&clock) as _), clock)
    }

    fn written(codec: &ReceiptCodec, limiter: &Limiter<SecretStore>) -> Option<String> {
        let rule = Rule::new("api", "5/1m").unwrap();
        let receipt = block_on(limiter.check_async(&rule, "alice")).unwrap().receipt().unwrap();
        let mut out = Vec::new();
        let is_written = codec.write(&receipt, &mut Vec::new(), &mut out);
        assert_eq!(is_written, !out.is_empty());
        is_written.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_secret_that_was_out_of_reach_is_read_when_a_receipt_needs_it() {
        let ((receipts, _clock), limiter) = (receipts(), limiter(Err(down())));
        block_on(receipts.prepare(&limiter));
        assert_eq!(written(&receipts.codec, &limiter), None);
        let error = block_on(receipts.read(&limiter, "AAAA")).unwrap_err();
        assert!(matches!(error.kind, ServiceErrorKind::Store { .. }), "{error:?}");
        *limiter.store().secret.lock().unwrap() = Ok([7; SECRET_BYTES]);
        block_on(receipts.prepare(&limiter));
        let text = written(&receipts.codec, &limiter).unwrap();
        assert!(block_on(receipts.read(&limiter, &text)).is_ok());
        let asked = limiter.store().asked.load(Ordering::Relaxed);
        block_on(receipts.prepare(&limiter));
        assert_eq!(limiter.store().asked.load(Ordering::Relaxed), asked, "it is known");
    }

    /// The store lost its data, and another server drew the new secret.
    #[test]
    fn a_receipt_of_a_newer_secret_is_accepted_and_bad_ones_ask_the_store_once_a_second() {
        let ((receipts, clock), limiter) = (receipts(), limiter(Ok([7; SECRET_BYTES])));
        block_on(receipts.prepare(&limiter));
        let newer = written(&ReceiptCodec::new(&[8; SECRET_BYTES]), &limiter).unwrap();
        assert!(block_on(receipts.read(&limiter, &newer)).is_err());
        *limiter.store().secret.lock().unwrap() = Ok([8; SECRET_BYTES]);
        let asked = || limiter.store().asked.load(Ordering::Relaxed);
        let before = asked();
        for _ in 0..100 {
            assert!(block_on(receipts.read(&limiter, "AAAA")).is_err());
        }
        assert_eq!(asked(), before);
        clock.advance(std::time::Duration::from_secs(1));
        assert!(block_on(receipts.read(&limiter, &newer)).is_ok());
        assert_eq!(asked(), before + 1);
    }

    #[test]
    fn a_store_without_a_secret_accepts_nothing_it_did_not_sign() {
        let (receipts, _clock) = receipts();
        let limiter = Limiter::new(FailedStore::new(down()));
        assert!(block_on(receipts.read(&limiter, "AAAA")).is_err());
    }
}
