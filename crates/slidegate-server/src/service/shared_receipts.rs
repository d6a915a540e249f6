//! The receipts of a service, under the secrets that its store shares with other servers.
//!
//! The server may start while the store is gone, and then signs with a secret of its own. A store may lose its secret with
//! its data, and another server may give it another one. So while receipts are signed, the store is given our secret
//! once a second and tells all that are valid; and so it is, once a second at most, when a receipt has the MAC of none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slidegate::store::{Store, StoreError};
use slidegate::time::Clock;
use slidegate::{Limiter, Receipt};

use super::error::ServiceError;
use crate::receipts::ReceiptCodec;

/// Between two exchanges of secrets for the same reason. Callers can send as many bad receipts as they like.
const PAUSE_US: u64 = 1_000_000;

/// Writes and reads receipts.
pub(crate) struct SharedReceipts {
    pub(crate) codec: Arc<ReceiptCodec>,
    clock: Arc<dyn Clock>,
    /// When signing, and a bad receipt, may next exchange secrets.
    next_us: [AtomicU64; 2],
}

impl SharedReceipts {
    pub(super) fn new(codec: ReceiptCodec, clock: Arc<dyn Clock>) -> Self {
        Self { codec: Arc::new(codec), clock, next_us: [const { AtomicU64::new(0) }; 2] }
    }

    /// Whether the secret that signs is to be shared again.
    pub(super) fn is_due(&self) -> bool {
        self.is_over(&self.next_us[0])
    }

    /// Reads the text of a receipt.
    pub(super) async fn read(
        &self,
        limiter: &Limiter<impl Store>,
        text: &str,
    ) -> Result<Receipt, ServiceError> {
        match self.codec.read(text) {
            Err(_) if self.is_over(&self.next_us[1]) && share(&self.codec, limiter).await? => {
                Ok(self.codec.read(text)?)
            }
            read => Ok(read?),
        }
    }

    /// Whether a pause is over; begins the next one if it is.
    fn is_over(&self, next_us: &AtomicU64) -> bool {
        let (now_us, until_us) = (self.clock.now_us(), next_us.load(Ordering::Relaxed));
        let next_until_us = now_us.saturating_add(PAUSE_US);
        // A clock that was set back must not lengthen it by the step.
        (now_us >= until_us || until_us > next_until_us)
            && next_us.compare_exchange(until_us, next_until_us, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Gives the store our secret, and takes over those that it has; returns whether they are others than before.
pub(super) async fn share(codec: &ReceiptCodec, limiter: &Limiter<impl Store>) -> Result<bool, StoreError> {
    Ok(codec.set_secrets(&limiter.share_secret_async(&codec.secret()).await?))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use slidegate::store::{Call, LimitUsage, MemoryStore, SECRET_BYTES, Update, UpdateError};
    use slidegate::testing::block_on;
    use slidegate::time::ManualClock;
    use slidegate::{Admission, Applied, Decision, Key, Rule};

    use super::*;

    const OWN: [u8; SECRET_BYTES] = [7; SECRET_BYTES];
    const OTHER: [u8; SECRET_BYTES] = [8; SECRET_BYTES];

    /// A store in memory that shares secrets.
    struct SecretStore {
        store: MemoryStore,
        secrets: Mutex<Vec<[u8; SECRET_BYTES]>>,
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

        async fn share_secret(
            &self,
            own: &[u8; SECRET_BYTES],
        ) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let mut secrets = self.secrets.lock().unwrap();
            if !secrets.contains(own) {
                secrets.push(*own);
            }
            Ok(secrets.clone())
        }
    }

    fn limiter(secrets: &[[u8; SECRET_BYTES]]) -> Limiter<SecretStore> {
        let (secrets, asked) = (Mutex::new(secrets.to_vec()), AtomicU64::new(0));
        Limiter::new(SecretStore { store: MemoryStore::new(), secrets, asked })
    }

    fn receipts() -> (SharedReceipts, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at_us(1_000_000_000));
        (SharedReceipts::new(ReceiptCodec::new(&OWN), Arc::clone(&clock) as _), clock)
    }

    fn written(codec: &ReceiptCodec, limiter: &Limiter<SecretStore>) -> String {
        let rule = Rule::new("api", "5/1m").unwrap();
        let receipt = block_on(limiter.check_async(&rule, "alice")).unwrap().receipt().unwrap();
        let mut out = Vec::new();
        codec.write(&receipt, &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The store lost its data, and another server gave it a secret.
    #[test]
    fn servers_from_before_and_after_a_loss_accept_each_others_receipts() {
        let (other, limiter) = (ReceiptCodec::new(&OTHER), limiter(&[OTHER]));
        let (receipts, _clock) = receipts();
        let (ours, theirs) = (written(&receipts.codec, &limiter), written(&other, &limiter));
        assert!(block_on(receipts.read(&limiter, &ours)).is_ok());
        assert!(block_on(receipts.read(&limiter, &theirs)).is_ok(), "it asks the store");
        assert_eq!(receipts.codec.secret(), OTHER, "all sign with the first");
        assert!(block_on(receipts.read(&limiter, &ours)).is_ok(), "from before");
        assert!(block_on(share(&other, &limiter)).unwrap());
        assert!(other.read(&ours).is_ok());
    }

    #[test]
    fn bad_receipts_ask_the_store_once_a_second() {
        let ((receipts, clock), limiter) = (receipts(), limiter(&[OWN]));
        let asked = || limiter.store().asked.load(Ordering::Relaxed);
        for seconds in 1..4 {
            for _ in 0..100 {
                assert!(block_on(receipts.read(&limiter, "AAAA")).is_err());
            }
            assert_eq!(asked(), seconds);
            clock.advance(Duration::from_secs(1));
        }
        clock.set_us(1_000);
        assert!(block_on(receipts.read(&limiter, "AAAA")).is_err());
        assert_eq!(asked(), 4, "a clock that was set back does not end it");
    }

    #[test]
    fn signing_shares_the_secret_once_a_second() {
        let (receipts, clock) = receipts();
        assert!(receipts.is_due() && !receipts.is_due());
        clock.advance(Duration::from_millis(999));
        assert!(!receipts.is_due());
        clock.advance(Duration::from_millis(1));
        assert!(receipts.is_due());
    }
}
