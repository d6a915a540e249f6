//! `sliding-buckets`: a ring of sub-buckets with a running sum.
//!
//! Also written in `slidegate-redis/scripts/sliding-buckets.lua`, `fast-sliding-buckets.lua` (Redis) and
//! `testing/model/sliding_buckets.rs` (the model): change all four.
//!
//! The window is cut into k buckets of `w = ceil(W / k)` microseconds, aligned to 1970. A bucket counts
//! while any part of it lies in `(now - W, now]`; one that is partly outside counts as the edge says.
//!
//! ```text
//!       now - W                                   now
//!   |......:....|...........|...........|..........:.|
//!    edge bucket   whole        whole      current
//!
//!   full          edge counted in full                     never over
//!   interpolated  edge x (share of it inside the window)   up to 2L-1
//!   dropped       edge not counted (the textbook ring)     up to 2L
//! ```
//!
//! **Bound.** *Full* counts a superset of the window: never over. It counts nothing older than W + w,
//! so it refuses only a cost that would not fit into W + w: early by what arrived in one bucket. In units of
//! the limit, **more buckets do not help the other two**: L at the end of a bucket, and L again (or what
//! the fading weight releases) when that bucket has become the edge, are less than W apart for every k.
//! More buckets only shorten the span by which the two bursts must straddle.
//!
//! **State.** One counter per bucket that a window can meet, of the narrowest width (1, 2, 4 or 8 bytes) that
//! holds the limit or a settlement above it, the number of the newest bucket and the sum.
//!
//! **Cost.** A decision looks only at buckets that expired since the last charge, at most the whole ring
//! once: a year idle costs the same as a second. Only a refusal walks the ring, to find its wait.
//!
//! **Weakness:** clients that burst once per window: with *full* each burst counts up to one bucket too long, so
//! that they get half their limit.

use std::ops::RangeInclusive;

use super::cells::Cells;
use super::wide::{narrow, product, quotient, share_rounded_up};
use super::window::{Ruling, Usage, Window};
use crate::receipt::{ChargePlace, Position};
use crate::rule::{Algorithm, Edge, Limit};

/// State of a `sliding-buckets` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlidingBuckets {
    /// Empty until the first charge.
    pub(super) cells: Cells,
    /// Number of the newest bucket that was charged.
    pub(super) newest: u64,
}

/// The buckets that count at one instant.
struct Span {
    /// The oldest bucket with a part in the window.
    edge: u64,
    /// Weight of the edge bucket, in microseconds of a bucket's width.
    edge_weight_us: u64,
}

impl SlidingBuckets {
    fn span(&self, limit: &Limit, now_us: u64) -> Span {
        let (window_us, bucket_us) = (limit.window_us(), limit.bucket_us());
        let now_us = now_us.max(self.newest * bucket_us);
        // The oldest instant inside the window is now - W + 1.
        let edge = (now_us + 1).saturating_sub(window_us) / bucket_us;
        let inside_us = ((edge + 1) * bucket_us + window_us - now_us).min(bucket_us);
        let partial = now_us >= edge * bucket_us + window_us;
        let edge_weight_us = match edge_of(limit) {
            Edge::Interpolated => inside_us,
            Edge::Dropped if partial => 0,
            Edge::Full | Edge::Dropped => bucket_us,
        };
        Span { edge, edge_weight_us }
    }

    /// Numbers of the buckets in the ring from `from` on.
    pub(super) fn numbers(&self, from: u64) -> RangeInclusive<u64> {
        from.max((self.newest + 1).saturating_sub(self.cells.len() as u64))..=self.newest
    }

    /// Units of bucket `number`, which is in the ring.
    pub(super) fn units(&self, number: u64) -> u64 {
        self.cells.get(self.index(number))
    }

    pub(super) fn index(&self, number: u64) -> usize {
        usize::try_from(number % self.cells.len() as u64).expect("an index into the ring")
    }

    /// The buckets `numbers`, which are in the ring, with their units. One division for all of them.
    fn buckets(&self, numbers: RangeInclusive<u64>) -> impl Iterator<Item = (u64, u64)> {
        let mut index = self.index(*numbers.start());
        numbers.map(move |number| {
            let units = self.cells.get(index);
            index = if index + 1 == self.cells.len() { 0 } else { index + 1 };
            (number, units)
        })
    }

