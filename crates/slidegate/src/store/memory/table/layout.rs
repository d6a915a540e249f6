//! The states of one rule in one geometry: a table per limit, with the same keys.

use super::limit_table::LimitTable;
use super::room::Room;
use super::split_table::Table;
use crate::algorithm::Usage;
use crate::charge::Charge;
use crate::decision::{StateAnswer, Verdict};
use crate::few::Few;
use crate::receipt::{OrderedPosition, ReceiptCharge};
use crate::rule::Limit;
use crate::store::KeyState;
use crate::store::StoreError;
use crate::store::memory::budget::Budget;
use crate::store::memory::single::Hit;

/// Keys that are compared for an eviction.
const EVICTED_OF: usize = 16;

/// A table per limit. A key is in all of them or in none.
#[derive(Debug)]
pub(in crate::store::memory) struct Layout {
    tables: Few<LimitTable>,
}

/// What was inserted and reserved for a charge.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Prepared {
    fresh: bool,
    set_aside: Few<usize>,
}

impl Layout {
    /// Empty tables; receipts up to `order` are void for them.
    pub(in crate::store::memory) fn new(limits: impl IntoIterator<Item = Limit>, order: u64) -> Self {
        Self { tables: limits.into_iter().map(|limit| LimitTable::new(limit, order)).collect() }
    }

    /// Whether the tables have the geometry of `limits`.
    #[inline]
    pub(in crate::store::memory) fn fits(&self, limits: &[Limit]) -> bool {
        self.tables.len() == limits.len()
            && self.tables.iter().zip(limits).all(|(table, limit)| {
                // Usually the limits are equal, which is faster to compare than names of algorithms.
                table.limit() == limit || limit.keeps_state_of(table.limit())
            })
    }

    pub(in crate::store::memory) fn len(&self) -> usize {
        self.lead().len()
    }

    pub(in crate::store::memory) fn contains(&self, fingerprint: u64) -> bool {
        self.lead().contains(fingerprint)
    }

    /// Whether it has neither keys nor records of void receipts.
    pub(in crate::store::memory) fn is_unused(&self) -> bool {
        self.tables.iter().all(|table| table.len() == 0 && table.void_receipts.is_empty())
    }

    /// The first table; all have the same keys.
    fn lead(&self) -> &LimitTable {
        &self.tables[0]
    }

    /// The states of the first limit.
    #[inline]
    pub(in crate::store::memory) fn first_table(&mut self) -> &mut Table {
        self.tables[0].states()
    }

    /// Whether the tables have these limits.
    pub(in crate::store::memory) fn is_exactly(&self, limits: &[Limit]) -> bool {
        self.tables.iter().map(LimitTable::limit).eq(limits)
    }

