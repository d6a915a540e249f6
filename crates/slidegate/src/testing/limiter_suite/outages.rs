//! The outage policy.

use std::borrow::Borrow;
use std::time::Duration;

use super::subject::{answered, shown, ten, used, with_policy};
use super::verbs::{ask, receipt_of};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::guard::GuardOptions;
use crate::limiter::{Core, Limiter};
use crate::rule::{OnStoreError, Rule};
use crate::store::{CheckError, Store, StoreError, UpdateError};
use crate::testing::{FailingStore, StoreFailure};
use crate::time::Timer;

const WAIT: Duration = Duration::from_secs(1);

fn local() -> OnStoreError {
    OnStoreError::Local("0.5".parse().expect("a share"))
}

/// A limiter whose store fails on demand, without a circuit breaker: every call finds out for itself.
async fn limiter<S: Store>(fresh: &impl AsyncFn() -> S) -> Limiter<FailingStore<S>> {
    let options = GuardOptions::default().breaker(false).deny_cache(Duration::ZERO);
    Limiter::guarded(FailingStore::new(fresh().await), options)
}

type VerbResult<'a> = (&'static str, Result<Decision<'a>, CheckError>);

/// The results of every verb with an outage policy for the same charges.
async fn every_way<'a, S: Store, H: Borrow<Core<S>>>(
    limiter: &Limiter<S, H>,
    timer: &impl Timer,
    charges: &[Charge<'a>],
) -> Result<Vec<VerbResult<'a>>, String> {
    let admission = Admission::new(charges).map_err(|error| error.to_string())?;
    let mut answers = vec![
        ("check_all", limiter.check_all_async(charges).await),
        ("decide", limiter.decide_async(&admission).await),
        ("peek_all", limiter.peek_all_async(charges).await),
        ("peek_admission", limiter.peek_admission_async(&admission).await),
        ("acquire_all", limiter.acquire_all_async(timer, charges, WAIT).await),
    ];
    if let Some(tried) = limiter.try_decide(&admission) {
        answers.push(("try_decide", tried));
    }
    let batch = [admission.clone(), admission];
    answers.extend(limiter.check_batch_async(&batch).await.into_iter().map(|answer| ("check_batch", answer)));
    if let [charge] = charges {
        let (rule, key) = (charge.rule(), charge.key());
        answers.push(("check", limiter.check_async(rule, key).await));
        answers.push(("check_n", limiter.check_n_async(rule, key, charge.cost()).await));
        answers.push(("peek", limiter.peek_async(rule, key).await));
        answers.push(("acquire", limiter.acquire_async(timer, rule, key, WAIT).await));
    }
    Ok(answers)
}

/// Checks that each answer is the store's error.
fn all_deny(answers: Vec<VerbResult<'_>>, error: &StoreError) -> Result<(), String> {
    for (verb, answer) in answers {
        ensure_eq!(answer.err(), Some(CheckError::Store(error.clone())), "{verb} under `deny`");
    }
    Ok(())
}

/// Checks that each answer is a degraded admission without numbers.
fn all_allow(answers: Vec<VerbResult<'_>>, error: &StoreError, charges: usize) -> Result<(), String> {
    for (verb, answer) in answers {
        let decision = answered(answer)?;
        ensure!(decision.allowed() && decision.degraded(), "{verb} under `allow`: {decision:?}");
        ensure_eq!(decision.store_error(), Some(error), "{verb}: the cause");
        let numbers = (decision.used(), decision.remaining(), decision.limit());
        ensure_eq!(numbers, (None, None, None), "{verb}: used, remaining and limit");
        ensure_eq!((decision.reset_after(), decision.window()), (None, None), "{verb}: reset and window");
        ensure_eq!(decision.retry_after(), Some(Duration::ZERO), "{verb}: the wait of an admission");
        ensure!(
            decision.receipt().is_none() && !decision.is_charged(),
            "{verb}: a receipt of a degraded answer"
        );
        ensure_eq!(decision.verdicts().count(), charges, "{verb}: verdicts");
        ensure!(
            decision.verdicts().all(|verdict| verdict.allowed() && verdict.used().is_none()),
            "{verb}: each"
        );
        ensure_eq!(decision.clone().into_owned(), decision, "{verb}: an owned copy");
    }
    Ok(())
}

