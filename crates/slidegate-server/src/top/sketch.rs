//! The most frequent keys of an unbounded stream, in a fixed number of counters: the Space-Saving sketch of Metwally,
//! Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams" (2005).
//!
//! A key that has a counter is counted. A new key takes over the smallest counter and its count: the key cannot have
//! occurred more often before, so that count becomes its error. After N keys in all:
//!
//! * a count is never below the true count, and above it by at most its error;
//! * an error is at most N / [`COUNTERS`];
//! * a key that occurred more often than N / [`COUNTERS`] has a counter.
//!
//! A min-heap finds the smallest counter and a hash table finds the counter of a key. A new name reuses the buffer of
//! the name that it displaces, so a full sketch allocates only for longer names.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Counters of a sketch: 0.7 MB with the longest names.
pub(super) const COUNTERS: usize = 1_024;

/// The count of one rule and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counter {
    /// The rule and the key, concatenated.
    name: String,
    rule_bytes: usize,
    hash: u64,
    /// Its index in the heap.
    heap_index: usize,
    pub(super) count: u64,
    /// The part of the count that displaced keys may have caused.
    pub(super) error: u64,
}

impl Counter {
    pub(super) fn rule(&self) -> &str {
        &self.name[..self.rule_bytes]
    }

    pub(super) fn key(&self) -> &str {
        &self.name[self.rule_bytes..]
    }

    fn is_of(&self, rule: &str, key: &str) -> bool {
        self.rule_bytes == rule.len() && self.rule() == rule && self.key() == key
    }
}

#[derive(Debug, Default)]
pub(super) struct Sketch {
    hasher: RandomState,
    counters: Vec<Counter>,
    /// The index of the counter of a name.
    by_name: HashTable<usize>,
    /// A binary min-heap of counters by count: the children of index i are 2i + 1 and 2i + 2.
    heap: Vec<usize>,
}

impl Sketch {
    /// Counts one occurrence of a key.
    pub(super) fn add(&mut self, rule: &str, key: &str) {
        let hash = self.hasher.hash_one((rule, key));
        let counters = &self.counters;
        let known = self.by_name.find(hash, |&number| counters[number].is_of(rule, key));
        let number = match known {
            Some(&number) => number,
            None if self.counters.len() < COUNTERS => self.insert(hash, rule, key),
            None => self.replace_min(hash, rule, key),
        };
        self.counters[number].count += 1;
        self.sift_down(self.counters[number].heap_index);
    }

    /// All counters, in no order.
    pub(super) fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The most that a key without a counter can have occurred.
    pub(super) fn min_count(&self) -> u64 {
        if self.counters.len() < COUNTERS { 0 } else { self.counters[self.heap[0]].count }
    }

    /// Adds a counter at zero, which rises to the top of the heap.
    fn insert(&mut self, hash: u64, rule: &str, key: &str) -> usize {
        let number = self.counters.len();
        let name = [rule, key].concat();
        self.counters.push(Counter {
            name,
            rule_bytes: rule.len(),
            hash,
            heap_index: number,
            count: 0,
            error: 0,
        });
        self.heap.push(number);
        self.index_name(hash, number);
        let mut heap_index = number;
        while heap_index > 0 && self.count_at(heap_index) < self.count_at((heap_index - 1) / 2) {
            self.swap(heap_index, (heap_index - 1) / 2);
            heap_index = (heap_index - 1) / 2;
        }
        number
    }

    /// Gives the smallest counter to another key.
    fn replace_min(&mut self, hash: u64, rule: &str, key: &str) -> usize {
        let number = self.heap[0];
        let counter = &mut self.counters[number];
        if let Ok(entry) = self.by_name.find_entry(counter.hash, |&other| other == number) {
            entry.remove();
        }
        counter.name.clear();
        counter.name.push_str(rule);
        counter.name.push_str(key);
        (counter.rule_bytes, counter.hash, counter.error) = (rule.len(), hash, counter.count);
        self.index_name(hash, number);
        number
    }

    fn index_name(&mut self, hash: u64, number: usize) {
        let counters = &self.counters;
        self.by_name.insert_unique(hash, number, |&other| counters[other].hash);
    }