    /// The verdict on the charge, without making it.
    pub(in crate::store::memory) fn verdict<'a>(
        &self,
        fingerprint: u64,
        now_us: u64,
        ask: &Charge<'a>,
    ) -> Verdict<'a> {
        let verdicts = self.tables.iter().zip(ask.rule.limits()).map(|(table, limit)| {
            if ask.cost > limit.units() {
                // Only a shadow rule gets here: it would deny a cost that can never pass.
                let usage = table.usage(fingerprint, limit, now_us);
                return Verdict { allowed: false, ..Verdict::of_usage(ask, limit, usage) };
            }
            let hit = Hit { fingerprint, limit, now_us, cost: ask.cost };
            Verdict::of_ruling(ask, limit, table.decide(hit))
        });
        Verdict::join(verdicts).expect("a rule has at least one limit")
    }

    /// Inserts slots for a new key, and reserves the memory of the charge.
    pub(in crate::store::memory) fn prepare(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        limits: &[Limit],
        cost: u64,
    ) -> Result<Prepared, StoreError> {
        // With several tables, a key that has ended in one may be live in another. Keys of the same admission must
        // stay: they are about to be charged.
        let drop_ended = self.tables.len() == 1 && room.spared.is_empty();
        let mut prepared = Prepared::default();
        for (index, limit) in limits.iter().enumerate() {
            let hit = Hit { fingerprint, limit, now_us: 0, cost };
            match self.tables[index].prepare(room, hit, drop_ended) {
                Ok((fresh, set_aside)) => {
                    prepared.fresh |= fresh;
                    prepared.set_aside.push(set_aside);
                }
                Err(full) => {
                    self.unprepare(room.budget, fingerprint, &prepared);
                    return Err(full);
                }
            }
        }
        Ok(prepared)
    }

    /// Rolls back a complete or partial preparation.
    pub(in crate::store::memory) fn unprepare(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        prepared: &Prepared,
    ) {
        for (table, &set_aside) in self.tables.iter_mut().zip(&*prepared.set_aside) {
            table.unprepare(budget, fingerprint, prepared.fresh, set_aside);
        }
    }

    /// Makes a charge that was decided and prepared.
    pub(in crate::store::memory) fn charge(
        &mut self,
        budget: &Budget,
        (fingerprint, order): (u64, u64),
        now_us: u64,
        ask: &Charge<'_>,
        prepared: &Prepared,
    ) -> StateAnswer {
        let Charge { rule, cost, .. } = *ask;
        let mut positions: Few<OrderedPosition> = Few::default();
        let tables = self.tables.iter_mut().zip(rule.limits()).zip(&*prepared.set_aside);
        let verdicts = tables.map(|((table, limit), &set_aside)| {
            table.set_limit(*limit);
            let (position, usage) = table.charge(budget, Hit { fingerprint, limit, now_us, cost }, set_aside);
            positions.push(OrderedPosition { order, position });
            Verdict::of_usage(ask, limit, usage)
        });
        let verdict = Verdict::join(verdicts).expect("a rule has at least one limit");
        StateAnswer::charged(verdict, positions)
    }

    /// Evicts the oldest of a few other keys; false if there was none.
    pub(in crate::store::memory) fn evict(&mut self, room: Room<'_>, fingerprint: u64, order: u64) -> bool {
        // An existing key needs heap memory: evicting keys without any would not help.
        let placed = self.contains(fingerprint);
        let stays = |other: u64| {
            let gives = !placed || self.tables.iter().any(|table| table.heap_bytes_of(other) > 0);
            other == fingerprint || room.spared.contains(&other) || !gives
        };
        let Some(oldest) = self.lead().oldest_near(fingerprint, EVICTED_OF, stays) else {
            return false;
        };
        self.remove(room.budget, oldest, order);
        true
    }

    /// Charges an excess above an admission's cost, even beyond the budget; false if the key is not here.
    pub(in crate::store::memory) fn charge_excess(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        now_us: u64,
        units: u64,
    ) -> bool {
        let charged = |table: &mut LimitTable| table.charge_excess(budget, fingerprint, now_us, units);
        self.tables.iter_mut().all(charged)
    }

    /// Takes back up to `units` of the charge; returns the largest number over the limits, as a charge expires earlier
    /// in short windows.
    pub(in crate::store::memory) fn refund(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &ReceiptCharge,
        units: u64,
    ) -> u64 {
        let given = self.tables.iter_mut().map(|table| {
            let place = charge.places().iter().find(|place| table.limit().keeps_state_of(&place.limit));
            place.map_or(0, |place| table.refund(room, fingerprint, now_us, place, units))
        });
        given.max().unwrap_or(0)
    }

    /// Takes back up to `units` from the oldest charges of every limit; returns the largest number.
    pub(in crate::store::memory) fn credit(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        now_us: u64,
        charge: &Charge<'_>,
    ) -> u64 {
        let given = self.tables.iter_mut().zip(charge.rule.limits()).map(|(table, limit)| {
            table.set_limit(*limit);
            table.credit(budget, Hit { fingerprint, limit, now_us, cost: charge.cost })
        });
        given.max().unwrap_or(0)
    }

    /// The usage of every limit; `limits` must fit.
    pub(in crate::store::memory) fn usages(
        &self,
        fingerprint: u64,
        limits: &[Limit],
        now_us: u64,
    ) -> Vec<(Limit, Usage)> {
        let limits = self.tables.iter().zip(limits);
        limits.map(|(table, limit)| (*limit, table.usage(fingerprint, limit, now_us))).collect()
    }

    /// A copy of the states of a key.
    pub(in crate::store::memory) fn state(&self, fingerprint: u64) -> Option<KeyState> {
        self.tables.iter().map(|table| table.state(fingerprint)).collect::<Option<Vec<_>>>().map(KeyState::of)
    }

    /// Inserts the states of a new key, even beyond the budget.
    pub(in crate::store::memory) fn put(&mut self, budget: &Budget, fingerprint: u64, state: KeyState) {
        for (table, state) in self.tables.iter_mut().zip(state.into_states()) {
            table.put(budget, fingerprint, state);
        }
    }

    /// Removes a key; its receipts so far are void.
    pub(in crate::store::memory) fn remove(&mut self, budget: &Budget, fingerprint: u64, order: u64) {
        for table in &mut self.tables {
            table.remove(budget, fingerprint, order);
        }
    }

    /// Drops the ended keys among the next `count` slots; returns how many, and whether the sweep reached the end.
    pub(in crate::store::memory) fn sweep(&mut self, room: Room<'_>, count: usize) -> (usize, bool) {
        let (dropped, end) = if let [table] = &mut *self.tables {
            table.sweep(room, count)
        } else {
            let (ended, end) = self.tables[0].ended_next(room.noted_us, count);
            let mut dropped = 0;
            for fingerprint in ended {
                if self.tables.iter().all(|table| table.ended(fingerprint, room.noted_us)) {
                    self.tables.iter_mut().for_each(|table| table.remove_ended(room.budget, fingerprint));
                    dropped += 1;
                }
            }
            (dropped, end)
        };
        if let Some(end) = end {
            self.tables.iter_mut().for_each(|table| table.tidy(room, end));
        }
        (dropped, end.is_some_and(|end| end.last))
    }

    /// Drops all ended keys; returns how many.
    pub(in crate::store::memory) fn sweep_all(&mut self, room: Room<'_>) -> usize {
        self.tables[0].restart_sweep();
        let mut dropped = 0;
        // Each call sweeps one part.
        loop {
            let (more, round) = self.sweep(room, usize::MAX);
            dropped += more;
            if round {
                return dropped;
            }
        }
    }

    /// The fingerprints of all keys.
    pub(in crate::store::memory) fn fingerprints(&self) -> Vec<u64> {
        self.lead().fingerprints()
    }

    /// Changes the limits, even beyond the budget; the geometry is the same.
    pub(in crate::store::memory) fn change_limits(&mut self, budget: &Budget, limits: &[Limit], now_us: u64) {
        for (table, limit) in self.tables.iter_mut().zip(limits) {
            table.change_limit(budget, *limit, now_us);
        }
    }

    /// Takes over the void receipts of every limit with the same geometry.
    pub(in crate::store::memory) fn inherit_void_receipts(&mut self, from: &mut Self) {
        for table in &mut self.tables {
            let older = from.tables.iter_mut().find(|older| table.limit().keeps_state_of(older.limit()));
            if let Some(older) = older {
                table.void_receipts = std::mem::take(&mut older.void_receipts);
            }
        }
    }

    /// Gives back the memory of the records of void receipts, before the layout is dropped.
    pub(in crate::store::memory) fn give_void_receipts(&self, budget: &Budget) {
        self.tables.iter().for_each(|table| budget.give_void(table.void_receipts.bytes()));
    }

    /// Bytes of the tables, with the heap memory of states.
    pub(in crate::store::memory) fn memory_bytes(&self) -> usize {
        self.tables.iter().map(|table| table.array_bytes() + table.heap_bytes()).sum()
    }
}
