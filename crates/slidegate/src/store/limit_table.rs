//! The states of one limit of a rule, for all keys of a shard.

use std::sync::atomic::{AtomicU64, Ordering};

use super::budget::Budget;
use super::error::StoreError;
use super::outcome::Outcome;
use super::table::{Found, Table};
use super::voids::Voids;
use crate::algorithm::{
    CompactLog, FixedWindow, Gcra, Kept, Ruling, SlidingBuckets, SlidingCounter, SlidingLog, State, Usage,
    Window, charge_excess,
};
use crate::charge::Charge;
use crate::decision::{Decision, Verdict};
use crate::few::Few;
use crate::receipt::{Place, Position, Receipt, ReceiptCharge, ReceiptId, Standing};
use crate::rule::{Algorithm, Limit};

/// A table per algorithm: states stand in place, each in as many bytes as its algorithm needs.
#[derive(Debug)]
enum AnyTable {
    SlidingLog(Table<SlidingLog>),
    CompactLog(Table<CompactLog>),
    SlidingBuckets(Table<SlidingBuckets>),
    SlidingCounter(Table<SlidingCounter>),
    FixedWindow(Table<FixedWindow>),
    Gcra(Table<Gcra>),
}

/// Runs the same expression on the table of whichever algorithm.
macro_rules! with_table {
    ($any:expr, $table:ident => $result:expr) => {
        match $any {
            AnyTable::SlidingLog($table) => $result,
            AnyTable::CompactLog($table) => $result,
            AnyTable::SlidingBuckets($table) => $result,
            AnyTable::SlidingCounter($table) => $result,
            AnyTable::FixedWindow($table) => $result,
            AnyTable::Gcra($table) => $result,
        }
    };
}

/// Runs the same expression on a table and on what a state of its algorithm keeps, `None` if the state is
/// of another algorithm.
macro_rules! with_table_and_kept {
    ($any:expr, $kept:expr, $table:ident, $state:ident => $result:expr) => {
        match ($any, $kept) {
            (AnyTable::SlidingLog($table), Kept::SlidingLog($state)) => Some($result),
            (AnyTable::CompactLog($table), Kept::CompactLog($state)) => Some($result),
            (AnyTable::SlidingBuckets($table), Kept::SlidingBuckets($state)) => Some($result),
            (AnyTable::SlidingCounter($table), Kept::SlidingCounter($state)) => Some($result),
            (AnyTable::FixedWindow($table), Kept::FixedWindow($state)) => Some($result),
            (AnyTable::Gcra($table), Kept::Gcra($state)) => Some($result),
            _ => None,
        }
    };
}

/// Slots looked at for something to drop when the budget is spent.
const SWEPT_WHEN_FULL: usize = 64;

/// What a call may use of the store beyond the shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room<'s> {
    pub(super) budget: &'s Budget,
    /// Time has reached this for sure: what ended by then may be forgotten.
    pub(super) noted_us: u64,
    /// Keys of an admission over several: none may have to make room for another.
    pub(super) spared: &'s [u64],
}

/// One charge on one state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'a> {
    pub(super) fingerprint: u64,
    /// As the rule that is asked has it; of the table's geometry.
    pub(super) limit: &'a Limit,
    pub(super) now_us: u64,
    pub(super) cost: u64,
}

/// Where a state stands, and what was set aside for its charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    index: usize,
    set_aside: usize,
}

const NOWHERE: usize = usize::MAX;

/// What a receipt is issued with.
#[derive(Debug)]
pub(super) struct Issue<'s> {
    /// The store.
    pub(super) store: u64,
    /// The shard.
    pub(super) shard: u64,
    /// The last order that the shard handed out.
    pub(super) order: &'s mut u64,
    /// The time that the store has noted.
    pub(super) noted_us: &'s AtomicU64,
}

/// By how much time must have moved on until it is noted again.
const NOTED_STEP_US: u64 = 1_000;

/// Something was charged at `now_us`: time is at least so late.
#[inline]
pub(super) fn note(noted_us: &AtomicU64, now_us: u64) {
    if now_us >= noted_us.load(Ordering::Relaxed) + NOTED_STEP_US {
        noted_us.fetch_max(now_us, Ordering::Relaxed);
    }
}

