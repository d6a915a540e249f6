//! The six algorithms: pure functions of (state, now, cost, limit).
//!
//! No clock, no lock, no I/O, no floating point. Every algorithm keeps the contract of [`Window`];
//! [`State`] is any one of them.
//!
//! | name | state per key | admitted in any window, at most | refuses early |
//! |---|---|---|---|
//! | [`sliding-log`](SlidingLog) | 8 B per live request, 16 B with costs; the first 11 of cost 1 in place, in 56 B, or the first 5 in 32 B | L | never |
//! | [`compact-log`](CompactLog) | at most 12 B x K | L | by at most about 2L/(K-2) units |
//! | [`sliding-buckets`](SlidingBuckets) | 1 to 8 B per bucket | L (full), 2L-1 (interpolated), 2L (dropped) | by what arrived in one bucket (full) |
//! | [`sliding-counter`](SlidingCounter) | two counts and a number | 2L-1 | even when the true window is empty |
//! | [`fixed-window`](FixedWindow) | a count and a number | 2L | never |
//! | [`gcra`](Gcra) | a backlog and an instant | 2L-1 | never |
//!
//! # Time
//!
//! A window is half-open: `(now - W, now]`, to the microsecond. If `now` is earlier than what a state
//! remembers (its newest stamp, or the start of its window or bucket), time stands still at that
//! instant until the clock has caught up: a clock that is set back cannot admit more. Waits are
//! counted from the `now` that was given.

mod bytes;
mod cells;
mod compact_entry;
mod compact_log;
mod encoding;
mod fixed_window;
mod gcra;
mod log_block;
mod log_entries;
mod packed_counts;
mod packed_line;
mod sliding_buckets;
mod sliding_counter;
mod sliding_log;
mod state;
mod wide;
mod window;

pub use bytes::BytesError;
pub(crate) use bytes::{Reader, write_number};
pub use compact_log::CompactLog;
pub use fixed_window::FixedWindow;
pub use gcra::Gcra;
pub use sliding_buckets::SlidingBuckets;
pub use sliding_counter::SlidingCounter;
pub use sliding_log::SlidingLog;
pub(crate) use sliding_log::{Log, NarrowLog};
pub use state::State;
pub(crate) use state::{AnyWindow, charge_excess};
pub use window::{Ruling, USED_MAX, Usage, Window};
