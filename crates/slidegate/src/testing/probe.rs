//! Tests `retry_after`: denied at every instant before it, admitted at it.

use super::rng::Rng;
use crate::algorithm::State;
use crate::rule::Limit;

/// Probes a denial: asks for `cost` again at the end of the wait, one microsecond before it, and at
/// other instants before it. Deciding does not change the state.
///
/// Returns an error if a wait is wrong. An admission is not probed.
pub fn retry_after(
    state: &State,
    limit: &Limit,
    now_us: u64,
    cost: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    let ruling = state.decide(limit, now_us, cost);
    let wait_us = ruling.retry_after_us;
    if wait_us == 0 {
        return Ok(());
    }
    let allowed_after = |after_us: u64| state.decide(limit, now_us + after_us, cost).allowed();
    if !allowed_after(wait_us) {
        return Err(format!(
            "cost {cost} denied at {now_us} for {wait_us} us, but denied at the end of the wait"
        ));
    }
    let instants =
        [wait_us - 1, wait_us / 2, rng.below(wait_us), rng.below(wait_us), wait_us.saturating_sub(1_000)];
    match instants.into_iter().find(|&after_us| allowed_after(after_us)) {
        Some(after_us) => {
            Err(format!("cost {cost} denied at {now_us} for {wait_us} us, but admitted after {after_us} us"))
        }
        None => Ok(()),
    }
}
