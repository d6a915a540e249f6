//! The trait that the model of each algorithm implements.

use std::fmt::Debug;

use super::amount::Amount;
use super::compact_log::CompactLog;
use super::fixed_window::FixedWindow;
use super::gcra::Gcra;
use super::limit_model::ModelPlace;
use super::sliding_buckets::SlidingBuckets;
use super::sliding_counter::SlidingCounter;
use super::sliding_log::SlidingLog;
use crate::rule::{Algorithm, Limit};

/// The charges of one limit for one key, and how one algorithm counts them.
///
/// [`super::LimitModel`] passes only instants at or after [`AlgorithmModel::remembers_us`].
pub(super) trait AlgorithmModel: Debug + Send + Sync {
    /// A copy.
    fn duplicate(&self) -> Box<dyn AlgorithmModel>;

    /// The instant past which time does not run backwards.
    fn remembers_us(&self, limit: &Limit) -> u128;

    /// The latest possible instant of the last charge.
    fn charged_by_us(&self, limit: &Limit) -> u128 {
        self.remembers_us(limit)
    }

    /// How much is in use at `at_us`.
    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount;

    /// Charges; returns the position of the charge.
    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128;

    /// Takes back up to `units` of the charge at `place`; returns how many.
    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128;

    /// Takes back use of up to `units`, oldest first. `units` is at least 1 and at most what is used,
    /// rounded up.
    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128);

    /// Changes the limit at `at_us`; the geometry is the same.
    fn change(&mut self, limit: &Limit, at_us: u128);

    /// A new state in which what is in use at `from_us` is one charge at `to_us`, with the position of that charge.
    fn set_back(&self, limit: &Limit, from_us: u128, to_us: u128) -> (Box<dyn AlgorithmModel>, u128) {
        let mut fresh = new_state(limit);
        let used = self.in_use(limit, from_us).rounded_up();
        let at = if used == 0 { 0 } else { fresh.charge(limit, to_us, used.into()) };
        (fresh, at)
    }

    /// Units that were given back so far; needed by `gcra` only.
    fn given_back(&self) -> u128 {
        0
    }
}

/// The model of a new key.
pub(super) fn new_state(limit: &Limit) -> Box<dyn AlgorithmModel> {
    match limit.algorithm() {
        Algorithm::SlidingLog => Box::new(SlidingLog::default()),
        Algorithm::CompactLog(_) => Box::new(CompactLog::default()),
        Algorithm::SlidingBuckets(..) => Box::new(SlidingBuckets::default()),
        Algorithm::SlidingCounter => Box::new(SlidingCounter::default()),
        Algorithm::FixedWindow => Box::new(FixedWindow::default()),
        Algorithm::Gcra => Box::new(Gcra::default()),
    }
}
