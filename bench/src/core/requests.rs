//! The requests of a run, written to a buffer before the clock starts.

use std::fmt::Write;

use slidegate::testing::Rng;

use crate::scenario::{Effort, Scenario, Traffic};
use crate::zipf::Zipf;

/// Bytes of a key.
const KEY_BYTES: usize = 16;
/// Requests per batch.
const BATCH: usize = 16;
/// Records of a hot key's buffer, which is read repeatedly and stays in the first-level cache.
const HOT_RECORDS: u64 = 1_000;
/// A prime that divides no number of keys here: its multiples visit every key once.
const STRIDE: u64 = 7_368_787;

/// The keys of one thread's requests, in order. One text instead of a list of strings: the processor prefetches it, so
/// the bytes of a key are in the cache when it is charged.
pub(crate) struct Requests {
    keys: String,
    passes: u64,
}

impl Requests {
    pub(crate) fn new(scenario: Scenario, effort: Effort, thread: u64) -> Self {
        let (keys, decisions) = (scenario.keys(effort), scenario.decisions(effort));
        let mut rng = Rng::new(thread + 1);
        let count = if scenario.traffic() == Traffic::Hot { HOT_RECORDS } else { decisions };
        let mut requests =
            Self { keys: String::with_capacity(room(count)), passes: decisions / count.max(1) };
        let zipf = (scenario.traffic() == Traffic::Zipf).then(|| Zipf::new(keys));
        for _ in 0..count {
            let number = match (&zipf, scenario.traffic()) {
                (_, Traffic::Hot) => scattered(0, keys),
                (Some(zipf), _) => scattered(zipf.rank(&mut rng), keys),
                (None, _) => rng.below(keys),
            };
            write_key(&mut requests.keys, number);
        }
        requests
    }

    /// How many requests [`Requests::for_each`] makes.
    pub(crate) fn len(&self) -> u64 {
        self.passes * (self.keys.len() / KEY_BYTES) as u64
    }

    /// Calls `ask` with every key in order.
    #[inline]
    pub(crate) fn for_each(&self, mut ask: impl FnMut(&str)) {
        for _ in 0..self.passes {
            for start in (0..self.keys.len()).step_by(KEY_BYTES) {
                ask(self.key(start));
            }
        }
    }

    /// Calls `ask` with every key in the same order, [`BATCH`] at a time.
    #[inline]
    pub(crate) fn for_each_batch(&self, mut ask: impl FnMut(&[&str])) {
        let mut keys = [""; BATCH];
        for _ in 0..self.passes {
            for start in (0..self.keys.len()).step_by(BATCH * KEY_BYTES) {
                let end = self.keys.len().min(start + BATCH * KEY_BYTES);
                for (key, start) in keys.iter_mut().zip((start..end).step_by(KEY_BYTES)) {
                    *key = self.key(start);
                }
                ask(&keys[..(end - start) / KEY_BYTES]);
            }
        }
    }

    /// The key that begins at `start`.
    #[inline]
    fn key(&self, start: usize) -> &str {
        &self.keys[start..start + KEY_BYTES]
    }
}

/// Calls `ask` with every key once, in an order unlike that of any table.
pub(crate) fn every_key(keys: u64, mut ask: impl FnMut(&str)) {
    let mut key = String::new();
    for index in 0..keys {
        key.clear();
        write_key(&mut key, scattered(index, keys));
        ask(&key);
    }
}

fn write_key(text: &mut String, number: u64) {
    write!(text, "user:{number:011}").expect("a string takes everything");
}

fn scattered(index: u64, keys: u64) -> u64 {
    (index + 1) * STRIDE % keys
}

fn room(keys: u64) -> usize {
    usize::try_from(keys).expect("requests fit memory") * KEY_BYTES
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_is_visited_once() {
        let mut seen = HashSet::new();
        every_key(1_000, |key| assert!(seen.insert(key.to_owned()), "{key} came twice"));
        assert_eq!(seen.len(), 1_000);
        assert!(seen.contains("user:00000000000") && seen.contains("user:00000000999"));
    }

    #[test]
    fn requests_are_keys_of_the_scenario() {
        for scenario in [Scenario::Hot2, Scenario::Uniform1, Scenario::Zipf1] {
            let requests = Requests::new(scenario, Effort::Quick, 0);
            let (mut count, mut least, mut most) = (0, u64::MAX, 0);
            requests.for_each(|key| {
                assert_eq!(key.len(), KEY_BYTES);
                let number: u64 = key.strip_prefix("user:").unwrap().parse().unwrap();
                (count, least, most) = (count + 1, least.min(number), most.max(number));
            });
            assert_eq!(count, requests.len());
            assert!(most < scenario.keys(Effort::Quick));
            assert_eq!(least == most, scenario.traffic() == Traffic::Hot);
        }
    }
    #[test]
    fn batches_are_the_same_keys_in_the_same_order() {
        // A thousand keys are not a multiple of the batch size.
        for scenario in [Scenario::Hot1, Scenario::Uniform1] {
            let requests = Requests::new(scenario, Effort::Quick, 0);
            let (mut one_by_one, mut together) = (0, 0);
            let mix =
                |sum: u64, key: &str| sum.wrapping_mul(31).wrapping_add(key[5..].parse::<u64>().unwrap());
            requests.for_each(|key| one_by_one = mix(one_by_one, key));
            requests.for_each_batch(|keys| together = keys.iter().fold(together, |sum, key| mix(sum, key)));
            assert_eq!(one_by_one, together);
        }
    }
}
