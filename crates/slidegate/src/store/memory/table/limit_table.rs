//! The states of one limit of a rule, for all keys of a shard.

use super::any_part::{AnyPart, with_part, with_part_and_window};
use super::part::Part;
use super::room::{Room, insert, rounded};
use super::split_table::{PartEnd, Table};
use crate::algorithm::{AnyWindow, Ruling, State, Usage, Window, charge_excess};
use crate::receipt::{ChargePlace, Position};
use crate::rule::Limit;
use crate::store::StoreError;
use crate::store::memory::budget::Budget;
use crate::store::memory::single::Hit;
use crate::store::memory::void_receipts::VoidReceipts;

/// States by fingerprint, all of one limit's geometry.
#[derive(Debug)]
pub(in crate::store::memory) struct LimitTable {
    limit: Limit,
    table: Table,
    pub(in crate::store::memory) void_receipts: VoidReceipts,
}

impl LimitTable {
    /// An empty table; receipts up to `order` are void for it.
    pub(in crate::store::memory) fn new(limit: Limit, order: u64) -> Self {
        let table = Table::new(limit.algorithm());
        Self { limit, table, void_receipts: VoidReceipts::all_until(order) }
    }

    pub(in crate::store::memory) fn limit(&self) -> &Limit {
        &self.limit
    }

    pub(in crate::store::memory) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    pub(in crate::store::memory) fn len(&self) -> usize {
        self.table.len()
    }

    pub(in crate::store::memory) fn contains(&self, fingerprint: u64) -> bool {
        with_part!(self.table.part(fingerprint), part => part.get(fingerprint).is_some())
    }

    /// Whether a key has ended by `noted_us`: no charge counts any more.
    pub(in crate::store::memory) fn ended(&self, fingerprint: u64, noted_us: u64) -> bool {
        with_part!(self.table.part(fingerprint), part => {
            part.get(fingerprint).is_none_or(|state| state.ends_us(&self.limit) <= noted_us)
        })
    }

    /// The states of all keys.
    #[inline]
    pub(in crate::store::memory) fn states(&mut self) -> &mut Table {
        &mut self.table
    }

    /// The decision on `cost`; a missing key has used nothing.
    pub(in crate::store::memory) fn decide(&self, hit: Hit<'_>) -> Ruling {
        let Hit { fingerprint, limit, now_us, cost } = hit;
        with_part!(self.table.part(fingerprint), part => match part.get(fingerprint) {
            Some(state) => state.decide(limit, now_us, cost),
            None => fresh_of(part).decide(limit, now_us, cost),
        })
    }

    pub(in crate::store::memory) fn usage(&self, fingerprint: u64, limit: &Limit, now_us: u64) -> Usage {
        with_part!(self.table.part(fingerprint), part => {
            part.get(fingerprint).map_or_else(Usage::default, |state| state.usage(limit, now_us))
        })
    }

    /// Inserts a slot for a new key, and reserves the heap memory of the charge. Returns whether the slot is new, and
    /// how many bytes were reserved.
    pub(in crate::store::memory) fn prepare(
        &mut self,
        room: Room<'_>,
        hit: Hit<'_>,
        drop_ended: bool,
    ) -> Result<(bool, usize), StoreError> {
        let (fresh, growth) = with_part!(self.table.part(hit.fingerprint), part => {
            let (state, fresh) = (part.get(hit.fingerprint), fresh_of(part));
            let growth = state.unwrap_or(&fresh).growth_bytes_max(hit.limit, hit.now_us, hit.cost);
            (state.is_none(), growth)
        });
        let set_aside = rounded(growth);
        room.budget.take(set_aside)?;
        if fresh {
            if let Err(full) = insert(&mut self.table, &self.limit, room, hit.fingerprint, drop_ended) {
                room.budget.give(set_aside);
                return Err(full);
            }
        }
        Ok((fresh, set_aside))
    }

    /// Charges a state that was prepared.
    pub(in crate::store::memory) fn charge(
        &mut self,
        budget: &Budget,
        hit: Hit<'_>,
        set_aside: usize,
    ) -> (Position, Usage) {
        with_part!(self.table.part_mut(hit.fingerprint), part => {
            let state = part.get_mut(hit.fingerprint).expect("it was prepared");
            let before = rounded(state.heap_bytes()) + set_aside;
            let position = state.charge(hit.limit, hit.now_us, hit.cost);
            budget.settle(before, rounded(state.heap_bytes()));
            (position, state.usage(hit.limit, hit.now_us))
        })
    }

