//! Streams of keys for tests.

/// Keys from 0 up, each so often as one of its rank is in many kinds of traffic: the n-th is 1/n as frequent as
/// the first.
pub(super) struct Zipf {
    /// Sums of the weights up to and with each key.
    sums: Vec<u64>,
    random: u64,
}

impl Zipf {
    pub(super) fn new(keys: u64, seed: u64) -> Self {
        let mut sum = 0;
        let weight = |rank: u64| {
            sum += 1_000_000_000 / rank;
            sum
        };
        Self { sums: (1..=keys).map(weight).collect(), random: seed }
    }

    /// The next number of a splitmix sequence.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Iterator for Zipf {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let drawn = self.random() % self.sums.last()?;
        Some(self.sums.partition_point(|&sum| sum <= drawn) as u64)
    }
}
