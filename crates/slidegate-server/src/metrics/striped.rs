//! Striped counters: many threads add to them without sharing a cache line.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stripe;

/// Copies of every counter. More threads than stripes share some, which is slower but correct.
const STRIPES: usize = 8;

/// Aligned to two cache lines, because processors prefetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

/// `N` counters with a copy per stripe; reading sums the copies.
#[derive(Debug)]
pub(super) struct Striped<const N: usize> {
    stripes: [Stripe<N>; STRIPES],
}

impl<const N: usize> Default for Striped<N> {
    fn default() -> Self {
        Self { stripes: array::from_fn(|_| Stripe(array::from_fn(|_| AtomicU64::new(0)))) }
    }
}

impl<const N: usize> Striped<N> {
    /// Adds to a counter.
    #[inline]
    pub(super) fn add(&self, counter: usize, amount: u64) {
        self.stripes[stripe::of_this_thread(STRIPES)].0[counter].fetch_add(amount, Ordering::Relaxed);
    }

    /// The sums. Each is correct at some instant, not all at the same one.
    pub(super) fn read(&self) -> [u64; N] {
        let sum = |counter: usize| {
            let values = self.stripes.iter().map(|stripe| stripe.0[counter].load(Ordering::Relaxed));
            // Wraps, as Prometheus expects of counters; a saturated sum would stand still.
            values.fold(0, u64::wrapping_add)
        };
        array::from_fn(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_additions_are_all_counted() {
        let counters = Striped::<2>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        counters.add(0, 1);
                        counters.add(1, 3);
                    }
                });
            }
        });
        assert_eq!(counters.read(), [16_000, 48_000]);
    }
}
