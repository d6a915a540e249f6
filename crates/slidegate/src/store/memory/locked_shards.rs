//! The shards of one admission, locked together.

use super::lock::{Lock, Locks};
use super::shard::Shard;
use super::single::receipt_id;
use super::store::MemoryStore;
use super::table::layout::Prepared;
use super::table::room::Room;
use crate::charge::Charge;
use crate::decision::{StateAnswer, Verdict};
use crate::error::StoreError;
use crate::few::Few;
use crate::receipt::ReceiptId;
use crate::time::Clock;

/// The shards of an admission's asks, each locked once.
pub(super) struct LockedShards<'s, 'a, L: Locks> {
    asks: &'s [Charge<'a>],
    guards: Few<<L::Of<Shard> as Lock<Shard>>::Guard<'s>>,
    /// For every ask, the fingerprint of its key and the index of its guard.
    places: Few<(u64, usize)>,
}

impl<'s, 'a, L: Locks> LockedShards<'s, 'a, L> {
    /// Locks in the order of the shards' numbers, which prevents deadlocks: no admission waits for a lower
    /// shard while it holds a higher one.
    pub(super) fn new<C: Clock>(store: &'s MemoryStore<C, L>, asks: &'s [Charge<'a>]) -> Self {
        let fingerprints: Few<u64> = asks.iter().map(|ask| store.fingerprint(ask.key.identity())).collect();
        let mut order: Few<usize> = fingerprints.iter().map(|&print| store.shard_of(print)).collect();
        order.sort_unstable();
        let mut numbers: Few<usize> = Few::default();
        for &number in &*order {
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
        let guards = numbers.iter().map(|&shard| store.lock_shard(shard)).collect();
        let place = |&print: &u64| {
            let guard = numbers.binary_search(&store.shard_of(print)).expect("every shard was locked");
            (print, guard)
        };
        Self { asks, guards, places: fingerprints.iter().map(place).collect() }
    }

    /// The verdict on every ask.
    pub(super) fn verdicts(&self, now_us: u64) -> Few<Verdict<'a>> {
        let asks = self.asks.iter().zip(&*self.places);
        asks.map(|(ask, &(print, guard))| self.guards[guard].verdict(print, now_us, ask)).collect()
    }

    /// Inserts slots and reserves memory for all asks that are `wanted`, or for none. A shadow rule without room
    /// is left out, as it takes no part in the verdict.
    pub(super) fn prepare(
        &mut self,
        room: Room<'_>,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Few<Option<Prepared>>, StoreError> {
        let several = self.places.iter().map(|&(print, _)| print).filter(|_| self.places.len() > 1);
        let spared: Few<u64> = several.collect();
        let room = Room { spared: &spared, ..room };
        let mut all: Few<Option<Prepared>> = Few::default();
        for (index, ask) in self.asks.iter().enumerate() {
            let (print, guard) = self.places[index];
            let prepared = match wanted(index).then(|| self.guards[guard].prepare(room, print, ask)) {
                Some(Err(full)) if !ask.rule.shadow() => {
                    self.unprepare(room, &all);
                    return Err(full);
                }
                prepared => prepared.and_then(Result::ok),
            };
            all.push(prepared);
        }
        Ok(all)
    }

    fn unprepare(&mut self, room: Room<'_>, all: &[Option<Prepared>]) {
        for (index, prepared) in all.iter().enumerate() {
            let (print, guard) = self.places[index];
            if let Some(prepared) = prepared {
                self.guards[guard].unprepare(room, print, &self.asks[index], prepared);
            }
        }
    }

    /// Charges the ask of that index, which was prepared; returns its sequence number and answer.
    pub(super) fn charge(
        &mut self,
        room: Room<'_>,
        index: usize,
        now_us: u64,
        prepared: &Prepared,
    ) -> (u64, StateAnswer) {
        let (print, guard) = self.places[index];
        self.guards[guard].charge(room, print, now_us, &self.asks[index], prepared)
    }

    /// Sweeps a few slots of every locked shard.
    pub(super) fn sweep_some(&mut self, room: Room<'_>, count: usize) {
        for guard in &mut self.guards {
            guard.sweep_some(room, count);
        }
    }

    /// Whether a sweep is due.
    pub(super) fn sweep_is_due(&mut self) -> bool {
        self.guards[0].sweep_is_due()
    }

    /// The id of a receipt whose first charge is the ask `index`.
    pub(super) fn id_of(&self, index: usize, order: u64) -> ReceiptId {
        receipt_id(self.guards[self.places[index].1].number(), order)
    }
}
