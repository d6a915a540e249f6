//! Integration tests of the library's public interface: models, threads, and bugs of other limiters.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod common;
mod stores;
mod tasks;

mod acquire;
mod acquire_threads;
mod budget;
mod bugs_of_other_limiters;
mod clocks;
mod concurrency;
mod conformance;
mod differential;
mod eviction;
mod guard;
mod interleavings;
mod limiter;
mod limiter_over_stores;
mod live_change;
mod never_over;
mod public_api;
mod receipts;
mod serialization;
mod shares;
mod slot_widths;
mod sweeping;
