//! A charge that comes alone, on a rule of one limit: by far the most common admission.

use std::sync::atomic::{AtomicU64, Ordering};

use super::any_table::Stored;
use super::error::OnFailure;
use super::lock::Locks;
use super::memory::MemoryStore;
use super::outcome::Outcome;
use super::placing::{Room, insert, rounded};
use super::table::{Found, Table};
use crate::algorithm::{CompactLog, FixedWindow, Gcra, SlidingBuckets, SlidingCounter, SlidingLog, Window};
use crate::charge::{Admission, Charge};
use crate::decision::{Decision, Verdict};
use crate::few::Few;
use crate::receipt::{Receipt, ReceiptCharge, ReceiptId, Standing};
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

/// Where a state stands, and what was set aside for its charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    index: usize,
    set_aside: usize,
}

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

/// Finds the place of a key, makes one if it has none, and sets aside what a charge may need on the heap;
/// `None` if there is no room, and nothing was changed.
#[expect(clippy::inline_always, reason = "the way of a single charge is one function, see `check_as`")]
#[inline(always)]
pub(super) fn ready<S: Window>(table: &mut Table<S>, room: Room<'_>, hit: Hit<'_>) -> Option<Ready> {
    let (index, fresh) = match table.find(hit.fingerprint) {
        Found::At(index) => (index, false),
        Found::Missing(_) => (insert(table, hit.limit, room, hit.fingerprint, true).ok()?, true),
    };
    let set_aside = rounded(table.state_at(index).growth_bytes_max(hit.limit, hit.cost));
    if room.budget.take(set_aside).is_err() {
        if fresh {
            table.remove(hit.fingerprint);
        }
        return None;
    }
    Some(Ready { index, set_aside })
}

/// Decides on a charge that comes alone, for which the state is ready, and makes it if it passes.
#[expect(clippy::inline_always, reason = "the way of a single charge is one function, see `check_as`")]
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "the caller returns it as it is, without moving it")]
pub(super) fn check<'a, S: Window, E>(
    table: &mut Table<S>,
    room: Room<'_>,
    ask: &Charge<'a>,
    hit: Hit<'a>,
    ready: Ready,
    issue: &mut Issue<'_>,
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

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    /// Decides on one charge, which is by far the most common admission.
    #[inline]
    pub(crate) fn check_alone<'a, F: OnFailure>(
        &self,
        now_us: u64,
        ask: &Charge<'a>,
    ) -> Result<Outcome<'a>, F::Error> {
        match ask.rule.algorithm() {
            Algorithm::SlidingLog => self.check_as::<SlidingLog, F>(now_us, ask),
            Algorithm::CompactLog(_) => self.check_as::<CompactLog, F>(now_us, ask),
            Algorithm::SlidingBuckets(..) => self.check_as::<SlidingBuckets, F>(now_us, ask),
            Algorithm::SlidingCounter => self.check_as::<SlidingCounter, F>(now_us, ask),
            Algorithm::FixedWindow => self.check_as::<FixedWindow, F>(now_us, ask),
            Algorithm::Gcra => self.check_as::<Gcra, F>(now_us, ask),
        }
    }

    /// The whole way of a single charge in one function per algorithm, which writes the answer where the
    /// caller wants it: handing parts of it on would take longer than deciding, and a processor that is
    /// through with one decision early begins to wait early for the memory of the next.
    #[inline(never)]
    fn check_as<'a, S: Stored, F: OnFailure>(
        &self,
        now_us: u64,
        ask: &Charge<'a>,
    ) -> Result<Outcome<'a>, F::Error> {
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        let [limit] = ask.rule.limits() else { return self.check_slowly::<F>(now_us, ask) };
        if ask.cost > limit.units() {
            // Only a shadow rule is asked for what it can never admit.
            return self.check_slowly::<F>(now_us, ask);
        }
        let hit = Hit { fingerprint: self.fingerprint(ask.key.as_str()), limit, now_us, cost: ask.cost };
        let number = self.shard_of(hit.fingerprint);
        let mut shard = self.lock_shard(number);
        if shard.sweep_is_due() {
            self.sweep_some(Some((number, &mut shard)));
        }
        if let Some((table, order)) = shard.only_table::<S>(ask.rule, limit) {
            let room = self.room();
            if let Some(ready) = ready(table, room, hit) {
                let noted_us = &self.noted_us;
                let mut issue = Issue { store: self.id, shard: number as u64, order, noted_us };
                return check(table, room, ask, hit, ready, &mut issue);
            }
        }
        drop(shard);
        self.check_slowly::<F>(now_us, ask)
    }

    /// A charge that is not simple, or does not fit.
    #[inline(never)]
    fn check_slowly<'a, F: OnFailure>(&self, now_us: u64, ask: &Charge<'a>) -> Result<Outcome<'a>, F::Error> {
        let admission = Admission::of_one(ask);
        self.check_all(now_us, &admission).or_else(|error| F::answer(&admission, error))
    }
}
