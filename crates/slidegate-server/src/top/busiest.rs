//! The keys that are allowed most and denied most. Keys are unbounded, so they cannot be labels of a metric.
//!
//! Every thread counts in a sketch of its own, under a lock that only a reader contends for. Reading merges the
//! sketches. Counts begin with the start of the server, and each has its error bound beside it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::sketch::Sketch;
use crate::stripe;

/// Most keys in a list.
pub(crate) const LISTED_MAX: usize = 1_000;

/// The two sketches of a thread.
#[derive(Debug, Default)]
struct Sketches {
    allowed: Sketch,
    denied: Sketch,
}

#[derive(Debug)]
pub(crate) struct Top {
    workers: Vec<Mutex<Sketches>>,
}

/// A key and how often it was allowed or denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TopKey {
    pub(crate) rule: String,
    pub(crate) key: String,
    /// At least the true count.
    pub(crate) count: u64,
    /// The true count is at least `count - error`.
    pub(crate) error: u64,
}

/// The most frequent keys, in descending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TopKeys {
    pub(crate) allowed: Vec<TopKey>,
    pub(crate) denied: Vec<TopKey>,
}

impl Top {
    /// Sketches for `workers` threads; more threads share them.
    pub(crate) fn new(workers: usize) -> Self {
        Self { workers: (0..workers.max(1)).map(|_| Mutex::default()).collect() }
    }

    /// Counts a decision.
    pub(crate) fn decided(&self, rule: &str, key: &str, allowed: bool) {
        let mut sketches = locked(&self.workers[stripe::of_this_thread(self.workers.len())]);
        let sketch = if allowed { &mut sketches.allowed } else { &mut sketches.denied };
        sketch.add(rule, key);
    }

    /// The `listed` most frequent keys of each kind.
    pub(crate) fn read(&self, listed: usize) -> TopKeys {
        let listed = listed.min(LISTED_MAX);
        let allowed = self.merged(listed, |sketches| &sketches.allowed);
        TopKeys { allowed, denied: self.merged(listed, |sketches| &sketches.denied) }
    }

    /// The most frequent keys of one sketch per thread.
    fn merged(&self, listed: usize, of: fn(&Sketches) -> &Sketch) -> Vec<TopKey> {
        let mut by_name = HashMap::<(String, String), KeyTotals>::new();
        // The most that a key can have been counted in all sketches together without a counter in any.
        let mut min_count = 0;
        for worker in &self.workers {
            let sketches = locked(worker);
            let sketch = of(&sketches);
            min_count += sketch.min_count();
            for counter in sketch.counters() {
                let name = (counter.rule().to_owned(), counter.key().to_owned());
                let totals = by_name.entry(name).or_default();
                totals.count += counter.count;
                totals.error += counter.error;
                totals.min_counts += sketch.min_count();
            }
        }
        let counted = |((rule, key), totals): ((String, String), KeyTotals)| {
            // A sketch without a counter for the key may have missed up to its smallest count.
            let missed = min_count - totals.min_counts;
            TopKey { rule, key, count: totals.count + missed, error: totals.error + missed }
        };
        let mut all: Vec<TopKey> = by_name.into_iter().map(counted).collect();
        // Sorted by the guaranteed count, so that a new key with a large error does not rank high.
        all.sort_unstable_by(|one, other| {
            let certain = |key: &TopKey| key.count - key.error;
            let by_count = certain(other).cmp(&certain(one)).then(other.count.cmp(&one.count));
            by_count.then_with(|| (&one.rule, &one.key).cmp(&(&other.rule, &other.key)))
        });
        all.truncate(listed);
        all
    }
}

/// Ignores poisoning: a panic leaves counts off by one at most.
fn locked(worker: &Mutex<Sketches>) -> MutexGuard<'_, Sketches> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sums over the sketches that have a counter for a key.
#[derive(Debug, Default, Clone, Copy)]
struct KeyTotals {
    count: u64,
    error: u64,
    /// Smallest counts of these sketches.
    min_counts: u64,
}

#[cfg(test)]
mod tests {
    use super::super::sketch::COUNTERS;
    use super::super::zipf::zipf;
    use super::*;

    #[test]
    fn counts_and_errors_of_all_threads_are_merged() {
        const THREADS: u64 = 4;
        let top = Top::new(4);
        let exact = Mutex::new(HashMap::<String, u64>::new());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (top, exact) = (&top, &exact);
                scope.spawn(move || {
                    for key in zipf(50_000, thread).take(50_000) {
                        let key = format!("user:{key}");
                        top.decided("api", &key, thread % 2 == 0);
                        if thread % 2 == 0 {
                            *exact.lock().unwrap().entry(key).or_default() += 1;
                        }
                    }
                });
            }
        });
        let exact = exact.into_inner().unwrap();
        let found = top.read(usize::MAX);
        assert_eq!((found.allowed.len(), found.denied.len()), (LISTED_MAX, LISTED_MAX));
        for key in &found.allowed {
            let truth = exact[&key.key];
            assert!(truth <= key.count && key.count - key.error <= truth, "{key:?} {truth}");
            assert!(key.error <= THREADS / 2 * 50_000 / COUNTERS as u64, "{key:?}");
        }
        let mut truth: Vec<u64> = exact.into_values().collect();
        truth.sort_unstable_by(|one, other| other.cmp(one));
        let listed: Vec<&str> = found.allowed[..5].iter().map(|key| key.key.as_str()).collect();
        assert_eq!(listed, ["user:0", "user:1", "user:2", "user:3", "user:4"], "{:?}", &truth[..5]);
    }

    #[test]
    fn allowed_and_denied_keys_are_separate_lists_of_the_requested_length() {
        let top = Top::new(1);
        for (key, allowed, times) in [("alice", true, 3), ("bob", true, 2), ("bob", false, 5)] {
            for _ in 0..times {
                top.decided("api", key, allowed);
            }
        }
        let key = |key: &str, count| TopKey { rule: "api".into(), key: key.into(), count, error: 0 };
        assert_eq!(
            top.read(10),
            TopKeys { allowed: vec![key("alice", 3), key("bob", 2)], denied: vec![key("bob", 5)] }
        );
        assert_eq!(top.read(1).allowed, [key("alice", 3)]);
        assert_eq!(top.read(0).denied, []);
    }
}
