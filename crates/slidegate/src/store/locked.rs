//! The shards of one admission, locked together.

use super::lock::{Lock, Locks};
use super::memory::MemoryStore;
use super::shard::Shard;
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::few::Few;
use crate::receipt::{ReceiptCharge, ReceiptId};

/// Every shard that the asks of an admission need, each locked once.
pub(super) struct Locked<'s, 'a, L: Locks> {
    asks: &'s [Charge<'a>],
    guards: Few<<L::Of<Shard> as Lock<Shard>>::Guard<'s>>,
    /// For every ask, which of the guards is its.
    guard_of_ask: Few<usize>,
}

impl<'s, 'a, L: Locks> Locked<'s, 'a, L> {
    /// Locks in the order of the shards' numbers: two admissions that share shards meet at the first
    /// of them, and neither waits for a lower one while it holds a higher.
    pub(super) fn new(store: &'s MemoryStore<L>, asks: &'s [Charge<'a>]) -> Self {
        let shard_of = |ask: &Charge<'_>| store.shard_of(ask.rule.name(), ask.key.as_str());
        let [ask] = asks else {
            let shards: Vec<usize> = asks.iter().map(shard_of).collect();
            let mut order = shards.clone();
            order.sort_unstable();
            order.dedup();
            let guards = order.iter().map(|&shard| store.lock_shard(shard)).collect();
            let position = |shard: &usize| order.binary_search(shard).expect("every shard was locked");
            return Self { asks, guards, guard_of_ask: shards.iter().map(position).collect() };
        };
        let guards = Few::One([store.lock_shard(shard_of(ask))]);
        Self { asks, guards, guard_of_ask: Few::One([0]) }
    }

    /// What every ask's rule says to it.
    pub(super) fn verdicts(&self, now_us: u64) -> Few<Verdict<'a>> {
        let asks = self.asks.iter().zip(&*self.guard_of_ask);
        asks.map(|(ask, &guard)| self.guards[guard].verdict(now_us, ask)).collect()
    }

    /// Charges the ask of that index.
    pub(super) fn charge(&mut self, index: usize, now_us: u64) -> (Verdict<'a>, ReceiptCharge<'a>) {
        self.guards[self.guard_of_ask[index]].charge(now_us, &self.asks[index])
    }

    /// An id for the receipt.
    pub(super) fn next_id(&mut self) -> ReceiptId {
        self.guards[0].next_id()
    }
}