/// Checks that each answer is a degraded decision by a limit of `limit` units in this process, with its numbers.
fn all_local(answers: Vec<VerbResult<'_>>, error: &StoreError, limit: u64) -> Result<(), String> {
    for (verb, answer) in answers {
        let decision = answered(answer)?;
        ensure_eq!(decision.store_error(), Some(error), "{verb}: the cause");
        ensure_eq!(decision.limit(), Some(limit), "{verb}: the share of the limit");
        let used = decision.used().unwrap_or(u64::MAX);
        ensure!(used <= limit, "{verb}: {used} used of {limit}");
        ensure_eq!(decision.remaining(), Some(limit - used), "{verb}: remaining");
        ensure!(decision.receipt().is_none(), "{verb}: a receipt of a degraded answer");
        if !decision.allowed() {
            ensure_eq!(used, limit, "{verb}: used at a denial of one unit");
            ensure!(decision.retry_after() > Some(Duration::ZERO), "{verb}: the wait");
        }
        ensure_eq!(decision.clone().into_owned(), decision, "{verb}: an owned copy");
    }
    Ok(())
}

/// `deny` returns the store's error, `allow` a degraded decision without numbers, and `local` one by a limit within the
/// process: per rule and per call, for every kind of failure.
pub async fn the_policy_answers_for_a_failed_store<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let rules = [
        with_policy("deny", OnStoreError::Deny, false),
        with_policy("allow", OnStoreError::Allow, false),
        with_policy("local", local(), false),
    ];
    let [deny, allow, local_rule] = &rules;
    let limiter = limiter(fresh).await;
    for failure in StoreFailure::ALL {
        limiter.store().fail(failure);
        let error = failure.error();
        all_deny(every_way(&limiter, timer, &[ask(deny, 1)?]).await?, &error)?;
        all_local(every_way(&limiter, timer, &[ask(local_rule, 1)?]).await?, &error, 5)?;
        all_allow(every_way(&limiter, timer, &[ask(allow, 1)?]).await?, &error, 1)?;
        for rule in &rules {
            let lenient = limiter.with_outage_policy(OnStoreError::Allow);
            all_allow(every_way(&lenient, timer, &[ask(rule, 1)?]).await?, &error, 1)?;
            let strict = lenient.with_outage_policy(OnStoreError::Deny);
            let strict = strict.with_deadline(WAIT);
            all_deny(every_way(&strict, timer, &[ask(rule, 1)?]).await?, &error)?;
            let within = lenient.with_outage_policy(local());
            all_local(every_way(&within, timer, &[ask(rule, 1)?]).await?, &error, 5)?;
        }
        let both = [ask(deny, 1)?, ask(allow, 1)?];
        all_deny(every_way(&limiter, timer, &both).await?, &error)?;
        let lenient = limiter.with_outage_policy(OnStoreError::Allow);
        all_allow(every_way(&lenient, timer, &both).await?, &error, 2)?;
        // An unlimited charge beside it changes nothing.
        let text = |error: crate::charge::ChargeError| error.to_string();
        let beside = Admission::partly_unlimited(&both, |index| index == 0).map_err(text)?;
        all_allow(vec![("beside", limiter.decide_async(&beside).await)], &error, 2)?;
        let beside = Admission::partly_unlimited(&both, |index| index == 1).map_err(text)?;
        all_deny(vec![("beside", limiter.decide_async(&beside).await)], &error)?;
        limiter.store().recover();
        for rule in &rules {
            answered(limiter.reset_async(rule, "alice").await)?;
            let decision = answered(limiter.check_async(rule, "alice").await)?;
            ensure!(decision.allowed() && !decision.degraded(), "after {failure:?}: {decision:?}");
            answered(limiter.reset_async(rule, "alice").await)?;
        }
    }
    Ok(())
}

