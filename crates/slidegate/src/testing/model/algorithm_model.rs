//! What the model of one algorithm must answer.

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

/// What was charged under one limit for one key, and how one algorithm counts it.
///
/// Every instant given is at or after [`AlgorithmModel::remembers_us`]: [`super::LimitModel`] sees to that.
pub(super) trait AlgorithmModel: Debug + Send + Sync {
    /// The same book once more.
    fn duplicate(&self) -> Box<dyn AlgorithmModel>;

    /// The instant behind which time does not run back.
    fn remembers_us(&self, limit: &Limit) -> u128;

    /// The latest instant at which the last charge may have been made, as far as is remembered.
    fn charged_by_us(&self, limit: &Limit) -> u128 {
        self.remembers_us(limit)
    }

    /// How much is in use at `at_us`.
    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount;

    /// Charges, and says where the charge stands.
    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128;

    /// Takes back up to `units` of the charge at `place`, and says how many.
    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128;

    /// Takes back use of up to `units`, oldest first. `units` is at least 1 and at most what is used,
    /// rounded up.
    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128);

    /// Goes on under `limit` from `at_us` on, which keeps this state.
    fn change(&mut self, limit: &Limit, at_us: u128);

    /// Units that were given back so far, where refunds need to know.
    fn given_back(&self) -> u128 {
        0
    }
}

/// The book of a key that was never seen.
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
