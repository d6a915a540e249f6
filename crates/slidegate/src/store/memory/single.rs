//! The fast path: a single charge on a rule of one limit, by far the most common admission.

use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::Answer;
use super::lock::{Lock, Locks};
use super::shard::Shard;
use super::slot_hints::{SlotHint, prefetch};
use super::store::MemoryStore;
use super::table::any_part::{AnyPart, PartState};
use super::table::part::SlotIndex;
use super::table::room::{Room, insert, rounded};
use super::table::split_table::Table;
use crate::algorithm::{
    CompactLog, FixedWindow, Gcra, NarrowLog, Ruling, SlidingBuckets, SlidingCounter, SlidingLog, Usage,
    Window,
};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::receipt::{OrderedPosition, Position, ReceiptId, ReceiptStamp};
use crate::rule::{Algorithm, Limit, Rule};
use crate::time::{Clock, TIME_MAX_US};

/// One charge on one state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'a> {
    pub(super) fingerprint: u64,
    /// The limit of the charge's rule; of the table's geometry.
    pub(super) limit: &'a Limit,
    pub(super) now_us: u64,
    pub(super) cost: u64,
}

/// The position of an admitted charge, the usage with it, and its sequence number; or the denial.
type AdmitResult = Result<(Position, Usage, u64), Ruling>;

/// The watermark of time moves in steps of at least this.
const NOTED_STEP_US: u64 = 1_000;

/// Raises the watermark of time to the instant of a charge.
#[inline]
pub(super) fn note(noted_us: &AtomicU64, now_us: u64) {
    if now_us >= noted_us.load(Ordering::Relaxed) + NOTED_STEP_US {
        noted_us.fetch_max(now_us, Ordering::Relaxed);
    }
}

/// Decides, and charges if the cost passes. `None`, without any change, if there is no room.
#[expect(clippy::inline_always, reason = "the path of a single charge is one function, see `check_as`")]
#[inline(always)]
fn admit<'s, S: PartState>(
    table: &mut Table,
    room: impl Fn() -> Room<'s>,
    hit: Hit<'_>,
    last_order: &mut u64,
) -> Option<AdmitResult> {
    let (index, fresh) = match S::part_in(table.part_mut(hit.fingerprint))?.find(hit.fingerprint) {
        SlotIndex::Occupied(index) => (index, false),
        SlotIndex::Vacant(_) => (insert(table, hit.limit, room(), hit.fingerprint, true).ok()?, true),
    };
    let part = S::part_in(table.part_mut(hit.fingerprint)).expect("growing keeps the algorithm");
    let state = part.state_at(index);
    let (before, growth) = (state.heap_bytes(), state.growth_bytes_max(hit.limit, hit.now_us, hit.cost));
    if growth > 0 && room().budget.take(rounded(growth)).is_err() {
        if fresh {
            part.remove(hit.fingerprint);
        }
        return None;
    }
    let admitted = state.admit(hit.limit, hit.now_us, hit.cost);
    let heap_bytes = state.heap_bytes();
    if before + growth > 0 {
        room().budget.settle(rounded(before) + rounded(growth), rounded(heap_bytes));
    }
    if before == 0 && heap_bytes > 0 && part.count_outgrown() {
        table.part_mut(hit.fingerprint).refit(room().budget);
    }
    match admitted {
        Ok((position, usage)) => {
            *last_order += 1;
            Some(Ok((position, usage, *last_order)))
        }
        Err(ruling) => {
            // A new key is never denied, so no empty slot is left behind.
            Some(Err(ruling))
        }
    }
}

/// An algorithm and the tables that may hold its states.
trait TableAlgorithm {
    /// [`Window::admit_fast`] of a (fingerprint, limit, cost) whose key is in the table. `None`, without any change, in all other cases. If the
    /// slot was prefetched by a hint, corrects the hint; otherwise prefetches the slot. Then it calls
    /// `now_us`, whose result it returns too.
    fn admit_fast(
        table: &mut Table,
        prefetched: Option<&SlotHint>,
        charge: (u64, &Limit, u64),
        now_us: impl FnOnce() -> u64,
    ) -> (u64, Option<(Position, Usage)>);

    /// Decides, and charges if the cost passes. `None`, without any change, if there is no room or the table is of
    /// another algorithm.
    fn admit<'s>(
        table: &mut Table,
        room: impl Fn() -> Room<'s>,
        hit: Hit<'_>,
        last_order: &mut u64,
    ) -> Option<AdmitResult>;
}