/// Of several rules the strictest decides, in any order. Shadow rules take no part, and alone they admit.
pub async fn the_strictest_rule_decides<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let deny = (OnStoreError::Deny, false);
    let allow = (OnStoreError::Allow, false);
    let (shadow_deny, shadow_allow) = ((OnStoreError::Deny, true), (OnStoreError::Allow, true));
    let limiter = limiter(fresh).await;
    limiter.store().fail(StoreFailure::Refused);
    for (policies, passes) in [
        (&[allow, allow][..], true),
        (&[allow, deny], false),
        (&[allow, shadow_deny], true),
        (&[deny, shadow_allow], false),
        (&[shadow_deny], true),
        (&[shadow_deny, shadow_allow], true),
    ] {
        let numbered = policies.iter().enumerate();
        let rules: Vec<Rule> = numbered
            .map(|(number, &(policy, shadow))| with_policy(&format!("rule:{number}"), policy, shadow))
            .collect();
        let charges: Result<Vec<_>, _> = rules.iter().map(|rule| ask(rule, 1)).collect();
        let mut charges = charges?;
        for _ in 0..2 {
            let answers = vec![
                ("check_all", limiter.check_all_async(&charges).await),
                ("peek_all", limiter.peek_all_async(&charges).await),
            ];
            let judged = if passes {
                all_allow(answers, &StoreFailure::Refused.error(), charges.len())
            } else {
                all_deny(answers, &StoreFailure::Refused.error())
            };
            judged.map_err(|story| format!("{policies:?}: {story}"))?;
            charges.reverse();
        }
    }
    Ok(())
}

/// A local limit is stricter than `allow`, and `deny` stricter than both. What a local limit denies charges none of them,
/// and a cost above the share has no wait.
pub async fn local_limits_deny_together<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = limiter(fresh).await;
    let failure = StoreFailure::Unavailable;
    limiter.store().fail(failure);
    let [deny, allow, half, tenth, shadow] = [
        ("deny", OnStoreError::Deny, false),
        ("allow", OnStoreError::Allow, false),
        ("half", local(), false),
        ("tenth", OnStoreError::Local("0.01".parse().expect("a share")), false),
        ("shadow", local(), true),
    ]
    .map(|(name, policy, shadow)| with_policy(name, policy, shadow));
    let all = [ask(&half, 1)?, ask(&allow, 1)?, ask(&deny, 1)?];
    all_deny(vec![("check_all", limiter.check_all_async(&all).await)], &failure.error())?;

    let lenient = [ask(&allow, 9)?, ask(&half, 3)?, ask(&shadow, 9)?];
    let admitted = answered(limiter.check_all_async(&lenient).await)?;
    ensure!(admitted.allowed(), "a local limit admits: {admitted:?}");
    ensure_eq!(shown(&admitted), (true, Some(3), Some(2)), "the local limit binds");
    ensure_eq!(admitted.verdicts().count(), 3, "verdicts");
    let denied = answered(limiter.check_all_async(&[ask(&half, 3)?, ask(&tenth, 1)?]).await)?;
    ensure_eq!((denied.allowed(), denied.rule()), (false, "half"), "3 of 2 units left");
    ensure!(denied.retry_after() > Some(Duration::ZERO), "the wait until they pass");
    let one = answered(limiter.check_async(&tenth, "alice").await)?;
    ensure_eq!(
        shown(&one),
        (true, Some(1), Some(0)),
        "a share is at least one unit, and the denial charged none"
    );

    for charges in [vec![ask(&half, 6)?], vec![ask(&half, 6)?, ask(&tenth, 1)?]] {
        let denied = answered(limiter.check_all_async(&charges).await)?;
        ensure!(!denied.allowed() && denied.degraded(), "more than the share: {denied:?}");
        ensure_eq!(denied.retry_after(), None, "the wait of what never passes");
    }
    let peeked = answered(limiter.peek_async(&half, "alice").await)?;
    ensure_eq!(shown(&peeked), (true, Some(3), Some(2)), "a peek charges nothing");
    Ok(())
}

/// Only a lost answer may have charged; all other failures charged nothing.
pub async fn a_failure_says_whether_it_charged<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for failure in StoreFailure::ALL {
        for policy in [OnStoreError::Deny, OnStoreError::Allow] {
            let (limiter, api) = (limiter(fresh).await, ten("api"));
            limiter.store().fail(failure);
            let view = limiter.with_outage_policy(policy);
            let error = match view.check_n_async(&api, "alice", 3).await {
                Ok(decision) => decision.store_error().cloned(),
                Err(CheckError::Store(error)) => Some(error),
                Err(other) => return Err(format!("{failure:?}: {other}")),
            };
            limiter.store().recover();
            let charged = used(&limiter, &api).await?;
            ensure_eq!(charged, if failure == StoreFailure::Ambiguous { 3 } else { 0 }, "{failure:?}: used");
            ensure_eq!(
                error.map(|error| error.maybe_charged()),
                Some(charged > 0),
                "{failure:?}: what it says"
            );
        }
    }
    Ok(())
}