    /// Units of buckets later than `edge`.
    fn sum_after(&self, edge: u64) -> u64 {
        if self.cells.is_empty() || edge >= self.newest {
            return 0;
        }
        let expired = self.buckets(*self.numbers(0).start()..=edge);
        self.cells.sum() - expired.map(|(_, units)| units).sum::<u64>()
    }

    /// Units of bucket `number`, 0 if it is not in the ring.
    fn units_if_held(&self, number: u64) -> u64 {
        let held = !self.cells.is_empty() && self.numbers(0).contains(&number);
        if held { self.units(number) } else { 0 }
    }

    /// The instant at which `cost` passes; it does not yet.
    fn passes_us(&self, limit: &Limit, span: &Span, cost: u64) -> u64 {
        let (window_us, bucket_us) = (limit.window_us(), limit.bucket_us());
        let room = limit.units() - cost;
        let mut later = self.units_if_held(span.edge) + self.sum_after(span.edge);
        for (number, units) in self.buckets(self.numbers(span.edge)) {
            later -= units;
            if later > room || units == 0 {
                continue;
            }
            let end_us = (number + 1) * bucket_us;
            return match edge_of(limit) {
                Edge::Full => end_us - 1 + window_us,
                Edge::Dropped => number * bucket_us + window_us,
                // The largest weight at which the bucket leaves enough room; at weight 1 it is outside.
                Edge::Interpolated => {
                    end_us + window_us - quotient(room - later, bucket_us, units).clamp(1, bucket_us)
                }
            };
        }
        unreachable!("a cost is at most the limit, so it passes when the ring is empty")
    }

    /// Makes bucket `number` the newest, and clears the buckets that leave the ring.
    fn advance(&mut self, number: u64) {
        if number <= self.newest {
            return;
        }
        let ring = self.cells.len() as u64;
        if number - self.newest >= ring {
            self.cells.clear();
        } else {
            for pushed in self.newest + 1..=number {
                self.cells.set(self.index(pushed), 0);
            }
        }
        self.newest = number;
    }

    fn lower(&mut self, number: u64, units: u64) {
        let index = self.index(number);
        self.cells.set(index, self.cells.get(index) - units);
    }
}

impl Window for SlidingBuckets {
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let usage = self.usage(limit, now_us);
        let retry_after_us = if usage.used + cost <= limit.units() {
            0
        } else {
            self.passes_us(limit, &self.span(limit, now_us), cost) - now_us
        };
        Ruling { usage, retry_after_us }
    }

    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let Span { edge, edge_weight_us } = self.span(limit, now_us);
        let edge_units = share_rounded_up(self.units_if_held(edge), edge_weight_us, limit.bucket_us());
        let used = self.sum_after(edge) + edge_units;
        if used == 0 {
            return Usage::default();
        }
        let last = self.numbers(edge).rev().find(|&number| self.units(number) > 0);
        let last = last.expect("something is used, so some bucket holds units");
        Usage { used, reset_after_us: leaves_us(limit, last) - now_us }
    }

    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        let number = now_us / limit.bucket_us();
        if self.cells.is_empty() {
            self.cells = Cells::zeros(ring_len(limit), limit.units().max(cost));
            self.newest = number;
        }
        self.advance(number);
        let index = self.index(self.newest);
        self.cells.set(index, self.cells.get(index) + cost);
        Position::At(self.newest)
    }

    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        let Some(number) = place.position.at() else { return 0 };
        let span = self.span(limit, now_us);
        let counts = number > span.edge || (number == span.edge && span.edge_weight_us > 0);
        let given = if counts { units.min(self.units_if_held(number)) } else { 0 };
        if given > 0 {
            self.lower(number, given);
        }
        given
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let used_before = self.usage(limit, now_us).used;
        if used_before == 0 {
            return 0;
        }
        let Span { edge, edge_weight_us } = self.span(limit, now_us);
        let bucket_us = limit.bucket_us();
        // In unit-microseconds, in which a unit of a whole bucket is worth the bucket's width.
        let mut rest = product(units.min(used_before), bucket_us);
        for number in self.numbers(edge) {
            let weight_us = if number == edge { edge_weight_us } else { bucket_us };
            if weight_us > 0 {
                let part = narrow(rest / u128::from(weight_us)).min(self.units(number));
                rest -= product(part, weight_us);
                self.lower(number, part);
                if self.units(number) > 0 {
                    break;
                }
            }
        }
        used_before - self.usage(limit, now_us).used
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        position.at().map_or(0, |number| leaves_us(limit, number))
    }

    /// As if the edge counted in full: no edge counts longer.
    fn ends_us(&self, limit: &Limit) -> u64 {
        if self.cells.is_empty() { 0 } else { (self.newest + 1) * limit.bucket_us() - 1 + limit.window_us() }
    }

    fn charged_by_us(&self, limit: &Limit) -> u64 {
        if self.cells.is_empty() { 0 } else { (self.newest + 1) * limit.bucket_us() - 1 }
    }

    fn heap_bytes(&self) -> usize {
        self.cells.heap_bytes()
    }

    fn growth_bytes_max(&self, limit: &Limit, _now_us: u64, cost: u64) -> usize {
        if self.cells.is_empty() {
            return Cells::bytes_for(ring_len(limit), limit.units().max(cost));
        }
        // A bucket holds at most what the ring holds.
        self.cells.widening_bytes(self.cells.sum() + cost)
    }
}

