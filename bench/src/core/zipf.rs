//! Popularity by Zipf's law with exponent 1, in whole numbers.

use slidegate::testing::Rng;

/// Draws ranks: rank 0 twice as often as rank 1, three times as often as rank 2.
pub(crate) struct Zipf {
    /// Weight of each rank and all before it.
    totals: Vec<u64>,
}

/// Weight of rank 0. The sum over ten million ranks, 17 times this, fits 64 bits.
const FIRST: u64 = 1 << 50;

impl Zipf {
    pub(crate) fn new(ranks: u64) -> Self {
        let mut total = 0;
        let weights = (1..=ranks).map(|place| {
            total += FIRST / place;
            total
        });
        Self { totals: weights.collect() }
    }

    pub(crate) fn rank(&self, rng: &mut Rng) -> u64 {
        let whole = *self.totals.last().expect("there is at least one rank");
        let drawn = rng.below(whole);
        self.totals.partition_point(|&total| total <= drawn) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_falls_as_one_over_the_rank() {
        let (zipf, mut rng) = (Zipf::new(1_000), Rng::new(1));
        let mut counts = [0_u64; 1_000];
        for _ in 0..1_000_000 {
            counts[usize::try_from(zipf.rank(&mut rng)).unwrap()] += 1;
        }
        // The harmonic number of 1,000 is 7.485.
        for (rank, expected) in [(0, 133_600), (1, 66_800), (9, 13_360)] {
            let seen: u64 = counts[rank];
            assert!(seen.abs_diff(expected) < expected / 20, "rank {rank}: {seen}, not {expected}");
        }
        assert!(counts[999] > 50);
    }
}
