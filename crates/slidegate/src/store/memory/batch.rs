//! Several admissions in one call.

use super::lock::Locks;
use super::store::MemoryStore;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::time::Clock;

/// So many admissions of a batch are looked up before the first of them is decided: more than a processor
/// waits for at once.
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
            let fingerprints = self.bring_near(admissions);
            decisions.extend(admissions.iter().zip(fingerprints).map(|(admission, fingerprint)| {
                match admission.only() {
                    Some(ask) => self.check_found(now_us, ask, fingerprint),
                    None => self.check_all(now_us, admission),
                }
            }));
        }
        decisions
    }

    /// Touches the state of every admission's first charge, so that it is near when it is asked, and says
    /// which it is. Decides and changes nothing: a processor that had to guess what it finds would be held up
    /// by every wrong guess until the memory is there.
    fn bring_near(&self, admissions: &[Admission<'_>]) -> [u64; BATCH] {
        let mut fingerprints = [0; BATCH];
        let mut touched = 0;
        for (admission, place) in admissions.iter().zip(&mut fingerprints) {
            let Some(ask) = admission.asks().first() else { continue };
            let (fingerprint, shard) = self.shard(ask.key.as_str());
            *place = fingerprint;
            touched ^= shard.touch(fingerprint, ask.rule);
        }
        // Nobody wants to know, but looking is what brings it near.
        std::hint::black_box(touched);
        fingerprints
    }
}
