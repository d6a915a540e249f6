//! Several admissions in one call.

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
        let mut decisions = Vec::with_capacity(admissions.len());
        for admissions in admissions.chunks(BATCH) {
            let fingerprints = self.prefetch(admissions);
            decisions.extend(admissions.iter().zip(fingerprints).map(|(admission, fingerprint)| {
                match admission.only() {
                    Some(ask) => self.check_single(Some(now_us), ask, fingerprint),
                    None => self.check_all(now_us, admission),
                }
            }));
        }
        decisions
    }

    /// Prefetches the slot of every admission's first key; returns their fingerprints.
    fn prefetch(&self, admissions: &[Admission<'_>]) -> [u64; BATCH] {
        let mut fingerprints = [0; BATCH];
        for (admission, place) in admissions.iter().zip(&mut fingerprints) {
            let Some(ask) = admission.asks().first() else { continue };
            let (fingerprint, shard) = self.shard(ask.key.as_str());
            *place = fingerprint;
            shard.prefetch(fingerprint, ask.rule);
        }
        fingerprints
    }
}