/// States by fingerprint, with the limit under which they are kept: their geometry is the table's.
#[derive(Debug)]
pub(super) struct LimitTable {
    limit: Limit,
    table: AnyTable,
    pub(super) voids: Voids,
}

impl LimitTable {
    /// An empty table; receipts up to `order` do not fit it.
    pub(super) fn new(limit: Limit, order: u64) -> Self {
        let table = match limit.algorithm() {
            Algorithm::SlidingLog => AnyTable::SlidingLog(Table::default()),
            Algorithm::CompactLog(_) => AnyTable::CompactLog(Table::default()),
            Algorithm::SlidingBuckets(..) => AnyTable::SlidingBuckets(Table::default()),
            Algorithm::SlidingCounter => AnyTable::SlidingCounter(Table::default()),
            Algorithm::FixedWindow => AnyTable::FixedWindow(Table::default()),
            Algorithm::Gcra => AnyTable::Gcra(Table::default()),
        };
        Self { limit, table, voids: Voids::all_until(order) }
    }

    pub(super) fn limit(&self) -> &Limit {
        &self.limit
    }

    pub(super) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    pub(super) fn len(&self) -> usize {
        with_table!(&self.table, table => table.len())
    }

    pub(super) fn contains(&self, fingerprint: u64) -> bool {
        with_table!(&self.table, table => table.get(fingerprint).is_some())
    }

    /// Whether nothing of a key counts any more at `noted_us`.
    pub(super) fn ended(&self, fingerprint: u64, noted_us: u64) -> bool {
        with_table!(&self.table, table => {
            table.get(fingerprint).is_none_or(|state| state.ends_us(&self.limit) <= noted_us)
        })
    }

    /// Finds the place of a key, makes one if it has none, and sets aside what a charge may need on the heap;
    /// `None` if there is no room, and nothing was changed.
    #[inline]
    pub(super) fn ready(&mut self, room: Room<'_>, hit: Hit<'_>) -> Option<Ready> {
        let limit = &self.limit;
        let ready = with_table!(&mut self.table, table => ready(table, limit, room, hit));
        Some(ready).filter(|ready| ready.index != NOWHERE)
    }

