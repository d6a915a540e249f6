//! Seeded traces over all verbs: the answers equal those of the model, field by field, in packed Redis and in sorted
//! sets, on both sides of 2^53 microseconds.
//!
//! The tests of `slidegate` compare the store in memory with the same model. The two stores are not compared with each
//! other: memory deletes expired states and Redis does not at injected time, which is visible after a clock was set
//! back. The model deletes states when the store under test does.
//!
//! A sorted set has a member per unit, and no time after 2252: its traces have small limits and present times.

use std::sync::{Arc, Mutex};

use crate::common::{RedisServer, in_database};
use slidegate::Algorithm;
use slidegate::testing::trace::{Trace, algorithms};
use slidegate::testing::{Coverage, Event, differential};
use slidegate_redis::LogLayout;
use tokio::task::JoinSet;

const STEPS: usize = 400;
/// Concurrent traces, each in a database of its own.
const CONCURRENT_TRACES: u64 = 8;

/// Traces per algorithm: with [`STEPS`] each they make 10^5 operations.
const TRACES: u64 = 250;
/// How often [`TRACES`] traces must cover each cell at least.
const COVERED_MIN: u64 = 10;

/// `SLIDEGATE_SEEDS` overrides the number of traces.
fn traces() -> u64 {
    std::env::var("SLIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(TRACES)
}

/// A trace for one layout.
#[derive(Debug, Clone, Copy)]
struct LayoutTrace {
    layout: LogLayout,
    algorithm: Algorithm,
    seed: u64,
}

impl LayoutTrace {
    fn trace(self) -> Trace {
        match self.layout {
            LogLayout::Packed => Trace::new(self.seed, self.algorithm),
            LogLayout::SortedSet => Trace::of_small_limits(self.seed, self.algorithm),
        }
    }

    /// Runs it in an empty database. Returns its coverage.
    async fn run(self, url: &str, database: u64) -> Coverage {
        let (store, mut coverage) = (in_database(url, database, self.layout).await, Coverage::default());
        let result = differential::run_trace(&store, self.trace(), STEPS, &mut coverage).await;
        result.unwrap_or_else(|difference| panic!("{self:?}: {difference}"));
        coverage
    }
}

/// Runs traces concurrently and adds up their coverage. One thread suffices: Redis itself has only one.
fn run_all(traces: Vec<LayoutTrace>) -> Coverage {
    let server = RedisServer::start();
    let queue = Arc::new(Mutex::new(traces));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for database in 0..CONCURRENT_TRACES {
            let (queue, url) = (Arc::clone(&queue), server.url());
            tasks.spawn(async move {
                let mut coverage = Coverage::default();
                let next = || queue.lock().unwrap().pop();
                while let Some(trace) = next() {
                    coverage.add(&trace.run(&url, database).await);
                }
                coverage
            });
        }
        let mut coverage = Coverage::default();
        while let Some(covered) = tasks.join_next().await {
            coverage.add(&covered.unwrap());
        }
        coverage
    })
}

/// Every event but `excepted` was covered often enough. Fewer traces need to cover less.
fn assert_covered(coverage: &Coverage, algorithms: &[Algorithm], excepted: &[Event]) {
    let expected: Vec<Event> = Event::ALL.into_iter().filter(|event| !excepted.contains(event)).collect();
    let missing =
        coverage.missing_of(&expected, algorithms, (COVERED_MIN * traces() / TRACES).min(COVERED_MIN));
    assert!(missing.is_empty(), "cells that the traces hardly cover:\n{}", missing.join("\n"));
}

#[test]
fn packed_states_equal_the_model_and_the_traces_cover_every_cell() {
    let algorithms = algorithms();
    let traces = algorithms.iter().flat_map(|&algorithm| {
        let variants = algorithms.iter().filter(|other| other.name() == algorithm.name()).count() as u64;
        let seeds = 0..traces().div_ceil(variants);
        seeds.map(move |seed| LayoutTrace { layout: LogLayout::Packed, algorithm, seed })
    });
    // At injected time nothing expires.
    assert_covered(&run_all(traces.collect()), &algorithms, &[Event::Forgotten]);
}

#[test]
fn sorted_sets_equal_the_model_and_the_traces_cover_every_cell() {
    let algorithm = Algorithm::SlidingLog;
    let traces = (0..traces()).map(|seed| LayoutTrace { layout: LogLayout::SortedSet, algorithm, seed });
    assert_covered(&run_all(traces.collect()), &[algorithm], &[Event::Forgotten, Event::Wide]);
}