/// A bad key, a cost that can never pass or an empty list of charges is not an outage: no policy applies, and no store
/// is asked.
pub async fn argument_errors_are_not_outages<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let (limiter, api) = (limiter(fresh).await, with_policy("api", OnStoreError::Allow, false));
    limiter.store().fail(StoreFailure::Unavailable);
    let view = limiter.with_outage_policy(OnStoreError::Allow);
    let answers = [
        view.check_async(&api, "").await,
        view.check_n_async(&api, "alice", 0).await,
        view.check_n_async(&api, "alice", 11).await,
        view.check_all_async(&[]).await,
        view.peek_async(&api, "a\tb").await,
        view.peek_all_async(&[ask(&api, 11)?]).await,
        view.acquire_async(timer, &api, "", WAIT).await,
        view.acquire_all_async(timer, &[ask(&api, 11)?], WAIT).await,
    ];
    for answer in answers {
        let callers = matches!(&answer, Err(CheckError::Key(_) | CheckError::Charge(_)));
        ensure!(callers, "an error of the caller is answered with {answer:?}");
    }
    ensure_eq!(limiter.store().calls(), 0, "calls of the store");
    ensure_eq!((limiter.stats().store_failures, limiter.stats().degraded), (0, 0), "statistics");
    Ok(())
}

/// Refunds, settlements, credits, resets, changes and inspections have no policy: they return the store's error.
pub async fn verbs_without_a_policy_return_the_error<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    let (limiter, api) = (limiter(fresh).await, with_policy("api", OnStoreError::Allow, false));
    let receipt = receipt_of(&answered(limiter.check_async(&api, "alice").await)?)?;
    for failure in [StoreFailure::Unavailable, StoreFailure::Refused, StoreFailure::Full] {
        limiter.store().fail(failure);
        let view = limiter.with_outage_policy(OnStoreError::Allow);
        let error = failure.error();
        let returned = Err(UpdateError::Store(error.clone()));
        ensure_eq!(&view.refund_async(&receipt).await, &returned, "refund");
        ensure_eq!(&view.settle_async(&receipt, 0).await, &returned, "settle");
        ensure_eq!(&view.credit_async(&api, "alice", 1).await, &returned, "credit");
        ensure_eq!(&view.reset_async(&api, "alice").await, &returned, "reset");
        ensure_eq!(view.inspect_async(&api, "alice").await, Err(CheckError::Store(error.clone())), "inspect");
        ensure_eq!(view.change_async(&api).await, Err(error), "change");
    }
    limiter.store().recover();
    ensure_eq!((limiter.stats().store_failures, limiter.stats().degraded), (0, 0), "statistics");
    ensure_eq!(answered(limiter.refund_async(&receipt).await)?.units, 1, "a refund after the outage");
    Ok(())
}

/// Each failed check and peek is counted, and each that the policy admitted; also through views.
pub async fn failures_and_degraded_answers_are_counted<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let (limiter, api) = (limiter(fresh).await, ten("api"));
    let charges = [ask(&api, 1)?];
    every_way(&limiter, timer, &charges).await?;
    let counted = |limiter: &Limiter<FailingStore<S>>| {
        let stats = limiter.stats();
        (stats.store_failures, stats.degraded)
    };
    ensure_eq!(counted(&limiter), (0, 0), "a store that works");
    limiter.store().fail(StoreFailure::Full);
    let denied = every_way(&limiter, timer, &charges).await?.len() as u64;
    ensure_eq!(counted(&limiter), (denied, 0), "under `deny`");
    let view = limiter.with_outage_policy(OnStoreError::Allow);
    let admitted = every_way(&view, timer, &charges).await?.len() as u64;
    ensure_eq!(counted(&limiter), (denied + admitted, admitted), "under `allow`");
    ensure_eq!(view.stats(), limiter.stats(), "statistics of a view");
    ensure_eq!(limiter.stats().waiting, 0, "waiting");
    ensure_eq!(limiter.stats().store, limiter.store().inner().stats(), "statistics of the store");
    Ok(())
}