    /// Decides on a charge that comes alone, for which the state is ready, and makes it if it passes.
    #[inline]
    pub(super) fn check<'a, E>(
        &mut self,
        room: Room<'_>,
        ask: &Charge<'a>,
        hit: Hit<'a>,
        ready: Ready,
        issue: Issue<'_>,
    ) -> Result<Outcome<'a>, E> {
        with_table!(&mut self.table, table => check(table, room, ask, hit, ready, issue))
    }

    /// What the state says to `cost`; a key that is not there has used nothing.
    pub(super) fn decide(&self, hit: Hit<'_>) -> Ruling {
        let Hit { fingerprint, limit, now_us, cost } = hit;
        with_table!(&self.table, table => match table.get(fingerprint) {
            Some(state) => state.decide(limit, now_us, cost),
            None => fresh_of(table).decide(limit, now_us, cost),
        })
    }

    pub(super) fn usage(&self, fingerprint: u64, limit: &Limit, now_us: u64) -> Usage {
        with_table!(&self.table, table => {
            table.get(fingerprint).map_or_else(Usage::default, |state| state.usage(limit, now_us))
        })
    }

    /// Makes a place for a key that has none, and sets aside what the charge may need on the heap. Says
    /// whether the place is new, and how many bytes were set aside.
    pub(super) fn prepare(
        &mut self,
        room: Room<'_>,
        hit: Hit<'_>,
        drop_ended: bool,
    ) -> Result<(bool, usize), StoreError> {
        let kept_under = &self.limit;
        with_table!(&mut self.table, table => {
            let state = table.get(hit.fingerprint);
            let fresh = state.is_none();
            let growth = state.unwrap_or(&fresh_of(table)).growth_bytes_max(hit.limit, hit.cost);
            let set_aside = rounded(growth);
            room.budget.take(set_aside)?;
            if fresh {
                if let Err(full) = insert(table, kept_under, room, hit.fingerprint, drop_ended) {
                    room.budget.give(set_aside);
                    return Err(full);
                }
            }
            Ok((fresh, set_aside))
        })
    }

    /// Charges a state that was prepared.
    pub(super) fn charge(&mut self, budget: &Budget, hit: Hit<'_>, set_aside: usize) -> (Position, Usage) {
        with_table!(&mut self.table, table => {
            let state = table.get_mut(hit.fingerprint).expect("it was prepared");
            charge(state, budget, hit, set_aside)
        })
    }

    /// Charges what was spent above an admission's cost, within the budget or not; says whether the key is
    /// here.
    pub(super) fn charge_excess(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        now_us: u64,
        units: u64,
    ) -> bool {
        with_table!(&mut self.table, table => table.get_mut(fingerprint).is_some_and(|state| {
            let before = rounded(state.heap_bytes());
            charge_excess(state, &self.limit, now_us, units);
            budget.settle(before, rounded(state.heap_bytes()));
            true
        }))
    }

    /// Takes back up to `units` of the charge at `place`, unless its receipt is void.
    pub(super) fn refund(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        place: &Place,
        units: u64,
    ) -> u64 {
        // What has expired may have been forgotten since, and stays expired if the clock is set back.
        if State::expires_us(place) <= room.noted_us || self.voids.voids(fingerprint, place.order) {
            return 0;
        }
        let limit = &self.limit;
        with_table!(&mut self.table, table => table.get_mut(fingerprint).map_or(0, |state| {
            let before = rounded(state.heap_bytes());
            let given = state.refund(limit, now_us, place, units);
            room.budget.settle(before, rounded(state.heap_bytes()));
            given
        }))
    }

    /// Takes back up to the hit's cost from the oldest charges.
    pub(super) fn credit(&mut self, budget: &Budget, hit: Hit<'_>) -> u64 {
        let Hit { fingerprint, limit, now_us, cost: units } = hit;
        with_table!(&mut self.table, table => table.get_mut(fingerprint).map_or(0, |state| {
            let before = rounded(state.heap_bytes());
            let given = state.credit(limit, now_us, units);
            budget.settle(before, rounded(state.heap_bytes()));
            given
        }))
    }

    /// A copy of a key's state.
    pub(super) fn state(&self, fingerprint: u64) -> Option<State> {
        let kept = match &self.table {
            AnyTable::SlidingLog(table) => Kept::SlidingLog(table.get(fingerprint)?.clone()),
            AnyTable::CompactLog(table) => Kept::CompactLog(table.get(fingerprint)?.clone()),
            AnyTable::SlidingBuckets(table) => Kept::SlidingBuckets(table.get(fingerprint)?.clone()),
            AnyTable::SlidingCounter(table) => Kept::SlidingCounter(table.get(fingerprint)?.clone()),
            AnyTable::FixedWindow(table) => Kept::FixedWindow(table.get(fingerprint)?.clone()),
            AnyTable::Gcra(table) => Kept::Gcra(table.get(fingerprint)?.clone()),
        };
        Some(State::of(self.limit, kept))
    }

    /// Puts in a state that has no place yet, whether or not it fits the budget.
    pub(super) fn put(&mut self, budget: &Budget, fingerprint: u64, state: State) {
        let put = with_table_and_kept!(&mut self.table, state.into_kept(), table, state => {
            budget.take_anyway(rounded(state.heap_bytes()));
            let mut put = table.insert(fingerprint, state);
            while let Err(state) = put {
                let (before, homes) = (table.bytes(), table.homes_next());
                table.rebuild(homes, |_| false, |_| unreachable!("nothing is gone"));
                budget.settle(before, table.bytes());
                put = table.insert(fingerprint, state);
            }
        });
        put.expect("the state is of the table's algorithm");
    }

    /// Takes a key out; its receipts so far are void.
    pub(super) fn remove(&mut self, budget: &Budget, fingerprint: u64, order: u64) {
        let removed = with_table!(&mut self.table, table => table.remove(fingerprint).map(|state| {
            budget.give(rounded(state.heap_bytes()));
            state.ends_us(&self.limit)
        }));
        if let Some(ends_us) = removed {
            self.voids.record(fingerprint, order, ends_us);
        }
    }

    /// Takes out a key that was never charged.
    pub(super) fn unprepare(&mut self, budget: &Budget, fingerprint: u64, fresh: bool, set_aside: usize) {
        budget.give(set_aside);
        if fresh {
            with_table!(&mut self.table, table => drop(table.remove(fingerprint)));
        }
    }

    /// Takes out a key whose receipts have all expired.
    pub(super) fn forget(&mut self, budget: &Budget, fingerprint: u64) {
        with_table!(&mut self.table, table => {
            budget.give(table.remove(fingerprint).map_or(0, |state| rounded(state.heap_bytes())));
        });
    }

    /// Drops, of the next `count` slots, the keys that have ended; says how many, and whether it came round.
    pub(super) fn sweep(&mut self, room: Room<'_>, count: usize) -> (usize, bool) {
        let mut dropped = 0;
        let limit = &self.limit;
        let round = with_table!(&mut self.table, table => {
            let gone = |_: u64, state: &_| Window::ends_us(state, limit) <= room.noted_us;
            table.sweep(count, gone, |_, state| {
                dropped += 1;
                room.budget.give(rounded(state.heap_bytes()));
            })
        });
        (dropped, round)
    }

    /// The next sweep begins at the first slot.
    pub(super) fn restart_sweep(&mut self) {
        with_table!(&mut self.table, table => table.restart_sweep());
    }

    /// The keys of the next `count` slots that have ended as far as this limit is concerned, and whether
    /// the sweep came round.
    pub(super) fn ended_next(&mut self, noted_us: u64, count: usize) -> (Vec<u64>, bool) {
        let limit = &self.limit;
        let ended = std::cell::RefCell::new(Vec::new());
        let round = with_table!(&mut self.table, table => {
            let note = |fingerprint: u64, state: &_| {
                if Window::ends_us(state, limit) <= noted_us {
                    ended.borrow_mut().push(fingerprint);
                }
                false
            };
            table.sweep(count, note, |_, _| {})
        });
        (ended.into_inner(), round)
    }

    /// Makes the array smaller if most of it is empty, and drops records that are no longer needed.
    pub(super) fn tidy(&mut self, room: Room<'_>) {
        self.voids.forget(room.noted_us);
        with_table!(&mut self.table, table => {
            if let Some(homes) = table.homes_less() {
                let before = table.bytes();
                table.rebuild(homes, |_| false, |_| unreachable!("nothing is gone"));
                room.budget.settle(before, table.bytes());
            }
        });
    }

    /// The key among a few near `fingerprint` that was charged longest ago, itself and `spared` ones excepted.
    pub(super) fn oldest_near(&self, fingerprint: u64, count: usize, spared: &[u64]) -> Option<u64> {
        let stays = |other: u64| other == fingerprint || spared.contains(&other);
        with_table!(&self.table, table => {
            let (Found::At(index) | Found::Missing(index)) = table.find(fingerprint);
            table.oldest_from(index, count, stays, |state| state.charged_by_us(&self.limit))
        })
    }

    /// All keys.
    pub(super) fn fingerprints(&self) -> Vec<u64> {
        with_table!(&self.table, table => table.iter().map(|(fingerprint, _)| fingerprint).collect())
    }

    /// Goes on under another limit of the same geometry.
    pub(super) fn change_limit(&mut self, limit: Limit, now_us: u64) {
        self.limit = limit;
        if let AnyTable::Gcra(table) = &mut self.table {
            for state in table.states_mut() {
                *state = state.rescaled(&limit, now_us);
            }
        }
    }

    /// Bytes of the arrays, without what states have on the heap.
    pub(super) fn array_bytes(&self) -> usize {
        with_table!(&self.table, table => table.bytes())
    }

    /// Bytes of the states on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        with_table!(&self.table, table => {
            table.iter().map(|(_, state)| rounded(state.heap_bytes())).sum()
        })
    }
}

