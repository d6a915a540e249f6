//! A seeded pseudo-random number generator.

/// A small generator (`SplitMix64`): fast, seedable, the same on every machine. Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator; the same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is uniform but for one part in 2^64 / bound.
        let product = u128::from(self.draw()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a product has 64 bits")
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times` calls on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of `items`, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.below(items.len() as u64)).expect("an index")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_for_a_seed_and_stays_in_range() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..1_000).map(|_| rng.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        for value in 3..=9 {
            assert!(draw(7).contains(&value));
        }
        assert!(draw(7).iter().all(|value| (3..=9).contains(value)));
    }
}
