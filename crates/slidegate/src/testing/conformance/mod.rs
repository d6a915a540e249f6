//! The conformance suite for every [`Store`](crate::store::Store): one function per promise.
//!
//! A promise takes a factory of empty stores, and returns an error if the promise is broken. All use injected time, so
//! that nothing waits. [`all`] runs the whole suite:
//!
//! ```
//! use slidegate::store::MemoryStore;
//! use slidegate::testing::{block_on, conformance};
//!
//! // A store on a server would get a fresh prefix for its keys here.
//! let fresh = async || MemoryStore::new();
//! block_on(conformance::refunds_work_once(&fresh))?;
//! # Ok::<(), String>(())
//! ```

mod all;
mod bounds;
mod changes;
mod clocks;
mod denials;
mod examples;
mod model;
mod quotas;
mod refunds;
mod settle;
mod several_charges;
mod subject;
mod tags;

pub use all::{all, promises};
pub use bounds::{bounds_hold, waits_are_exact};
pub use changes::{changes_keep_what_is_used, changes_void_receipts};
pub use clocks::{
    a_clock_set_back_admits_no_more, a_clock_that_jumps_ahead_expires_entries,
    calls_without_a_time_use_the_stores_clock,
};
pub use denials::{denials_change_nothing, never_is_an_error, peeks_change_nothing};
pub use examples::{
    worked_example_1, worked_example_2, worked_example_3, worked_example_4, worked_example_5,
};
pub use model::equals_the_model;
pub use quotas::{
    worked_example_6, worked_example_7, worked_example_8, worked_example_10, worked_example_11,
};
pub use refunds::{
    credits_take_the_oldest_first, expired_receipts_give_nothing, refunds_are_one_sided, refunds_work_once,
    resets_forget_everything,
};
pub use settle::{bad_settlements_change_nothing, settlements_replace_the_cost};
pub use several_charges::{
    batches_answer_in_order, charges_on_one_state_are_summed, several_charges_pass_together_or_not_at_all,
    shadows_never_refuse, the_binding_rule_is_named,
};
pub use tags::tags_are_states_of_their_own;