/// The state of a key that was never seen.
fn fresh_of<S: Window>(_table: &Table<S>) -> S {
    S::default()
}

/// Allocators hand out multiples of 16 bytes.
fn rounded(heap_bytes: usize) -> usize {
    heap_bytes.next_multiple_of(16)
}

#[inline(never)]
fn ready<S: Window>(table: &mut Table<S>, limit: &Limit, room: Room<'_>, hit: Hit<'_>) -> Ready {
    let (index, fresh) = match table.find(hit.fingerprint) {
        Found::At(index) => (index, false),
        Found::Missing(_) => match insert(table, limit, room, hit.fingerprint, true) {
            Ok(index) => (index, true),
            Err(StoreError::Full { .. }) => return Ready { index: NOWHERE, set_aside: 0 },
        },
    };
    let set_aside = rounded(table.state_at(index).growth_bytes_max(hit.limit, hit.cost));
    if room.budget.take(set_aside).is_err() {
        if fresh {
            table.remove(hit.fingerprint);
        }
        return Ready { index: NOWHERE, set_aside: 0 };
    }
    Ready { index, set_aside }
}

// One function per algorithm, which cannot fail and writes the answer where it belongs: one for all of them,
// or one that hands on parts of the answer, spends more time on moving values than on deciding.
#[inline(never)]
fn check<'a, S: Window, E>(
    table: &mut Table<S>,
    room: Room<'_>,
    ask: &Charge<'a>,
    hit: Hit<'a>,
    ready: Ready,
    issue: Issue<'_>,
) -> Result<Outcome<'a>, E> {
    let state = table.state_at(ready.index);
    let before = state.heap_bytes();
    let admitted = state.admit(hit.limit, hit.now_us, hit.cost);
    if before + ready.set_aside > 0 {
        room.budget.settle(rounded(before) + ready.set_aside, rounded(state.heap_bytes()));
    }
    match admitted {
        Ok((position, usage)) => {
            note(issue.noted_us, hit.now_us);
            *issue.order += 1;
            let standings = Few::One([Standing { order: *issue.order, position }]);
            let charge = ReceiptCharge::new(ask.rule, ask.key.as_str(), ask.cost, standings);
            let id = ReceiptId(issue.shard, *issue.order);
            Ok(Outcome {
                decision: Decision::one(Verdict::of_usage(ask.rule, hit.limit, usage)),
                receipt: Some(Receipt { id, store: issue.store, charges: Few::One([charge]) }),
            })
        }
        Err(ruling) => {
            let decision = Decision::one(Verdict::of_ruling(ask.rule, hit.limit, ruling));
            Ok(Outcome { decision, receipt: None })
        }
    }
}