macro_rules! table_algorithms {
    ($($algorithm:ident: $($state:ident)|+;)+) => {$(
        impl TableAlgorithm for $algorithm {
            #[inline(always)]
            fn admit_fast(
                table: &mut Table,
                prefetched: Option<&SlotHint>,
                (fingerprint, limit, cost): (u64, &Limit, u64),
                now_us: impl FnOnce() -> u64,
            ) -> (u64, Option<(Position, Usage)>) {
                match table.part_mut(fingerprint) {
                    $(AnyPart::$state(part) => {
                        match prefetched {
                            Some(hint) => hint.update(part.array()),
                            None => prefetch(part.home_address(fingerprint)),
                        }
                        let now_us = now_us();
                        let state = part.get_mut(fingerprint);
                        (now_us, state.and_then(|state| state.admit_fast(limit, now_us, cost)))
                    })+
                    _ => (now_us(), None),
                }
            }

            #[inline(always)]
            fn admit<'s>(
                table: &mut Table,
                room: impl Fn() -> Room<'s>,
                hit: Hit<'_>,
                last_order: &mut u64,
            ) -> Option<AdmitResult> {
                match table.part_mut(hit.fingerprint) {
                    $(AnyPart::$state(_) => admit::<$state>(table, room, hit, last_order),)+
                    _ => None,
                }
            }
        }
    )+};
}

table_algorithms! {
    SlidingLog: NarrowLog | SlidingLog;
    CompactLog: CompactLog;
    SlidingBuckets: SlidingBuckets;
    SlidingCounter: SlidingCounter;
    FixedWindow: FixedWindow;
    Gcra: Gcra;
}

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    /// Decides on a single charge by the fingerprint of its key, at `instant_us` or, if it is `None`, now. `prefetched`
    /// is the hint by which its slot was prefetched.
    #[inline]
    pub(super) fn check_single<'a, A: Answer<'a>>(
        &self,
        instant_us: Option<u64>,
        ask: &Charge<'a>,
        fingerprint: u64,
        prefetched: Option<&SlotHint>,
        answer: A,
    ) -> A::Output {
        match ask.rule.algorithm() {
            Algorithm::SlidingLog => {
                self.check_as::<SlidingLog, A>(instant_us, ask, fingerprint, prefetched, answer)
            }
            Algorithm::CompactLog(_) => {
                self.check_as::<CompactLog, A>(instant_us, ask, fingerprint, prefetched, answer)
            }
            Algorithm::SlidingBuckets(..) => {
                self.check_as::<SlidingBuckets, A>(instant_us, ask, fingerprint, prefetched, answer)
            }
            Algorithm::SlidingCounter => {
                self.check_as::<SlidingCounter, A>(instant_us, ask, fingerprint, prefetched, answer)
            }
            Algorithm::FixedWindow => {
                self.check_as::<FixedWindow, A>(instant_us, ask, fingerprint, prefetched, answer)
            }
            Algorithm::Gcra => self.check_as::<Gcra, A>(instant_us, ask, fingerprint, prefetched, answer),
        }
    }

    /// The path of nearly all admissions in one function per algorithm, which writes the answer where it belongs:
    /// passing parts on would take longer than deciding. The sooner a decision is done, the sooner the
    /// processor starts the cache misses of the next.
    ///
    /// The clock is read last, after the slot is prefetched. On some processors reading the tick counter waits for all
    /// earlier loads, so the cache miss of the slot would begin only after it; a prefetch is not waited for.
    #[inline(never)]
    fn check_as<'a, S: TableAlgorithm, A: Answer<'a>>(
        &self,
        instant_us: Option<u64>,
        ask: &Charge<'a>,
        fingerprint: u64,
        prefetched: Option<&SlotHint>,
        answer: A,
    ) -> A::Output {
        let [limit] = ask.rule.limits() else { return self.check_slowly(instant_us, ask, answer) };
        if ask.cost > limit.units() {
            // Only a shadow rule is asked for a cost that can never pass.
            return self.check_slowly(instant_us, ask, answer);
        }
        let number = self.shard_of(fingerprint);
        let mut shard = self.lock_shard(number);
        let Some((table, last_order)) = shard.only_table(ask.rule) else {
            drop(shard);
            return self.check_slowly(instant_us, ask, answer);
        };
        let now_us = || self.now_us(instant_us);
        let (now_us, admitted) = S::admit_fast(table, prefetched, (fingerprint, limit, ask.cost), now_us);
        let Some((position, usage)) = admitted else {
            let hit = Hit { fingerprint, limit, now_us, cost: ask.cost };
            return self.check_locked::<S, A>(shard, hit, ask, answer);
        };
        *last_order += 1;
        let order = *last_order;
        self.unlock(shard);
        answer.decided(|| self.charged(ask, number, order, now_us, position, usage))
    }

    /// The same for all other charges of a rule with one limit.
    #[inline(never)]
    fn check_locked<'a, S: TableAlgorithm, A: Answer<'a>>(
        &self,
        mut shard: <L::Of<Shard> as Lock<Shard>>::Guard<'_>,
        hit: Hit<'_>,
        ask: &Charge<'a>,
        answer: A,
    ) -> A::Output {
        let table = shard.only_table(ask.rule);
        let room = || self.room().of_rule(Rule::is_inline_name(ask.rule.name()));
        let admitted = table.and_then(|(table, last_order)| S::admit(table, room, hit, last_order));
        self.unlock(shard);
        match admitted {
            Some(Ok((position, usage, order))) => {
                let number = self.shard_of(hit.fingerprint);
                answer.decided(|| self.charged(ask, number, order, hit.now_us, position, usage))
            }
            Some(Err(Ruling { usage, retry_after_us })) => {
                answer.decided(|| Decision::denied(ask, usage.used, retry_after_us, usage.reset_after_us))
            }
            None => self.check_slowly(Some(hit.now_us), ask, answer),
        }
    }

    /// Unlocks a shard, and sweeps if it is time: after the decision, so that a decision does not depend on whether its
    /// call sweeps.
    #[inline]
    fn unlock(&self, mut shard: <L::Of<Shard> as Lock<Shard>>::Guard<'_>) {
        let sweep_is_due = shard.sweep_is_due();
        drop(shard);
        if sweep_is_due {
            self.sweep_some();
        }
    }

    /// The decision on a charge that was made.
    #[inline]
    fn charged<'a>(
        &self,
        ask: &Charge<'a>,
        shard: usize,
        order: u64,
        now_us: u64,
        position: Position,
        usage: Usage,
    ) -> Decision<'a> {
        note(&self.noted_us, now_us);
        let stamp = ReceiptStamp { id: receipt_id(shard as u64, order), store: self.id };
        let position = OrderedPosition { order, position };
        Decision::charged(ask, usage.used, usage.reset_after_us, stamp, position)
    }

    /// The slow path, for a charge on several limits, a shadow rule or a full table.
    #[inline(never)]
    fn check_slowly<'a, A: Answer<'a>>(
        &self,
        instant_us: Option<u64>,
        ask: &Charge<'a>,
        answer: A,
    ) -> A::Output {
        match self.check_all(self.now_us(instant_us), &Admission::of_checked(*ask)) {
            Ok(decision) => answer.decided(|| decision),
            Err(error) => answer.failed(error),
        }
    }

    /// The instant of a call: `instant_us` or, if it is `None`, now.
    #[inline]
    pub(super) fn now_us(&self, instant_us: Option<u64>) -> u64 {
        let now_us = instant_us.unwrap_or_else(|| self.clock().now_us());
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        now_us
    }
}

