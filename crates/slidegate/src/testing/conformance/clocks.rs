//! Clocks that are set back or jump ahead, and the store's own clock.

use super::subject::{BOUNDARY_US, MINUTE_US, SECOND_US, Subject, admission, key, retry_us, rule};
use crate::charge::Charge;
use crate::rule::{Algorithm, Rule};
use crate::store::{Call, Store, Update};
use crate::testing::{ExpiringStore, trace};
use crate::time::whole_us;

/// After the clock was set back, at most the limit is admitted in a window; `used` does not grow with the step, waits are
/// exact on the clock that was set back, and no wait is longer than the step and a window. In a store that
/// [follows the clock](ExpiringStore::FOLLOWS_CLOCK) no wait is longer than a window.
pub async fn a_clock_set_back_admits_no_more<S: ExpiringStore>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["5/10s"], algorithm));
        subject.admit(BOUNDARY_US + 3 * SECOND_US, &rule, 3).await?;
        let back_us = BOUNDARY_US - 60 * MINUTE_US;
        ensure_eq!(subject.used(back_us, &rule).await?, 3, "{algorithm}: used, on a clock set back");
        let denied = subject.ask(back_us, &rule, 3).await?;
        ensure!(!denied.allowed(), "{algorithm}: over the limit on a clock set back");
        subject.wait_is_exact(back_us, &[(&rule, "alice", 3)], &denied).await?;
        let window_us = rule.limits()[0].window_us();
        let end_us = match algorithm {
            // A counter fades in the next window, and a bucket leaves a window after its end.
            Algorithm::SlidingCounter | Algorithm::SlidingBuckets(..) => 2 * window_us,
            _ => window_us,
        };
        if S::FOLLOWS_CLOCK {
            ensure!(retry_us(&denied) <= end_us, "{algorithm}: a wait of {} us", retry_us(&denied));
            repeats_an_hour_as_any_other(&subject, back_us, &rule).await?;
        } else {
            let step_us = BOUNDARY_US + 3 * SECOND_US - back_us;
            ensure!(retry_us(&denied) <= step_us + end_us, "{algorithm}: a wait of {} us", retry_us(&denied));
            repeats_an_hour_standing_still(&subject, back_us, &rule).await?;
        }
        subject.admit(BOUNDARY_US + MINUTE_US, &rule, 5).await?;
    }
    Ok(())
}

/// Of five units three were used before the hour that is repeated: they count until its end.
async fn repeats_an_hour_standing_still<S: Store>(
    subject: &Subject<S>,
    back_us: u64,
    rule: &Rule,
) -> Result<(), String> {
    let mut admitted = 3;
    for step in 0..60 {
        admitted += u64::from(subject.ask(back_us + step * MINUTE_US, rule, 1).await?.allowed());
    }
    let algorithm = rule.algorithm();
    ensure!(admitted <= 5, "{algorithm}: {admitted} of 5 while the clock repeats an hour");
    Ok(())
}

/// The three used units count in the first minute only; every later minute has its five.
async fn repeats_an_hour_as_any_other<S: Store>(
    subject: &Subject<S>,
    back_us: u64,
    rule: &Rule,
) -> Result<(), String> {
    let algorithm = rule.algorithm();
    for (minute, expected) in [(0, 2), (1, 5), (2, 5), (59, 5)] {
        let mut admitted = 0;
        for _ in 0..6 {
            let decision = subject.ask(back_us + minute * MINUTE_US, rule, 1).await?;
            admitted += u64::from(decision.allowed());
        }
        ensure_eq!(admitted, expected, "{algorithm}: units in minute {minute} of the repeated hour");
    }
    Ok(())
}

/// After a jump ahead entries expire early; but a peek at a later time drops nothing, and a charge there counts
/// until the clock has caught up.
pub async fn a_clock_that_jumps_ahead_expires_entries<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["5/10s"], algorithm));
        let ahead_us = BOUNDARY_US + 60 * MINUTE_US;
        subject.admit(BOUNDARY_US, &rule, 5).await?;
        ensure!(subject.passes(ahead_us, &rule, 5).await?, "{algorithm}: an hour later it still counts");
        ensure!(!subject.passes(BOUNDARY_US, &rule, 1).await?, "{algorithm}: looking ahead dropped it");
        subject.admit(ahead_us, &rule, 5).await?;
        ensure!(!subject.passes(BOUNDARY_US, &rule, 1).await?, "{algorithm}: over the limit after a leap");
    }
    Ok(())
}

/// Calls without a time use the store's own clock, for all verbs.
pub async fn calls_without_a_time_use_the_stores_clock<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    let (subject, rule) = (Subject::new(fresh).await, rule("api", &["3/400d"], Algorithm::SlidingLog));
    let ask = admission(&[(&rule, "alice", 1)])?;
    let store = &subject.0;
    let mut receipts = Vec::new();
    for _ in 0..3 {
        let outcome = store.check(Call::now(), &ask).await.map_err(|error| error.to_string())?;
        receipts.push(outcome.receipt().ok_or("an admission now has no receipt")?);
    }
    let denied = store.peek(Call::now(), &ask).await.map_err(|error| error.to_string())?;
    let window_us = rule.limits()[0].window_us();
    ensure!(!denied.allowed(), "a fourth of three within 400 days passes");
    ensure!((1..=window_us).contains(&retry_us(&denied)), "a wait of {} us", retry_us(&denied));
    let refunded =
        store.update(Call::now(), Update::Refund(&receipts[0])).await.map_err(|error| error.to_string())?;
    ensure_eq!(refunded.units, 1, "a refund now");
    let settled = store
        .update(Call::now(), Update::Settle(&receipts[1], 0))
        .await
        .map_err(|error| error.to_string())?;
    ensure_eq!(settled.units, 1, "a settlement now");
    let usages = store.inspect(Call::now(), &rule, key("alice")).await.map_err(|error| error.to_string())?;
    ensure_eq!(usages.iter().map(|usage| usage.used).collect::<Vec<_>>(), [1], "used now");
    ensure!(whole_us(usages[0].reset_after) <= window_us, "a reset after more than a window");
    store.change(Call::now(), &rule).await.map_err(|error| error.to_string())?;
    let credited = store.update(Call::now(), Update::Credit(Charge::new(&rule, key("alice"), 1))).await;
    ensure_eq!(credited.map_err(|error| error.to_string())?.units, 1, "a credit now");
    let reset = store
        .update(Call::now(), Update::Reset(&rule, key("alice")))
        .await
        .map_err(|error| error.to_string())?;
    ensure_eq!(reset.units, 0, "a reset now of what was given back");
    Ok(())
}
