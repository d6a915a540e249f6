//! The trait that every algorithm implements.

use crate::receipt::{ChargePlace, Position};
use crate::rule::Limit;

/// Most units that a state counts as used: more than five hundred times the largest limit. Only repeated
/// settlements far above the limit could reach it, and they saturate here.
pub const USED_MAX: u64 = (1 << 49) - 1;

/// How much of a limit is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Units in use, rounded up.
    pub used: u64,
    /// Microseconds until nothing is used.
    pub reset_after_us: u64,
}

/// An algorithm's decision on a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// What is in use now, this cost not included.
    pub usage: Usage,
    /// 0 if the cost passes now; otherwise microseconds until it does if nobody else spends. One
    /// microsecond earlier it does not.
    pub retry_after_us: u64,
}

impl Ruling {
    /// Whether the cost passes now.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.retry_after_us == 0
    }
}

/// The state of one limit for one key, and the algorithm that keeps it. `Default` is the state of a
/// key that was never seen.
///
/// Deciding borrows the state, charging changes it: a denial cannot leave a trace.
pub trait Window: Clone + std::fmt::Debug + Default + Eq + Send + 'static {
    /// Decides whether `cost` units pass at `now_us`. `cost` is at least 1 and at most the limit.
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling;

    /// What is in use at `now_us`.
    fn usage(&self, limit: &Limit, now_us: u64) -> Usage;

    /// Charges `cost` units at `now_us`, whether or not they pass; returns the position of the charge. With
    /// them, at most [`USED_MAX`] are used.
    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position;

    /// Decides and, if `cost` passes, charges it: [`Window::decide`], [`Window::charge`] and [`Window::usage`] in
    /// one call.
    #[inline]
    fn admit(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Result<(Position, Usage), Ruling> {
        let ruling = self.decide(limit, now_us, cost);
        if !ruling.allowed() {
            return Err(ruling);
        }
        let position = self.charge(limit, now_us, cost);
        Ok((position, self.usage(limit, now_us)))
    }

    /// Takes back up to `units` of the charge at `place`: at most the units there that still count.
    /// Returns how many. `limit` is the present limit; the place has the limit at the time of the charge.
    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64;

    /// Takes back up to `units` from the oldest live charges first. Returns by how much [`Usage::used`] fell.
    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64;

    /// The instant, in microseconds since 1970, from which a charge at `position` no longer counts.
    fn expires_us(limit: &Limit, position: Position) -> u64;

    /// The instant, in microseconds since 1970, from which no charge counts and no receipt could give anything back:
    /// the state may be dropped then. 0 for the state of a new key.
    fn ends_us(&self, limit: &Limit) -> u64;

    /// The latest possible instant of the last charge.
    fn charged_by_us(&self, limit: &Limit) -> u64;

    /// Bytes on the heap; 0 by default.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Most heap bytes by which a charge of `cost`, which passes, grows the state.
    #[inline]
    fn growth_bytes_max(&self, _limit: &Limit, _cost: u64) -> usize {
        0
    }
}