    /// Moves a counter that has grown down the heap.
    fn sift_down(&mut self, mut heap_index: usize) {
        loop {
            let below =
                [2 * heap_index + 1, 2 * heap_index + 2].into_iter().filter(|&below| below < self.heap.len());
            let Some(least) = below.min_by_key(|&below| self.count_at(below)) else { return };
            if self.count_at(least) >= self.count_at(heap_index) {
                return;
            }
            self.swap(heap_index, least);
            heap_index = least;
        }
    }

    fn count_at(&self, heap_index: usize) -> u64 {
        self.counters[self.heap[heap_index]].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.counters[self.heap[one]].heap_index = one;
        self.counters[self.heap[other]].heap_index = other;
    }

    /// Asserts that heap, table and counters agree.
    #[cfg(test)]
    fn assert_consistent(&self) {
        assert_eq!(self.heap.len(), self.counters.len());
        assert_eq!(self.by_name.len(), self.counters.len());
        for (heap_index, &number) in self.heap.iter().enumerate() {
            let counter = &self.counters[number];
            assert_eq!(counter.heap_index, heap_index);
            assert!(heap_index == 0 || self.count_at((heap_index - 1) / 2) <= counter.count);
            let hash = self.hasher.hash_one((counter.rule(), counter.key()));
            assert_eq!(self.by_name.find(hash, |&other| other == number), Some(&number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::zipf::zipf;
    use super::*;
    use std::collections::HashMap;

    fn exactly(keys: impl Iterator<Item = u64>) -> (Sketch, HashMap<String, u64>, u64) {
        let (mut sketch, mut exact, mut all) = (Sketch::default(), HashMap::new(), 0);
        for key in keys {
            let key = format!("user:{key}");
            sketch.add("api", &key);
            *exact.entry(key).or_insert(0) += 1;
            all += 1;
        }
        sketch.assert_consistent();
        (sketch, exact, all)
    }

    fn assert_guarantees(sketch: &Sketch, exact: &HashMap<String, u64>, all: u64) {
        let fair = all / COUNTERS as u64;
        let mut frequent = exact.values().filter(|&&count| count > fair).count();
        for counter in sketch.counters() {
            let truth = exact[counter.key()];
            assert!(truth <= counter.count && counter.count - counter.error <= truth, "{counter:?} {truth}");
            assert!(counter.error <= fair, "{counter:?}");
            frequent -= usize::from(truth > fair);
        }
        assert_eq!(frequent, 0, "every frequent key has a counter");
        assert_eq!(sketch.counters().iter().map(|counter| counter.count).sum::<u64>(), all);
        assert!(sketch.min_count() <= fair);
    }

    #[test]
    fn the_guarantees_hold_for_zipf_streams() {
        for seed in 0..4 {
            let (sketch, exact, all) = exactly(zipf(100_000, seed).take(200_000));
            assert!(exact.len() > 10 * COUNTERS, "there are many more keys than counters");
            assert_guarantees(&sketch, &exact, all);
        }
    }

    #[test]
    fn the_guarantees_hold_for_cyclic_streams() {
        for repeated_after in [10_000, 2_000] {
            let keys = (0..50_000_u64).map(|number| number % repeated_after);
            let (sketch, exact, all) = exactly(keys);
            assert_guarantees(&sketch, &exact, all);
        }
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let (sketch, exact, _) = exactly(zipf(COUNTERS as u64, 7).take(50_000));
        for counter in sketch.counters() {
            assert_eq!((counter.count, counter.error), (exact[counter.key()], 0));
        }
    }

    #[test]
    fn rule_and_key_are_compared_separately() {
        let mut sketch = Sketch::default();
        for (rule, key) in [("ab", "c"), ("a", "bc"), ("ab", "c")] {
            sketch.add(rule, key);
        }
        let mut counts: Vec<_> =
            sketch.counters().iter().map(|counter| (counter.rule(), counter.key(), counter.count)).collect();
        counts.sort_unstable();
        assert_eq!(counts, [("a", "bc", 1), ("ab", "c", 2)]);
    }
}
