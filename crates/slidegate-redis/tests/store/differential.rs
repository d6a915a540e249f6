//! Seeded traces over all verbs give the answers of the model, field by field, in packed Redis and in sorted sets, on
//! both sides of 2^53 microseconds.
//!
//! The store in memory is judged by the same model on the same traces, in the tests of `slidegate`. They are not compared
//! with each other: memory forgets what has ended, and Redis does not at injected time, which can be noticed after a
//! clock was set back; the model forgets when the store does that it judges.
//!
//! A sorted set keeps a member per unit, and no time after 2252: its traces are those with small limits, of today.

use std::sync::{Arc, Mutex};

use crate::common::{RedisServer, in_database};
use slidegate::Algorithm;
use slidegate::testing::trace::{Trace, algorithms};
use slidegate::testing::{Coverage, Event, differential};
use slidegate_redis::LogLayout;
use tokio::task::JoinSet;

const STEPS: usize = 400;
/// Traces at the same time, each in a database of its own.
const AT_ONCE: u64 = 8;

/// Traces per algorithm: of [`STEPS`] each they make 10^5 operations. `SLIDEGATE_SEEDS` asks for more.
fn traces() -> u64 {
    std::env::var("SLIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(250)
}

/// A trace, and the layout that it is meant for.
#[derive(Debug, Clone, Copy)]
struct Course {
    layout: LogLayout,
    algorithm: Algorithm,
    seed: u64,
}

impl Course {
    fn trace(self) -> Trace {
        match self.layout {
            LogLayout::Packed => Trace::new(self.seed, self.algorithm),
            LogLayout::SortedSet => Trace::of_small_limits(self.seed, self.algorithm),
        }
    }

    /// Runs it in an empty database; what it has met.
    async fn judged(self, url: &str, database: u64) -> Coverage {
        let (store, mut coverage) = (in_database(url, database, self.layout).await, Coverage::default());
        let judged = differential::run_trace(&store, self.trace(), STEPS, &mut coverage).await;
        judged.unwrap_or_else(|wrong| panic!("{self:?}: {wrong}"));
        coverage
    }
}

/// Runs them, several at a time, and adds up what they met. One thread: it has as much to do as the one of Redis, and
/// more of them would mostly wake each other.
fn all(courses: Vec<Course>) -> Coverage {
    let server = RedisServer::start();
    let left = Arc::new(Mutex::new(courses));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for database in 0..AT_ONCE {
            let (left, url) = (Arc::clone(&left), server.url());
            tasks.spawn(async move {
                let mut coverage = Coverage::default();
                let next = || left.lock().unwrap().pop();
                while let Some(course) = next() {
                    coverage.add(&course.judged(&url, database).await);
                }
                coverage
            });
        }
        let mut coverage = Coverage::default();
        while let Some(done) = tasks.join_next().await {
            coverage.add(&done.unwrap());
        }
        coverage
    })
}

/// Every event but those, ten times at least.
fn assert_met(coverage: &Coverage, algorithms: &[Algorithm], but: &[Event]) {
    let met: Vec<Event> = Event::ALL.into_iter().filter(|event| !but.contains(event)).collect();
    let missing = coverage.missing_of(&met, algorithms, 10);
    assert!(missing.is_empty(), "cells that the traces hardly met:\n{}", missing.join("\n"));
}

#[test]
fn packed_states_equal_the_model_and_every_cell_was_met() {
    let algorithms = algorithms();
    let courses = algorithms.iter().flat_map(|&algorithm| {
        let variants = algorithms.iter().filter(|other| other.name() == algorithm.name()).count() as u64;
        let seeds = 0..traces().div_ceil(variants);
        seeds.map(move |seed| Course { layout: LogLayout::Packed, algorithm, seed })
    });
    // At injected time nothing is forgotten.
    assert_met(&all(courses.collect()), &algorithms, &[Event::Forgotten]);
}

#[test]
fn sorted_sets_equal_the_model_and_every_cell_was_met() {
    let algorithm = Algorithm::SlidingLog;
    let courses = (0..traces()).map(|seed| Course { layout: LogLayout::SortedSet, algorithm, seed });
    assert_met(&all(courses.collect()), &[algorithm], &[Event::Forgotten, Event::Wide]);
}