    /// Charges an excess above an admission's cost, even beyond the budget; false if the key is not here.
    pub(in crate::store::memory) fn charge_excess(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        now_us: u64,
        units: u64,
    ) -> bool {
        with_part!(self.table.part_mut(fingerprint), part => part.get_mut(fingerprint).is_some_and(|state| {
            let before = rounded(state.heap_bytes());
            charge_excess(state, &self.limit, now_us, units);
            budget.settle(before, rounded(state.heap_bytes()));
            true
        }))
    }

    /// Takes back up to `units` of the charge at `place`, unless its receipt is void.
    pub(in crate::store::memory) fn refund(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        place: &ChargePlace,
        units: u64,
    ) -> u64 {
        // An expired state may have been dropped, so an expired receipt stays expired even if the clock is set back.
        if State::expires_us(place) <= room.noted_us || self.void_receipts.contains(fingerprint, place.order)
        {
            return 0;
        }
        let limit = &self.limit;
        with_part!(self.table.part_mut(fingerprint), part => part.get_mut(fingerprint).map_or(0, |state| {
            let before = rounded(state.heap_bytes());
            let given = state.refund(limit, now_us, place, units);
            room.budget.settle(before, rounded(state.heap_bytes()));
            given
        }))
    }

    /// Takes back up to the hit's cost from the oldest charges.
    pub(in crate::store::memory) fn credit(&mut self, budget: &Budget, hit: Hit<'_>) -> u64 {
        let Hit { fingerprint, limit, now_us, cost: units } = hit;
        with_part!(self.table.part_mut(fingerprint), part => part.get_mut(fingerprint).map_or(0, |state| {
            let before = rounded(state.heap_bytes());
            let given = state.credit(limit, now_us, units);
            budget.settle(before, rounded(state.heap_bytes()));
            given
        }))
    }

    /// A copy of a key's state.
    pub(in crate::store::memory) fn state(&self, fingerprint: u64) -> Option<State> {
        let window = match self.table.part(fingerprint) {
            AnyPart::NarrowLog(part) => AnyWindow::SlidingLog(part.get(fingerprint)?.clone().refitted()),
            AnyPart::SlidingLog(part) => AnyWindow::SlidingLog(part.get(fingerprint)?.clone()),
            AnyPart::CompactLog(part) => AnyWindow::CompactLog(part.get(fingerprint)?.clone()),
            AnyPart::SlidingBuckets(part) => AnyWindow::SlidingBuckets(part.get(fingerprint)?.clone()),
            AnyPart::SlidingCounter(part) => AnyWindow::SlidingCounter(part.get(fingerprint)?.clone()),
            AnyPart::FixedWindow(part) => AnyWindow::FixedWindow(part.get(fingerprint)?.clone()),
            AnyPart::Gcra(part) => AnyWindow::Gcra(part.get(fingerprint)?.clone()),
        };
        Some(State { limit: self.limit, window })
    }

    /// Inserts the state of a new key, even beyond the budget.
    pub(in crate::store::memory) fn put(&mut self, budget: &Budget, fingerprint: u64, state: State) {
        let put = with_part_and_window!(self.table.part_mut(fingerprint), state.window, part, state => {
            let (heap_bytes, before) = (rounded(state.heap_bytes()), part.bytes());
            part.put(fingerprint, state);
            budget.settle(before, part.bytes() + heap_bytes);
        });
        put.expect("the state is of the table's algorithm");
    }

    /// Removes a key; its receipts so far are void.
    pub(in crate::store::memory) fn remove(&mut self, budget: &Budget, fingerprint: u64, order: u64) {
        let removed = with_part!(self.table.part_mut(fingerprint), part => part.remove(fingerprint).map(|state| {
            budget.give(rounded(state.heap_bytes()));
            state.ends_us(&self.limit)
        }));
        if let Some(ends_us) = removed {
            self.void_receipts.record(budget, fingerprint, order, ends_us);
        }
    }

    /// Rolls back a preparation: releases the reserved memory, and removes the key if it is new.
    pub(in crate::store::memory) fn unprepare(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        fresh: bool,
        set_aside: usize,
    ) {
        budget.give(set_aside);
        if fresh {
            with_part!(self.table.part_mut(fingerprint), part => drop(part.remove(fingerprint)));
        }
    }

