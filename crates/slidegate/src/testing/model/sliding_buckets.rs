//! Model of `sliding-buckets`: the time of a charge is known to the bucket only.
//!
//! Judges `algorithm/sliding_buckets.rs` and, in `slidegate-redis/scripts`, `sliding-buckets.lua` and
//! `fast-sliding-buckets.lua`: change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::charge_sums::ChargeSums;
use super::limit_model::ModelPlace;
use crate::rule::{Algorithm, Edge, Limit};

/// The units of every bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct SlidingBuckets {
    buckets: ChargeSums,
}

/// The weight of a bucket at `at_us` in microseconds: from 0 to its width, in full.
///
/// The window begins after `at_us - W`; instants are shifted by W so that none is negative.
fn counted_us(limit: &Limit, bucket: u128, at_us: u128) -> u128 {
    let Algorithm::SlidingBuckets(_, edge) = limit.algorithm() else {
        unreachable!("the limit keeps this state, so it has buckets")
    };
    let (window_us, width_us) = (u128::from(limit.window_us()), u128::from(limit.bucket_us()));
    let (first_us, last_us) = (bucket * width_us, (bucket + 1) * width_us - 1);
    let is_in_window = |instant_us: u128| instant_us + window_us > at_us;
    match edge {
        _ if first_us > at_us || !is_in_window(last_us) => 0,
        _ if is_in_window(first_us) => width_us,
        Edge::Full => width_us,
        Edge::Dropped => 0,
        Edge::Interpolated => width_us.min((bucket + 1) * width_us + window_us - at_us),
    }
}

impl AlgorithmModel for SlidingBuckets {
    fn duplicate(&self) -> Box<dyn AlgorithmModel> {
        Box::new(self.clone())
    }

    fn remembers_us(&self, limit: &Limit) -> u128 {
        self.buckets.newest_charged() * u128::from(limit.bucket_us())
    }

    fn charged_by_us(&self, limit: &Limit) -> u128 {
        (self.buckets.newest_charged() + 1) * u128::from(limit.bucket_us()) - 1
    }

    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount {
        let buckets = self.buckets.oldest_first().into_iter();
        let parts = buckets.map(|bucket| bucket.units * counted_us(limit, bucket.at, at_us)).sum();
        Amount::of_parts(parts, limit.bucket_us().into())
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        let bucket = at_us / u128::from(limit.bucket_us());
        self.buckets.add(bucket, cost);
        bucket
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        if counted_us(limit, place.at, at_us) > 0 { self.buckets.take(place.at, units) } else { 0 }
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        let mut rest_parts = units * u128::from(limit.bucket_us());
        for bucket in self.buckets.oldest_first() {
            let unit_parts = counted_us(limit, bucket.at, at_us);
            // A bucket that does not count has no parts to divide by.
            let Some(units_max) = rest_parts.checked_div(unit_parts) else {
                continue;
            };
            let taken = self.buckets.take(bucket.at, units_max);
            rest_parts -= taken * unit_parts;
            if taken < bucket.units {
                return;
            }
        }
    }

    fn change(&mut self, _limit: &Limit, _at_us: u128) {}
}

