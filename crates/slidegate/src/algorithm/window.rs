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

    /// [`Window::admit`] where most admissions are alike, in as few instructions as possible: the state was charged
    /// before, `cost` passes, and nothing on the heap changes. `None`, without any change, in all other cases.
    #[inline]
    fn admit_fast(&mut self, _limit: &Limit, _now_us: u64, _cost: u64) -> Option<(Position, Usage)> {
        None
    }

    /// Takes back up to `units` of the charge at `place`: at most the units there that still count.
    /// Returns how many. `limit` is the present limit; the place has the limit at the time of the charge.
    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64;

    /// Takes back up to `units` from the oldest live charges first. Returns by how much [`Usage::used`] fell.
    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64;

    /// The instant, in microseconds since 1970, from which a charge at `position` no longer counts.
    fn expires_us(limit: &Limit, position: Position) -> u64;

    /// The instant, in microseconds since 1970, from which no charge counts and no receipt could give anything back:
    /// the state may be dropped then. For a state without any charge: 0 or, of `fixed-window` and `sliding-counter`, the
    /// end of the windows that begin in 1970.
    fn ends_us(&self, limit: &Limit) -> u64;

    /// The latest possible instant of the last charge.
    fn charged_by_us(&self, limit: &Limit) -> u64;

    /// Bytes on the heap; 0 by default.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Most heap bytes by which a charge of `cost` at `now_us`, which passes, grows the state.
    #[inline]
    fn growth_bytes_max(&self, _limit: &Limit, _now_us: u64, _cost: u64) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{FixedWindow, Gcra, NarrowLog, SlidingCounter, SlidingLog};
    use crate::rule::Algorithm;
    use crate::testing::Rng;

    const RATES: [&str; 7] =
        ["1/1ms", "7/1s", "9/60s", "100/2h", "1000000/1h", "1000000000000/400d", "600000000000/1s"];

    /// Random traffic with credits and a clock that is sometimes set back, with costs and of single units. Returns how
    /// many admissions were fast.
    fn fast_admissions<S: Window>(algorithm: Algorithm) -> u64 {
        let mut fast = 0;
        for (seed, rate) in RATES.into_iter().chain(RATES).enumerate() {
            let limit = Limit::of(rate, algorithm);
            let (units, window_us) = (limit.units(), limit.window_us());
            let (mut rng, mut state, mut now_us) =
                (Rng::new(seed as u64), S::default(), 1_745_000_145_000_000);
            for step in 0..2_000 {
                now_us = match rng.below(40) {
                    0 => now_us - rng.below(window_us),
                    1 => now_us + rng.below(3 * window_us),
                    2 => (now_us / window_us + 1) * window_us - rng.below(2),
                    _ => now_us + rng.below(window_us / 20 + 2),
                };
                let costs = [1, 1, 1, units.div_ceil(10), units];
                let cost_max = if seed < RATES.len() { *rng.pick(&costs) } else { 1 };
                let cost = rng.between(1, cost_max);
                // As the sweep does.
                if state.ends_us(&limit) <= now_us {
                    state = S::default();
                }
                if rng.one_in(20) {
                    state.credit(&limit, now_us, cost);
                }
                let (mut quick, before) = (state.clone(), state.clone());
                let (answer, admitted) =
                    (quick.admit_fast(&limit, now_us, cost), state.admit(&limit, now_us, cost));
                let story = format!("{algorithm} {rate}, step {step} at {now_us}, cost {cost}: {before:?}");
                if let Some(answer) = answer {
                    fast += 1;
                    assert_eq!((Ok(answer), &quick), (admitted, &state), "{story}");
                    assert_eq!(quick.heap_bytes(), before.heap_bytes(), "{story}");
                } else {
                    assert_eq!(quick, before, "{story}");
                }
            }
        }
        fast
    }

    #[test]
    fn a_fast_admission_is_an_admission() {
        let fast = [
            fast_admissions::<SlidingCounter>(Algorithm::SlidingCounter),
            fast_admissions::<FixedWindow>(Algorithm::FixedWindow),
            fast_admissions::<Gcra>(Algorithm::Gcra),
            fast_admissions::<SlidingLog>(Algorithm::SlidingLog),
            fast_admissions::<NarrowLog>(Algorithm::SlidingLog),
        ];
        assert!(fast.iter().all(|&fast| fast > 2_000), "{fast:?}");
    }
}
