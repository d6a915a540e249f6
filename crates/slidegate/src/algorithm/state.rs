//! The state of any algorithm.

use super::window::{Ruling, USED_MAX, Usage, Window};
use super::{CompactLog, FixedWindow, Gcra, SlidingBuckets, SlidingCounter, SlidingLog};
use crate::receipt::Place;
use crate::rule::{Algorithm, Limit};

/// The state of one limit for one key, together with the limit it was last kept under: its geometry.
///
/// ```
/// use slidegate::algorithm::State;
/// use slidegate::rule::{Algorithm, Decimal, Limit};
///
/// let limit = Limit::new("1/10s".parse()?, Decimal::ZERO, Algorithm::SlidingLog);
/// let mut state = State::new(limit);
/// assert!(state.decide(&limit, 5_000_000, 1).allowed());
/// state.charge(&limit, 5_000_000, 1);
/// assert_eq!(state.decide(&limit, 6_000_000, 1).retry_after_us, 9_000_000);
/// # Ok::<(), slidegate::RateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    limit: Limit,
    kept: Kept,
    /// When a live change began it, if one did: what was charged until then does not stand here.
    begun_us: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    SlidingLog(SlidingLog),
    CompactLog(CompactLog),
    SlidingBuckets(SlidingBuckets),
    SlidingCounter(SlidingCounter),
    FixedWindow(FixedWindow),
    Gcra(Gcra),
}

/// Runs the same expression on the state of whichever algorithm.
macro_rules! with_window {
    ($kept:expr, $window:ident => $result:expr) => {
        match $kept {
            Kept::SlidingLog($window) => $result,
            Kept::CompactLog($window) => $result,
            Kept::SlidingBuckets($window) => $result,
            Kept::SlidingCounter($window) => $result,
            Kept::FixedWindow($window) => $result,
            Kept::Gcra($window) => $result,
        }
    };
}

impl State {
    /// The state of a key that was never seen.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let kept = match limit.algorithm() {
            Algorithm::SlidingLog => Kept::SlidingLog(SlidingLog::default()),
            Algorithm::CompactLog(_) => Kept::CompactLog(CompactLog::default()),
            Algorithm::SlidingBuckets(..) => Kept::SlidingBuckets(SlidingBuckets::default()),
            Algorithm::SlidingCounter => Kept::SlidingCounter(SlidingCounter::default()),
            Algorithm::FixedWindow => Kept::FixedWindow(FixedWindow::default()),
            Algorithm::Gcra => Kept::Gcra(Gcra::default()),
        };
        Self { limit, kept, begun_us: None }
    }

    /// The limit under which it was last kept.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Decides whether `cost` units, 1 to the limit, pass at `now_us`. `limit` may differ from the
    /// state's own as far as [`Limit::keeps_state_of`] allows.
    #[must_use]
    pub fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        debug_assert!(limit.keeps_state_of(&self.limit), "another geometry needs another state");
        debug_assert!((1..=limit.units()).contains(&cost), "a cost outside 1 to the limit is no question");
        with_window!(&self.kept, window => window.decide(limit, now_us, cost))
    }

    /// What is in use at `now_us`.
    #[must_use]
    pub fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        with_window!(&self.kept, window => window.usage(limit, now_us))
    }

    /// Charges `cost` units, 1 to the limit, at `now_us`, and says where they stand.
    pub fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Place {
        self.limit = *limit;
        let position = with_window!(&mut self.kept, window => window.charge(limit, now_us, cost));
        Place { limit: *limit, charged_us: now_us, position }
    }

    /// Charges `units` that may be far above the limit, as settlements and changed rules do; what would
    /// take the use above [`USED_MAX`] is not counted.
    pub fn charge_excess(&mut self, limit: &Limit, now_us: u64, units: u64) {
        let units = units.min(USED_MAX - self.usage(limit, now_us).used.min(USED_MAX));
        if units > 0 {
            self.charge(limit, now_us, units);
        }
    }

    /// Takes back up to `units` of the charge at `place`, and says how many. A charge made under
    /// another geometry, or before this state began with a live change, stands nowhere in it.
    pub fn refund(&mut self, now_us: u64, place: &Place, units: u64) -> u64 {
        let earlier = self.begun_us.is_some_and(|begun_us| place.charged_us <= begun_us);
        if earlier || !self.limit.keeps_state_of(&place.limit) {
            return 0;
        }
        with_window!(&mut self.kept, window => window.refund(&self.limit, now_us, place, units))
    }

    /// Takes back up to `units` from the oldest live charges first, and says by how much the use fell.
    pub fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        self.limit = *limit;
        with_window!(&mut self.kept, window => window.credit(limit, now_us, units))
    }

    /// The state under a changed limit: the same where the geometry is kept, otherwise a new one that
    /// begins with what was used as one charge at `now_us`.
    #[must_use]
    pub fn changed(self, limit: &Limit, now_us: u64) -> Self {
        if let (Kept::Gcra(gcra), true) = (&self.kept, limit.keeps_state_of(&self.limit)) {
            return Self { limit: *limit, kept: Kept::Gcra(gcra.rescaled(limit, now_us)), ..self };
        }
        if limit.keeps_state_of(&self.limit) {
            return Self { limit: *limit, ..self };
        }
        Self::seeded(*limit, now_us, self.usage(&self.limit, now_us).used)
    }

    /// A new state that begins at `now_us` with `used` units as one charge.
    #[must_use]
    pub fn seeded(limit: Limit, now_us: u64, used: u64) -> Self {
        let mut state = Self { begun_us: Some(now_us), ..Self::new(limit) };
        state.charge_excess(&limit, now_us, used);
        state
    }

    /// Bytes that it takes, on the heap included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + with_window!(&self.kept, window => window.heap_bytes())
    }

    /// The instant, in microseconds since 1970, from which a charge at `place` counts no more.
    #[must_use]
    pub fn expires_us(place: &Place) -> u64 {
        let expires_us = match place.limit.algorithm() {
            Algorithm::SlidingLog => SlidingLog::expires_us,
            Algorithm::CompactLog(_) => CompactLog::expires_us,
            Algorithm::SlidingBuckets(..) => SlidingBuckets::expires_us,
            Algorithm::SlidingCounter => SlidingCounter::expires_us,
            Algorithm::FixedWindow => FixedWindow::expires_us,
            Algorithm::Gcra => Gcra::expires_us,
        };
        expires_us(&place.limit, place.position)
    }
}