#[inline]
fn charge<S: Window>(state: &mut S, budget: &Budget, hit: Hit<'_>, set_aside: usize) -> (Position, Usage) {
    let before = rounded(state.heap_bytes()) + set_aside;
    let position = state.charge(hit.limit, hit.now_us, hit.cost);
    budget.settle(before, rounded(state.heap_bytes()));
    (position, state.usage(hit.limit, hit.now_us))
}

/// Puts in a key that is not there; the table grows if it must and may.
fn insert<S: Window>(
    table: &mut Table<S>,
    limit: &Limit,
    room: Room<'_>,
    fingerprint: u64,
    drop_ended: bool,
) -> Result<usize, StoreError> {
    let mut drop_ended = drop_ended;
    loop {
        if let Ok(index) = table.insert(fingerprint, S::default()) {
            return Ok(index);
        }
        grow(table, limit, room, drop_ended)?;
        // Hardly ever it is the slots behind the last home that are missing still: then it has to grow.
        drop_ended = false;
    }
}

/// Makes room for one more key: by a larger array or, where the budget does not allow one, by dropping what
/// has ended among the next few slots.
#[cold]
fn grow<S: Window>(
    table: &mut Table<S>,
    limit: &Limit,
    room: Room<'_>,
    drop_ended: bool,
) -> Result<(), StoreError> {
    let gone = |state: &S| drop_ended && state.ends_us(limit) <= room.noted_us;
    // The old and the new array stand side by side for a moment. Whether they may is asked before the keys
    // are counted: a flood of new keys at the budget must not make every one of them walk the table.
    let (before, after) = (table.bytes(), Table::<S>::bytes_with(table.homes_next()));
    if let Err(full) = room.budget.take(after) {
        let mut dropped = 0;
        table.sweep(
            SWEPT_WHEN_FULL,
            |_, state| gone(state),
            |_, state| {
                dropped += 1;
                room.budget.give(rounded(state.heap_bytes()));
            },
        );
        return if dropped > 0 { Ok(()) } else { Err(full) };
    }
    let homes = table.homes_next_without(gone);
    table.rebuild(homes, gone, |state| room.budget.give(rounded(state.heap_bytes())));
    room.budget.settle(before + after, table.bytes());
    Ok(())
}
