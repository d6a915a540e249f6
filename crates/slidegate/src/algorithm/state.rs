//! The state of any algorithm.

use super::window::{Ruling, USED_MAX, Usage, Window};
use super::{CompactLog, FixedWindow, Gcra, SlidingBuckets, SlidingCounter, SlidingLog};
use crate::receipt::{ChargePlace, Receipt, ReceiptCharge};
use crate::rule::{Algorithm, Limit};

/// The state of one limit for one key, together with the limit of its last change: its geometry.
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
    pub(crate) limit: Limit,
    pub(crate) window: AnyWindow,
}

/// The state of any algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyWindow {
    SlidingLog(SlidingLog),
    CompactLog(CompactLog),
    SlidingBuckets(SlidingBuckets),
    SlidingCounter(SlidingCounter),
    FixedWindow(FixedWindow),
    Gcra(Gcra),
}

/// Runs the same expression on the state of any algorithm.
macro_rules! with_window {
    ($any:expr, $window:ident => $result:expr) => {
        match $any {
            AnyWindow::SlidingLog($window) => $result,
            AnyWindow::CompactLog($window) => $result,
            AnyWindow::SlidingBuckets($window) => $result,
            AnyWindow::SlidingCounter($window) => $result,
            AnyWindow::FixedWindow($window) => $result,
            AnyWindow::Gcra($window) => $result,
        }
    };
}

impl State {
    /// The state of a key that was never seen.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let window = match limit.algorithm() {
            Algorithm::SlidingLog => AnyWindow::SlidingLog(SlidingLog::default()),
            Algorithm::CompactLog(_) => AnyWindow::CompactLog(CompactLog::default()),
            Algorithm::SlidingBuckets(..) => AnyWindow::SlidingBuckets(SlidingBuckets::default()),
            Algorithm::SlidingCounter => AnyWindow::SlidingCounter(SlidingCounter::default()),
            Algorithm::FixedWindow => AnyWindow::FixedWindow(FixedWindow::default()),
            Algorithm::Gcra => AnyWindow::Gcra(Gcra::default()),
        };
        Self { limit, window }
    }

    /// The limit at its last change.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// The latest possible instant of the last charge.
    #[must_use]
    pub fn charged_by_us(&self) -> u64 {
        with_window!(&self.window, window => window.charged_by_us(&self.limit))
    }

    /// The instant from which no charge counts and no receipt could give anything back: the state may be dropped then.
    /// For a state without any charge: 0 or, of `fixed-window` and `sliding-counter`, the end of the windows that begin in
    /// 1970.
    #[must_use]
    pub fn ends_us(&self) -> u64 {
        with_window!(&self.window, window => window.ends_us(&self.limit))
    }

    /// Decides whether `cost` units, 1 to the limit, pass at `now_us`. `limit` may differ from the
    /// state's own as far as [`Limit::keeps_state_of`] allows.
    #[must_use]
    pub fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        assert!(limit.keeps_state_of(&self.limit), "another geometry needs another state");
        assert!((1..=limit.units()).contains(&cost), "a cost outside 1 to the limit can never pass");
        with_window!(&self.window, window => window.decide(limit, now_us, cost))
    }

    /// What is in use at `now_us`.
    #[must_use]
    pub fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        with_window!(&self.window, window => window.usage(limit, now_us))
    }

    /// Charges `cost` units, 1 to the limit, at `now_us`; returns the place of the charge.
    pub fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> ChargePlace {
        assert!(limit.keeps_state_of(&self.limit), "another geometry needs another state");
        self.limit = *limit;
        let position = with_window!(&mut self.window, window => window.charge(limit, now_us, cost));
        // Only a store has an order of charges.
        ChargePlace { limit: *limit, order: 0, position }
    }

    /// Charges `units` that may be far above the limit, as settlements and changed rules do. Units beyond
    /// [`USED_MAX`] are not counted.
    pub fn charge_excess(&mut self, limit: &Limit, now_us: u64, units: u64) {
        self.limit = *limit;
        with_window!(&mut self.window, window => charge_excess(window, limit, now_us, units));
    }

    /// Takes back up to `units` of the charge at `place`; returns how many. A charge of another geometry is not in this
    /// state: 0.
    pub fn refund(&mut self, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        if !self.limit.keeps_state_of(&place.limit) {
            return 0;
        }
        with_window!(&mut self.window, window => window.refund(&self.limit, now_us, place, units))
    }

    /// Takes back up to `units` from the oldest live charges first; returns by how much `used` fell.
    pub fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        self.limit = *limit;
        with_window!(&mut self.window, window => window.credit(limit, now_us, units))
    }

    /// The same state under a changed limit, of the same geometry.
    #[must_use]
    pub fn changed(self, limit: &Limit, now_us: u64) -> Self {
        assert!(limit.keeps_state_of(&self.limit), "another geometry needs another state");
        let window = match self.window {
            AnyWindow::Gcra(gcra) => AnyWindow::Gcra(gcra.rescaled(limit, now_us)),
            window => window,
        };
        Self { limit: *limit, window }
    }

    /// A new state that begins with `used` units as one charge at `now_us`.
    #[must_use]
    pub fn seeded(limit: Limit, now_us: u64, used: u64) -> Self {
        let mut state = Self::new(limit);
        state.charge_excess(&limit, now_us, used);
        state
    }

    /// The state after its clock was set back from `from_us` to `to_us`. If it was charged later than `to_us`, what it used
    /// at `from_us` counts as one charge at `to_us`.
    #[must_use]
    pub(crate) fn set_back(self, from_us: u64, to_us: u64) -> Self {
        let Self { limit, window } = &self;
        // Of windows and buckets only the number is known, so it is compared with that of a charge at `to_us`.
        if self.charged_by_us() <= Self::seeded(*limit, to_us, 1).charged_by_us() {
            return self;
        }
        match window {
            AnyWindow::Gcra(gcra) => {
                Self { limit: *limit, window: AnyWindow::Gcra(gcra.set_back(from_us, to_us)) }
            }
            _ => Self::seeded(*limit, to_us, self.usage(limit, from_us).used),
        }
    }

    /// The instant, in microseconds since 1970, from which a charge at `place` no longer counts.
    #[must_use]
    pub fn expires_us(place: &ChargePlace) -> u64 {
        fn by_algorithm_of<W: Window>(_: &W, place: &ChargePlace) -> u64 {
            W::expires_us(&place.limit, place.position)
        }
        with_window!(&Self::new(place.limit).window, window => by_algorithm_of(window, place))
    }

    /// The instant, in microseconds since 1970, from which none of a receipt's charges counts any more.
    #[must_use]
    pub fn receipt_expires_us(receipt: &Receipt) -> u64 {
        let places = receipt.charges().iter().flat_map(ReceiptCharge::places);
        places.map(Self::expires_us).max().unwrap_or(0)
    }
}

/// Charges `units`, at most as many as keep `used` within [`USED_MAX`].
pub(crate) fn charge_excess<W: Window>(window: &mut W, limit: &Limit, now_us: u64, units: u64) {
    let units = units.min(USED_MAX - window.usage(limit, now_us).used.min(USED_MAX));
    if units > 0 {
        window.charge(limit, now_us, units);
    }
}
