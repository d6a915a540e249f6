//! The shared store on a real redis-server: in a fleet, under faults, beside values of other programs, and compared with
//! the model and the classical script.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod common;

mod changed_limits;
mod clocks;
mod cluster;
mod conformance;
mod constant_work;
mod contract_examples;
mod deadlines;
mod denials;
mod differential;
mod faults;
mod fleet;
mod foreign_values;
mod judge;
mod language_examples;
mod large_sets;
mod layout;
mod lazy;
mod limiter;
mod list_replies;
mod long_logs;
mod other_units;
mod out_of_memory;
mod receipts;
mod reconnects;
mod redis_doc;
mod secret;
mod sentinel;
mod shards;
mod short_scripts;
mod sorted_sets;
mod stopped;
mod takeover;
mod templates;
mod text_replies;
mod ttl;
mod wide;
mod wrong_arguments;