/// The instant from which the charge at `place` no longer counts.
pub(super) fn expires_us(place: &ModelPlace, edge: Edge) -> u128 {
    let (window_us, width_us) = (u128::from(place.limit.window_us()), u128::from(place.limit.bucket_us()));
    match edge {
        Edge::Full | Edge::Interpolated => (place.at + 1) * width_us - 1 + window_us,
        Edge::Dropped => place.at * width_us + window_us,
    }
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::LimitModel;
    use super::super::samples::{SECOND_US, limit};
    use crate::rule::{Algorithm, Buckets, Edge, Limit};

    /// A limit over one second in 10 buckets of 100 ms.
    fn ten_buckets(limit_units: u64, edge: Edge) -> Limit {
        limit(&format!("{limit_units}/1s"), Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), edge))
    }

    #[test]
    fn worked_example_6_the_web_firewall() {
        let limit = limit("2000/300s", Algorithm::SlidingBuckets(Buckets::new(60).unwrap(), Edge::Full));
        assert_eq!(limit.bucket_us(), 5 * SECOND_US);
        let start_us = 1_745_000_100 * SECOND_US;
        let mut model = LimitModel::new(limit);
        for index in 0..1_950 {
            let now_us = start_us + index * 150_000;
            assert!(model.decide(&limit, now_us, 1).allowed());
            model.charge(&limit, now_us, 1);
        }
        let mut passed = 0;
        for index in 0..100 {
            let now_us = start_us + 293 * SECOND_US + index * 10_000;
            if model.decide(&limit, now_us, 1).allowed() {
                model.charge(&limit, now_us, 1);
                passed += 1;
            }
        }
        assert_eq!(passed, 50);
    }

    #[test]
    fn the_edge_decides_what_a_bucket_partly_outside_counts() {
        // 8 units in bucket 10, instants 1,000,000 to 1,099,999; at 2,025,000 a quarter of it has left.
        for (edge, used, reset_us) in
            [(Edge::Full, 8, 2_099_999), (Edge::Interpolated, 6, 2_099_999), (Edge::Dropped, 0, 2_025_000)]
        {
            let limit = ten_buckets(8, edge);
            let mut model = LimitModel::new(limit);
            let place = model.charge(&limit, 1_050_000, 8);
            let usage = model.usage(&limit, 2_025_000);
            assert_eq!((usage.used, 2_025_000 + usage.reset_after_us), (used, reset_us), "{edge:?}");
            assert_eq!(model.usage(&limit, 1_999_999).used, 8);
            let reset_after_us = model.usage(&limit, 1_050_000).reset_after_us;
            assert_eq!(LimitModel::expires_us(&place), 1_050_000 + reset_after_us, "{edge:?}");
            let refunded = model.refund(2_025_000, &place, 3);
            assert_eq!(refunded, if used == 0 { 0 } else { 3 }, "{edge:?}");
        }
    }

    #[test]
    fn an_interpolated_wait_is_exact() {
        let limit = ten_buckets(8, Edge::Interpolated);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 1_050_000, 8);
        for (cost, at_us) in [(1, 2_012_500), (2, 2_025_000), (7, 2_087_500), (8, 2_099_999)] {
            assert_eq!(model.decide(&limit, 1_900_000, cost).retry_after_us, at_us - 1_900_000, "{cost}");
        }
        model.charge(&limit, 2_012_500, 1);
        assert_eq!(model.usage(&limit, 2_012_501).used, 8, "7 and a part");
    }

    #[test]
    fn a_credit_takes_whole_units_from_the_oldest_that_counts() {
        let limit = ten_buckets(20, Edge::Interpolated);
        let mut model = LimitModel::new(limit);
        let old = model.charge(&limit, 1_000_000, 5);
        let young = model.charge(&limit, 1_500_000, 4);
        // At 2,040,000 a unit of the old bucket counts 0.6: together 3 + 4 = 7.
        assert_eq!(model.usage(&limit, 2_040_000).used, 7);
        let mut little = model.clone();
        assert_eq!(little.credit(&limit, 2_040_000, 2), 1, "3 units of 0.6 leave 1.2 + 4");
        assert_eq!(little.refund(2_040_000, &old, 9), 2);
        assert_eq!(model.credit(&limit, 2_040_000, 5), 5, "all of the old and 2 of the young");
        assert_eq!(model.refund(2_040_000, &old, 9), 0);
        assert_eq!(model.refund(2_040_000, &young, 9), 2);
    }

    #[test]
    fn a_clock_that_is_set_back_stands_at_the_start_of_the_newest_bucket() {
        let limit = ten_buckets(8, Edge::Full);
        let mut model = LimitModel::new(limit);
        let newest = model.charge(&limit, 1_550_000, 1);
        assert_eq!(model.refund(1_560_000, &newest, 1), 1);
        assert_eq!(model.charge(&limit, 900_000, 2).at, 15, "kept although refunded");
        assert_eq!(model.usage(&limit, 900_000).reset_after_us, 2_599_999 - 900_000);
        let dropped = ten_buckets(8, Edge::Dropped);
        assert_eq!(model.usage(&dropped, 2_500_000).used, 0, "the limit that asks decides on the edge");
        assert_eq!(model.usage(&limit, 2_500_000).used, 2);
    }
}