fn edge_of(limit: &Limit) -> Edge {
    match limit.algorithm() {
        Algorithm::SlidingBuckets(_, edge) => edge,
        _ => Edge::Full,
    }
}

/// The first instant at which a bucket counts no more.
fn leaves_us(limit: &Limit, number: u64) -> u64 {
    let start_us = number * limit.bucket_us() + limit.window_us();
    match edge_of(limit) {
        Edge::Full | Edge::Interpolated => start_us + limit.bucket_us() - 1,
        Edge::Dropped => start_us,
    }
}

/// The most buckets that one window meets: where the width does not divide it, fewer than k + 1.
pub(super) fn ring_len(limit: &Limit) -> usize {
    let len = (limit.window_us() - 2) / limit.bucket_us() + 2;
    usize::try_from(len).expect("at most 4,097 buckets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Buckets;

    fn limit(rate: &str, buckets: u64, edge: Edge) -> Limit {
        Limit::of(rate, Algorithm::SlidingBuckets(Buckets::new(buckets).unwrap(), edge))
    }

    /// 100 units in bucket 5 of 1 s, seen 10.3 s after that bucket began.
    #[test]
    fn the_edge_bucket_counts_as_the_edge_says() {
        for (edge, used) in [(Edge::Full, 100), (Edge::Interpolated, 70), (Edge::Dropped, 0)] {
            let limit = limit("100/10s", 10, edge);
            let mut state = SlidingBuckets::default();
            state.charge(&limit, 5_999_999, 100);
            assert_eq!(state.usage(&limit, 14_999_999).used, 100, "{edge:?}: wholly inside");
            assert_eq!(state.usage(&limit, 15_300_000).used, used, "{edge:?}: partly outside");
            assert_eq!(state.usage(&limit, 15_999_999).used, 0, "{edge:?}: outside");
        }
    }

    #[test]
    fn waits_end_when_the_edge_bucket_leaves() {
        for (edge, passes_us) in
            [(Edge::Full, 15_999_999), (Edge::Interpolated, 15_250_000), (Edge::Dropped, 15_000_000)]
        {
            let limit = limit("100/10s", 10, edge);
            let mut state = SlidingBuckets::default();
            state.charge(&limit, 5_000_000, 100);
            assert_eq!(6_000_000 + state.decide(&limit, 6_000_000, 25).retry_after_us, passes_us, "{edge:?}");
        }
    }

    #[test]
    fn a_ring_has_as_many_cells_as_a_window_can_meet() {
        let bytes = |rate: &str, buckets: u64| {
            let limit = limit(rate, buckets, Edge::Full);
            let mut state = SlidingBuckets::default();
            state.charge(&limit, 1_000_000, 1);
            state.heap_bytes()
        };
        assert_eq!(bytes("2000/300s", 60), 61 * 2, "the five-minute firewall");
        assert_eq!(bytes("200/1ms", 4_096), 1_000, "no bucket is narrower than a microsecond");
        assert_eq!(bytes("200/1ms", 1), 2);
    }
}