/// The id of a receipt from the shard and its sequence number, which is per shard. At ten million admissions a second a
/// shard needs fourteen years for 52 bits.
#[inline]
pub(super) fn receipt_id(shard: u64, order: u64) -> ReceiptId {
    ReceiptId::new(shard << 52 ^ order)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::store::memory::budget::Budget;

    /// Waiting for the end of a sweep would move most logs to the heap and back.
    #[test]
    fn a_part_gets_wide_slots_when_many_logs_outgrow_narrow_ones() {
        let limit = Limit::of("100/1h", Algorithm::SlidingLog);
        let (budget, swept) = (Budget::new(1 << 20), AtomicU64::new(0));
        let room =
            || Room { budget: &budget, inline_budget: &budget, noted_us: 0, spared: &[], swept: &swept };
        let mut table = Table::new(Algorithm::SlidingLog);
        let mut order = 0;
        for request in 1..=10_u64 {
            for key in 1..=1_000_u64 {
                let hit = Hit { fingerprint: key << 54, limit: &limit, now_us: request * 1_000, cost: 1 };
                let admitted = <SlidingLog as TableAlgorithm>::admit(&mut table, room, hit, &mut order);
                let (_, usage, _) = admitted.unwrap().unwrap();
                assert_eq!(usage.used, request);
            }
            let wide = matches!(table.part(0), AnyPart::SlidingLog(_));
            assert_eq!(wide, request > 5, "after {request} requests of every key");
        }
        assert_eq!(budget.taken(), table.bytes() as u64, "nothing is on the heap");
    }
}
