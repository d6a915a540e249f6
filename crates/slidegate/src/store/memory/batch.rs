//! Several admissions in one call.

use super::answer::Appended;
use super::lock::Locks;
use super::store::MemoryStore;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::time::Clock;

/// Admissions that are prefetched together: more than a processor's outstanding cache misses.
const BATCH: usize = 16;

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    /// Decides several admissions, each on its own, and answers in their order.
    pub fn check_batch<'a>(
        &self,
        now_us: u64,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        self.check_batch_with_error(self.now_us(Some(now_us)), admissions)
    }

    /// [`MemoryStore::check_batch`] with the caller's error type, so that the answers are written once.
    pub(super) fn check_batch_with_error<'a, E: From<StoreError>>(
        &self,
        now_us: u64,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, E>> {
        let mut decisions = Vec::with_capacity(admissions.len());
        for admissions in admissions.chunks(BATCH) {
            let fingerprints = self.prefetch(admissions);
            for (admission, fingerprint) in admissions.iter().zip(fingerprints) {
                match admission.only() {
                    Some(ask) => {
                        let hint = self.slot_hints.get(ask.rule.id(), fingerprint);
                        let answer = Appended(&mut decisions);
                        self.check_single(Some(now_us), ask, fingerprint, Some(hint), answer);
                    }
                    None => decisions.push(self.check_all(now_us, admission).map_err(E::from)),
                }
            }
        }
        decisions
    }

    /// Prefetches the slot of every admission's first key; returns their fingerprints.
    fn prefetch(&self, admissions: &[Admission<'_>]) -> [u64; BATCH] {
        let mut fingerprints = [0; BATCH];
        for (fingerprint, admission) in fingerprints.iter_mut().zip(admissions) {
            if let Some(ask) = admission.asks().first() {
                *fingerprint = self.fingerprint(ask.key.identity());
                self.slot_hints.get(ask.rule.id(), *fingerprint).prefetch(*fingerprint);
            }
        }
        fingerprints
    }
}
