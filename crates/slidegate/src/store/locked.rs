//! The shards of one admission, locked together.

use super::lock::{Lock, Locks};
use super::memory::MemoryStore;
use super::shard::Shard;
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::receipt::ReceiptCharge;

/// Every shard that the asks of an admission need, each locked once.
pub(super) struct Locked<'a, L: Locks> {
    asks: &'a [Charge<'a>],
    guards: Vec<<L::Of<Shard> as Lock<Shard>>::Guard<'a>>,
    /// For every ask, which of the guards is its.
    guard_of_ask: Vec<usize>,
}

impl<'a, L: Locks> Locked<'a, L> {
    /// Locks in the order of the shards' numbers: two admissions that share shards meet at the first
    /// of them, and neither waits for a lower one while it holds a higher.
    pub(super) fn new(store: &'a MemoryStore<L>, asks: &'a [Charge<'a>]) -> Self {
        let shards: Vec<usize> =
            asks.iter().map(|ask| store.shard_of(ask.rule.name(), ask.key.as_str())).collect();
        let mut order = shards.clone();
        order.sort_unstable();
        order.dedup();
        let guards = order.iter().map(|&shard| store.lock_shard(shard)).collect();
        let position = |shard: &usize| order.binary_search(shard).expect("every shard was locked");
        Self { asks, guards, guard_of_ask: shards.iter().map(position).collect() }
    }

    /// What every ask's rule says to it.
    pub(super) fn verdicts(&self, now_us: u64) -> Vec<Verdict> {
        let asks = self.asks.iter().zip(&self.guard_of_ask);
        asks.map(|(ask, &guard)| self.guards[guard].verdict(now_us, ask)).collect()
    }

    /// Charges the ask of that index.
    pub(super) fn charge(&mut self, index: usize, now_us: u64, generation: u64) -> (Verdict, ReceiptCharge) {
        self.guards[self.guard_of_ask[index]].charge(now_us, &self.asks[index], generation)
    }
}
