//! The whole suite.

use crate::testing::ExpiringStore;

/// Runs every promise. The error names each broken promise with the reason.
pub async fn all<S: ExpiringStore>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let model = Box::pin(super::equals_the_model(fresh)).await;
    let results = [promises(fresh).await, model.map_err(|reason| format!("equals_the_model: {reason}"))];
    let broken: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// Every promise but [`equals_the_model`](super::equals_the_model), for stores whose tests search longer by
/// [`differential`](crate::testing::differential).
pub async fn promises<S: ExpiringStore>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let mut broken = Vec::new();
    macro_rules! judge {
        ($($promise:ident)+) => {
            // Boxed: unboxed they would be one very large future.
            $(if let Err(story) = Box::pin(super::$promise(fresh)).await {
                broken.push(format!("{}: {story}", stringify!($promise)));
            })+
        };
    }
    judge! {
        worked_example_1 worked_example_2 worked_example_3 worked_example_4 worked_example_5
        worked_example_6 worked_example_7 worked_example_8 worked_example_10 worked_example_11
        bounds_hold waits_are_exact
        denials_change_nothing peeks_change_nothing never_is_an_error
        several_charges_pass_together_or_not_at_all charges_on_one_state_are_summed
        the_binding_rule_is_named shadows_never_refuse batches_answer_in_order
        tags_are_states_of_their_own
        refunds_work_once expired_receipts_give_nothing refunds_are_one_sided
        credits_take_the_oldest_first resets_forget_everything
        settlements_replace_the_cost bad_settlements_change_nothing
        changes_keep_what_is_used changes_void_receipts
        a_clock_set_back_admits_no_more a_clock_that_jumps_ahead_expires_entries calls_without_a_time_use_the_stores_clock
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}
