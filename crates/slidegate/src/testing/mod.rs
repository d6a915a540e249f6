//! Test tools for slidegate's promises, for users' tests too.
//!
//! * [`Auditor`] sees only (time, cost, allowed) and counts the true trailing window.
//! * [`attack`] has the worst-case traffic of each algorithm.
//! * [`traffic`] drives a state with seeded random requests, checked by an auditor.
//! * [`probe`] tests a `retry_after`.
//! * [`model`] is a slow and obvious store in wide integers; [`differential`] runs a seeded [`trace`] over
//!   all verbs through it and through a real one, compares every field, and counts its [`Coverage`].
//! * [`conformance`] is the suite that every store must pass; [`limiter_suite`] is the same for a
//!   [`Limiter`](crate::Limiter) over it. [`FailingStore`] fails on demand, with every kind of failure.
//! * [`search_size`] scales the seeds of a search: `SLIDEGATE_SEARCH_PERCENT=500` searches five times as long.
//! * [`Rng`] is a seeded generator; [`block_on`] runs futures without a runtime.

#[macro_use]
mod ensure;

pub mod attack;
mod auditor;
pub mod conformance;
mod coverage;
pub mod differential;
mod expiring;
mod failing;
pub mod limiter_suite;
pub mod model;
pub mod probe;
mod rng;
mod search;
pub mod trace;
pub mod traffic;

pub use auditor::{Auditor, Findings};
pub use coverage::{Coverage, Event};
pub use expiring::ExpiringStore;
pub use failing::{FailingStore, StoreFailure};
pub use rng::Rng;
pub use search::{search_covers_all, search_size};

/// Runs a future on this thread, which parks while the future is pending.
///
/// It has no timers and no I/O: a future that needs a runtime must run on that runtime.
///
/// ```
/// use slidegate::testing::block_on;
///
/// assert_eq!(block_on(async { 6 * 7 }), 42);
/// ```
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    crate::time::block_on(future)
}
