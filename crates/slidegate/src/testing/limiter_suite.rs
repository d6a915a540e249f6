//! The suite for a [`Limiter`](crate::Limiter) over any store: its `_async` verbs, and the outage policy.
//!
//! A promise takes a factory of empty stores, and returns an error if the promise is broken. The limiter uses the
//! store's own clock, so the windows are too long to end during the suite; only acquisitions wait. [`run`] runs the
//! whole suite:
//!
//! ```
//! use slidegate::store::MemoryStore;
//! use slidegate::testing::{block_on, limiter_suite};
//!
//! let fresh = async || MemoryStore::new();
//! block_on(limiter_suite::receipts_are_made_once(&fresh))?;
//! # Ok::<(), String>(())
//! ```

mod outages;
mod subject;
mod unlimited;
mod verbs;
mod waiting;

use crate::store::Store;
use crate::time::Timer;

pub use outages::{
    a_failure_says_whether_it_charged, argument_errors_are_not_outages,
    failures_and_degraded_answers_are_counted, local_limits_deny_together,
    the_policy_answers_for_a_failed_store, the_strictest_rule_decides,
    verbs_without_a_policy_return_the_error,
};
pub use unlimited::{unlimited_charges_are_charged_nowhere, unlimited_charges_ask_no_store};
pub use verbs::{
    bad_arguments_are_errors, batches_answer_in_order, changes_take_over_what_is_used,
    checks_charge_and_deny, owned_decisions_are_equal, receipts_are_made_once,
    refunds_settlements_credits_and_resets_give_back, several_charges_pass_together,
};
pub use waiting::{
    acquisitions_that_would_wait_too_long_are_refused, acquisitions_wait_and_are_admitted,
    refunds_wake_the_first,
};

/// Runs every promise. The error names each broken promise with the reason.
///
/// `timer` must use the time of the stores' [wait clock](Store::wait_clock): a runtime's timer, or their manual clock.
pub async fn run<S: Store>(fresh: &impl AsyncFn() -> S, timer: &impl Timer) -> Result<(), String> {
    let mut broken = Vec::new();
    macro_rules! judge {
        ($($promise:ident($($argument:ident),+))+) => {
            // Boxed: unboxed they would be one very large future.
            $(if let Err(story) = Box::pin($promise($($argument),+)).await {
                broken.push(format!("{}: {story}", stringify!($promise)));
            })+
        };
    }
    judge! {
        checks_charge_and_deny(fresh) several_charges_pass_together(fresh) batches_answer_in_order(fresh)
        receipts_are_made_once(fresh) refunds_settlements_credits_and_resets_give_back(fresh) owned_decisions_are_equal(fresh)
        changes_take_over_what_is_used(fresh) bad_arguments_are_errors(fresh, timer)
        unlimited_charges_are_charged_nowhere(fresh) unlimited_charges_ask_no_store(fresh)
        acquisitions_wait_and_are_admitted(fresh, timer) acquisitions_that_would_wait_too_long_are_refused(fresh, timer)
        refunds_wake_the_first(fresh, timer)
        the_policy_answers_for_a_failed_store(fresh, timer) the_strictest_rule_decides(fresh)
        local_limits_deny_together(fresh)
        a_failure_says_whether_it_charged(fresh) argument_errors_are_not_outages(fresh, timer)
        verbs_without_a_policy_return_the_error(fresh) failures_and_degraded_answers_are_counted(fresh, timer)
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}
