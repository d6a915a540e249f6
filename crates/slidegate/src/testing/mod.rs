//! The judge: what slidegate's promises are tested with, for users' tests too.
//!
//! * [`Auditor`] sees only (time, cost, allowed) and knows the true trailing window.
//! * [`attack`] holds the traffic that hurts each algorithm most.
//! * [`traffic`] drives a state with seeded random requests under the auditor's eyes.
//! * [`probe`] puts a `retry_after` to the test.
//! * [`model`] is a slow and obvious store in wide integers; [`differential`] runs a seeded [`trace`] over
//!   all verbs through it and through a real one, compares every field, and counts its [`Coverage`].
//! * [`conformance`] is the suite that every store must pass.
//! * [`Rng`] makes all of it repeatable; [`block_on`] runs futures without a runtime.

pub mod attack;
mod auditor;
pub mod conformance;
mod coverage;
pub mod differential;
mod executor;
mod forgetting;
pub mod model;
pub mod probe;
mod rng;
pub mod trace;
pub mod traffic;

pub use auditor::{Auditor, Findings};
pub use coverage::{Coverage, Event};
pub use executor::block_on;
pub use forgetting::Forgetting;
pub use rng::Rng;
