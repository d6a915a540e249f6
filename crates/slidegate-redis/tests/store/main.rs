//! The shared store on a real redis-server: in a fleet, under mischief, beside values of others, and judged.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod common;

mod clocks;
mod conformance;
mod deadlines;
mod denials;
mod differential;
mod faults;
mod flat;
mod fleet;
mod foreign;
mod full;
mod judge;
mod layout;
mod lifetimes;
mod limiter;
mod listed;
mod long_logs;
mod page;
mod php_example;
mod reconnects;
mod secret;
mod sorted_sets;
mod takeover;
mod templates;
mod wide;