    /// Removes a key whose receipts have all expired.
    pub(in crate::store::memory) fn remove_ended(&mut self, budget: &Budget, fingerprint: u64) {
        with_part!(self.table.part_mut(fingerprint), part => {
            budget.give(part.remove(fingerprint).map_or(0, |state| rounded(state.heap_bytes())));
        });
    }

    /// Drops the ended keys among the next `count` slots; returns how many, and the end of a part if it reached one.
    pub(in crate::store::memory) fn sweep(
        &mut self,
        room: Room<'_>,
        count: usize,
    ) -> (usize, Option<PartEnd>) {
        let mut dropped = 0;
        let limit = &self.limit;
        let end = self.table.sweep(|part| {
            with_part!(part, part => {
                let gone = |_: u64, state: &_| Window::ends_us(state, limit) <= room.noted_us;
                part.sweep(count, gone, |_, state| {
                    dropped += 1;
                    room.budget.give(rounded(state.heap_bytes()));
                })
            })
        });
        (dropped, end)
    }

    /// The next sweep begins at the first slot.
    pub(in crate::store::memory) fn restart_sweep(&mut self) {
        self.table.restart_sweep();
    }

    /// The keys among the next `count` slots that have ended for this limit, and the end of a part if the sweep reached
    /// one.
    pub(in crate::store::memory) fn ended_next(
        &mut self,
        noted_us: u64,
        count: usize,
    ) -> (Vec<u64>, Option<PartEnd>) {
        let limit = &self.limit;
        let ended = std::cell::RefCell::new(Vec::new());
        let end = self.table.sweep(|part| {
            with_part!(part, part => {
                let note = |fingerprint: u64, state: &_| {
                    if Window::ends_us(state, limit) <= noted_us {
                        ended.borrow_mut().push(fingerprint);
                    }
                    false
                };
                part.sweep(count, note, |_, _| {})
            })
        });
        (ended.into_inner(), end)
    }

    /// After the sweep of a part: shrinks its array if most of it is empty, changes its slot width if needed, and drops
    /// expired records.
    pub(in crate::store::memory) fn tidy(&mut self, room: Room<'_>, end: PartEnd) {
        if end.last {
            self.void_receipts.drop_expired(room.budget, room.noted_us);
        }
        self.table.tidy(room.budget, end);
    }

    /// The key charged longest ago among a few near `fingerprint`, ignoring keys that must stay.
    pub(in crate::store::memory) fn oldest_near(
        &self,
        fingerprint: u64,
        count: usize,
        stays: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        with_part!(self.table.part(fingerprint), part => {
            part.oldest_from(fingerprint, count, stays, |state| state.charged_by_us(&self.limit))
        })
    }

    /// The fingerprints of all keys.
    pub(in crate::store::memory) fn fingerprints(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len());
        for part in self.table.parts() {
            with_part!(part, part => all.extend(part.iter().map(|(fingerprint, _)| fingerprint)));
        }
        all
    }

    /// Changes the limit, even beyond the budget; the geometry is the same.
    pub(in crate::store::memory) fn change_limit(&mut self, budget: &Budget, limit: Limit, now_us: u64) {
        self.limit = limit;
        for part in self.table.parts_mut() {
            let AnyPart::Gcra(part) = part else { return };
            for state in part.states_mut() {
                let before = rounded(state.heap_bytes());
                *state = state.rescaled(&limit, now_us);
                budget.settle(before, rounded(state.heap_bytes()));
            }
        }
    }

    /// Bytes of the arrays, without the heap memory of states.
    pub(in crate::store::memory) fn array_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Bytes of one state on the heap.
    pub(in crate::store::memory) fn heap_bytes_of(&self, fingerprint: u64) -> usize {
        with_part!(self.table.part(fingerprint), part => part.get(fingerprint).map_or(0, Window::heap_bytes))
    }

    /// Bytes of the states on the heap.
    pub(in crate::store::memory) fn heap_bytes(&self) -> usize {
        let of_part = |part: &AnyPart| -> usize {
            with_part!(part, part => part.iter().map(|(_, state)| rounded(state.heap_bytes())).sum())
        };
        self.table.parts().iter().map(of_part).sum()
    }
}

/// The state of a new key.
fn fresh_of<S: Window>(_part: &Part<S>) -> S {
    S::default()
}
