//! Seeded traces over all verbs: the answers equal those of the model, field by field, in packed Redis and in sorted
//! sets, on both sides of 2^53 microseconds.
//!
//! The tests of `slidegate` compare the store in memory with the same model. The two stores are not compared with each
//! other: memory deletes expired states and Redis does not at injected time, which is visible after a clock was set
//! back. The model deletes states when the store under test does.
//!
//! A sorted set has a member per unit, and no time after 2252: its traces have small limits and present times.

use std::sync::{Arc, Mutex};

use crate::common::{RedisServer, assert_covers_all, in_database};
use slidegate::Algorithm;
use slidegate::testing::trace::{Trace, algorithms};
use slidegate::testing::{Coverage, Event, differential, search_size};
use slidegate_redis::LogLayout;
use tokio::task::JoinSet;

const STEPS: usize = 400;
/// Concurrent traces, each in a database of its own.
const CONCURRENT_TRACES: u64 = 8;
/// Traces per algorithm and parameters.
const TRACES: u64 = 12;

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

fn packed_equals_the_model(name: &str) {
    let algorithms: Vec<_> = algorithms().into_iter().filter(|algorithm| algorithm.name() == name).collect();
    let traces = algorithms.iter().flat_map(|&algorithm| {
        let layout = LogLayout::Packed;
        (0..search_size(TRACES)).map(move |seed| LayoutTrace { layout, algorithm, seed })
    });
    // At injected time nothing expires.
    assert_covers_all(&run_all(traces.collect()), &algorithms, &[Event::Forgotten]);
}

mod packed_states_equal_the_model_and_the_traces_cover_every_cell {
    crate::common::test_each_algorithm!(super::packed_equals_the_model);
}

#[test]
fn sorted_sets_equal_the_model_and_the_traces_cover_every_cell() {
    let algorithm = Algorithm::SlidingLog;
    let traces =
        (0..search_size(TRACES)).map(|seed| LayoutTrace { layout: LogLayout::SortedSet, algorithm, seed });
    assert_covers_all(&run_all(traces.collect()), &[algorithm], &[Event::Forgotten, Event::Wide]);
}
