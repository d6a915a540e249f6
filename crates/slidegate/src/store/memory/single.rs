//! A charge that comes alone, on a rule of one limit: by far the most common admission.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::Locks;
use super::store::MemoryStore;
use super::table::any_table::AnyTable;
use super::table::part::SlotIndex;
use super::table::room::{Room, insert, rounded};
use super::table::split_table::Table;
use crate::algorithm::{
    CompactLog, FixedWindow, Gcra, Ruling, SlidingBuckets, SlidingCounter, SlidingLog, Usage, Window,
};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::error::StoreError;
use crate::receipt::{OrderedPosition, Position, ReceiptId, ReceiptStamp};
use crate::rule::{Algorithm, Limit};
use crate::time::{Clock, TIME_MAX_US};

/// One charge on one state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'a> {
    pub(super) fingerprint: u64,
    /// As the rule that is asked has it; of the table's geometry.
    pub(super) limit: &'a Limit,
    pub(super) now_us: u64,
    pub(super) cost: u64,
}

/// What a state said to a charge: where it stands, what is used with it, and its order; or why not.
type AdmitResult = Result<(Position, Usage, u64), Ruling>;

/// By how much time must have moved on until it is noted again.
const NOTED_STEP_US: u64 = 1_000;

/// Something was charged at `now_us`: time is at least so late.
#[inline]
pub(super) fn note(noted_us: &AtomicU64, now_us: u64) {
    if now_us >= noted_us.load(Ordering::Relaxed) + NOTED_STEP_US {
        noted_us.fetch_max(now_us, Ordering::Relaxed);
    }
}

/// Decides on a charge and makes it if it passes. `None` if there is no room, and then nothing was changed.
#[expect(clippy::inline_always, reason = "the way of a single charge is one function, see `check_as`")]
#[inline(always)]
fn admit<'s, S: Window>(
    table: &mut Table<S>,
    room: impl Fn() -> Room<'s>,
    hit: Hit<'_>,
    last_order: &mut u64,
) -> Option<AdmitResult> {
    let (index, fresh) = match table.part_mut(hit.fingerprint).find(hit.fingerprint) {
        SlotIndex::Occupied(index) => (index, false),
        SlotIndex::Vacant(_) => (insert(table, hit.limit, room(), hit.fingerprint, true).ok()?, true),
    };
    let state = table.part_mut(hit.fingerprint).state_at(index);
    let (before, growth) = (state.heap_bytes(), state.growth_bytes_max(hit.limit, hit.cost));
    if growth > 0 && room().budget.take(rounded(growth)).is_err() {
        if fresh {
            table.remove(hit.fingerprint);
        }
        return None;
    }
    let admitted = state.admit(hit.limit, hit.now_us, hit.cost);
    if before + growth > 0 {
        room().budget.settle(rounded(before) + rounded(growth), rounded(state.heap_bytes()));
    }
    match admitted {
        Ok((position, usage)) => {
            *last_order += 1;
            Some(Ok((position, usage, *last_order)))
        }
        Err(ruling) => {
            // A key that is new has nothing that could refuse it, so none is left behind here.
            Some(Err(ruling))
        }
    }
}

/// An algorithm, by the tables that its states may be in.
trait TableAlgorithm {
    /// Decides on a charge and makes it if it passes. `None` if there is no room or the table is of another
    /// algorithm, and then nothing was changed.
    fn admit<'s>(
        any: &mut AnyTable,
        room: impl Fn() -> Room<'s>,
        hit: Hit<'_>,
        last_order: &mut u64,
    ) -> Option<AdmitResult>;
}

macro_rules! table_algorithms {
    ($($algorithm:ident: $($table:ident)|+;)+) => {$(
        impl TableAlgorithm for $algorithm {
            #[inline(always)]
            fn admit<'s>(
                any: &mut AnyTable,
                room: impl Fn() -> Room<'s>,
                hit: Hit<'_>,
                last_order: &mut u64,
            ) -> Option<AdmitResult> {
                match any {
                    $(AnyTable::$table(table) => admit(table, room, hit, last_order),)+
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
    /// Decides on one charge, which is by far the most common admission, by the fingerprint of its key.
    #[inline]
    pub(super) fn check_single<'a, E: From<StoreError>>(
        &self,
        now_us: u64,
        ask: &Charge<'a>,
        fingerprint: u64,
    ) -> Result<Decision<'a>, E> {
        match ask.rule.algorithm() {
            Algorithm::SlidingLog => self.check_as::<SlidingLog, E>(now_us, ask, fingerprint),
            Algorithm::CompactLog(_) => self.check_as::<CompactLog, E>(now_us, ask, fingerprint),
            Algorithm::SlidingBuckets(..) => self.check_as::<SlidingBuckets, E>(now_us, ask, fingerprint),
            Algorithm::SlidingCounter => self.check_as::<SlidingCounter, E>(now_us, ask, fingerprint),
            Algorithm::FixedWindow => self.check_as::<FixedWindow, E>(now_us, ask, fingerprint),
            Algorithm::Gcra => self.check_as::<Gcra, E>(now_us, ask, fingerprint),
        }
    }

    /// The whole way of a single charge in one function per algorithm, which writes the answer where the
    /// caller wants it: handing parts of it on would take longer than deciding, and a processor that is
    /// through with one decision early begins to wait early for the memory of the next.
    #[inline(never)]
    fn check_as<'a, S: TableAlgorithm, E: From<StoreError>>(
        &self,
        now_us: u64,
        ask: &Charge<'a>,
        fingerprint: u64,
    ) -> Result<Decision<'a>, E> {
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        let [limit] = ask.rule.limits() else { return self.check_slowly(now_us, ask) };
        if ask.cost > limit.units() {
            // Only a shadow rule is asked for what it can never admit.
            return self.check_slowly(now_us, ask);
        }
        let hit = Hit { fingerprint, limit, now_us, cost: ask.cost };
        let number = self.shard_of(hit.fingerprint);
        let mut shard = self.lock_shard(number);
        let table = shard.only_table(ask.rule, limit);
        let answer = table.and_then(|(table, last_order)| S::admit(table, || self.room(), hit, last_order));
        let sweep_is_due = shard.sweep_is_due();
        drop(shard);
        // After the decision: what a key is told depends on what was forgotten before, not on whose turn it is.
        if sweep_is_due {
            self.sweep_some();
        }
        match answer {
            Some(Ok((position, usage, order))) => {
                note(&self.noted_us, now_us);
                let stamp = ReceiptStamp { id: receipt_id(number as u64, order), store: self.id };
                let position = OrderedPosition { order, position };
                Ok(Decision::charged(ask, usage.used, usage.reset_after_us, stamp, position))
            }
            Some(Err(Ruling { usage, retry_after_us })) => {
                Ok(Decision::denied(ask, usage.used, retry_after_us, usage.reset_after_us))
            }
            None => self.check_slowly(now_us, ask),
        }
    }

    /// A charge that is not simple, or does not fit.
    #[inline(never)]
    fn check_slowly<'a, E: From<StoreError>>(
        &self,
        now_us: u64,
        ask: &Charge<'a>,
    ) -> Result<Decision<'a>, E> {
        Ok(self.check_all(now_us, &Admission::of_checked(*ask))?)
    }
}

/// Orders are handed out per shard, so the two together name a charge. A shard would have to admit ten million a
/// second for fourteen years until an order needs more than 52 bits.
#[inline]
pub(super) fn receipt_id(shard: u64, order: u64) -> ReceiptId {
    ReceiptId::new(shard << 52 ^ order)
}
