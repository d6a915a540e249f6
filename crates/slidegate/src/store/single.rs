//! A charge that comes alone, on a rule of one limit: by far the most common admission.

use std::sync::atomic::{AtomicU64, Ordering};

use super::outcome::Outcome;
use super::placing::{Room, insert, rounded};
use super::table::{Found, Table};
use crate::algorithm::Window;
use crate::charge::Charge;
use crate::decision::{Decision, Verdict};
use crate::few::Few;
use crate::receipt::{Receipt, ReceiptCharge, ReceiptId, Standing};
use crate::rule::Limit;

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
#[inline]
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
#[inline]
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
