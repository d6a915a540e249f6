//! Streams of keys with a Zipf distribution, for tests.

/// Random keys from 0 to `keys - 1`: the n-th is 1/n as frequent as the first.
pub(super) fn zipf(keys: u64, seed: u64) -> impl Iterator<Item = u64> {
    // Prefix sums of the weights.
    let weights = (1..=keys).map(|rank| 1_000_000_000 / rank);
    let sums: Vec<u64> = weights
        .scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let mut state = seed;
    std::iter::repeat_with(move || {
        // The next number of a splitmix sequence.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (mixed ^ (mixed >> 31)) % sums[sums.len() - 1];
        sums.partition_point(|&sum| sum <= drawn) as u64
    })
}
