//! Several charges in one admission, several admissions in one call.

use super::subject::{BOUNDARY_US, Request, SECOND_US, Subject, admission, retry_us, rule, shadow};
use crate::rule::Algorithm;
use crate::store::{Call, Store};
use crate::testing::model::ModelDecision;
use crate::testing::trace;

/// Several charges are admitted together or not at all, in any order; a denial has each charge's verdict.
pub async fn several_charges_pass_together_or_not_at_all<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (quota, search) = (rule("quota", &["100/1h"], algorithm), rule("search", &["2/1m"], algorithm));
        for reversed in [false, true] {
            let subject = Subject::new(fresh).await;
            let mut both: [Request<'_>; 2] = [(&quota, "alice", 10), (&search, "bob", 1)];
            if reversed {
                both.reverse();
            }
            for _ in 0..2 {
                let outcome = subject.check(BOUNDARY_US, &both).await?;
                ensure!(outcome.allowed(), "{algorithm}: both have room, but are denied");
                let charged = outcome.receipt().map(|receipt| receipt.charges().len());
                ensure_eq!(charged, Some(2), "{algorithm}: charges on the receipt");
            }
            let denied = subject.check(BOUNDARY_US, &both).await?;
            ensure!(!denied.allowed(), "{algorithm}: one has no room, but both are admitted");
            ensure!(denied.receipt().is_none(), "{algorithm}: a denial has a receipt");
            for (verdict, (rule, ..)) in denied.verdicts().zip(&both) {
                let promised = (rule.name(), rule.name() == "quota");
                ensure_eq!((verdict.rule(), verdict.allowed()), promised, "{algorithm}: verdicts in order");
            }
            ensure_eq!(subject.used(BOUNDARY_US, &quota).await?, 20, "{algorithm}: charged although denied");
            subject.wait_is_exact(BOUNDARY_US, &both, &denied).await?;
        }
    }
    Ok(())
}

/// Charges on the same state are summed before anything is decided.
pub async fn charges_on_one_state_are_summed<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["10/10s"], algorithm));
        let twice = subject.check(BOUNDARY_US, &[(&rule, "alice", 2), (&rule, "alice", 3)]).await?;
        let numbers: Vec<_> = twice.verdicts().map(|verdict| (verdict.allowed(), verdict.used())).collect();
        ensure_eq!(numbers, [(true, Some(5)); 2], "{algorithm}: verdicts of 2 and 3 units");
        let charged = twice.receipt().map(|receipt| receipt.charges().len());
        ensure_eq!(charged, Some(1), "{algorithm}: charges on the receipt");
        let split = subject.check(BOUNDARY_US, &[(&rule, "alice", 3), (&rule, "alice", 3)]).await?;
        ensure!(!split.allowed(), "{algorithm}: 3 and 3 of 5 pass one by one");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 5, "{algorithm}: used");
    }
    Ok(())
}

/// The binding rule: on an admission the one with the least left, on a denial the one with the latest wait;
/// ties go to the longest window, then to the first. Waits and resets are the latest of all.
pub async fn the_binding_rule_is_named<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (quota, search) = (rule("quota", &["10/1h"], algorithm), rule("search", &["8/1m"], algorithm));
        let subject = Subject::new(fresh).await;
        let both = |cost| [(&search, "alice", cost), (&quota, "alice", cost)];
        let admitted = subject.check(BOUNDARY_US, &both(4)).await?;
        let numbers = (admitted.rule(), admitted.limit(), admitted.used(), admitted.remaining());
        ensure_eq!(numbers, ("search", Some(8), Some(4), Some(4)), "{algorithm}: the least left");
        let resets = admitted.verdicts().map(|verdict| verdict.reset_after());
        ensure_eq!(Some(admitted.reset_after()), resets.max(), "{algorithm}: the latest reset");
        subject.admit(BOUNDARY_US, &quota, 2).await?;
        let tied = subject.peek(BOUNDARY_US, &both(1)).await?;
        ensure_eq!((tied.rule(), tied.remaining()), ("quota", Some(4)), "{algorithm}: equally much left");
        let denied = subject.check(BOUNDARY_US, &both(8)).await?;
        let wait_us = retry_us(&subject.peek(BOUNDARY_US, &[(&quota, "alice", 8)]).await?);
        ensure_eq!((denied.rule(), retry_us(&denied)), ("quota", wait_us), "{algorithm}: the latest wait");
    }
    Ok(())
}

/// A shadow rule takes no part in the decision; it is charged if it would admit, and not charged if it would deny.
pub async fn shadows_never_refuse<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (api, tried) = (rule("api", &["10/10s"], algorithm), shadow("tried", &["3/10s"], algorithm));
        let subject = Subject::new(fresh).await;
        let both = [(&tried, "alice", 2), (&api, "alice", 2)];
        for (number, watched) in [(1, 2), (2, 2), (3, 2)] {
            let decision = subject.check(BOUNDARY_US, &both).await?;
            let answer = (decision.allowed(), decision.rule(), decision.used());
            ensure_eq!(answer, (true, "api", Some(2 * number)), "{algorithm}: beside a shadow");
            let verdict = decision.verdicts().next().ok_or("no verdict")?;
            ensure_eq!(verdict.allowed(), number == 1, "{algorithm}: what the shadow says to check {number}");
            ensure_eq!(subject.used(BOUNDARY_US, &tried).await?, watched, "{algorithm}: what it counts");
        }
        let alone = subject.check(BOUNDARY_US, &[(&tried, "alice", 2)]).await?;
        ensure!(alone.allowed(), "{algorithm}: a shadow alone refuses");
        ensure!(alone.receipt().is_none(), "{algorithm}: nothing was charged, but there is a receipt");
        let never = subject.check(BOUNDARY_US, &[(&tried, "bob", 4)]).await?;
        let answer = (never.allowed(), never.verdicts().all(|verdict| verdict.allowed()));
        ensure_eq!(answer, (true, false), "{algorithm}: a shadow asked for more than its limit");
    }
    Ok(())
}

/// A batch answers like the same checks one after the other.
pub async fn batches_answer_in_order<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let (api, search) =
        (rule("api", &["3/10s"], Algorithm::SlidingLog), rule("search", &["2/10s"], Algorithm::Gcra));
    let (batched, singly) = (Subject::new(fresh).await, Subject::new(fresh).await);
    let mut batch = Vec::new();
    for name in ["alice", "bob", "alice", "carol", "alice"] {
        batch.push(admission(&[(&api, name, 1), (&search, name, 1)])?);
    }
    for step in 0..3 {
        let when = Call::at_us(BOUNDARY_US + step * SECOND_US);
        let outcomes = batched.0.check_batch(when, &batch).await;
        ensure_eq!(outcomes.len(), batch.len(), "answers to a batch");
        for (number, (outcome, admission)) in outcomes.into_iter().zip(&batch).enumerate() {
            let outcome = outcome.map_err(|error| error.to_string())?;
            let alone = singly.0.check(when, admission).await.map_err(|error| error.to_string())?;
            let answers = [&outcome, &alone].map(|outcome| ModelDecision::of(outcome));
            ensure_eq!(&answers[0], &answers[1], "admission {number} of batch {step}");
            ensure_eq!(outcome.receipt().is_some(), alone.receipt().is_some(), "its receipt");
        }
    }
    Ok(())
}
