//! The verbs without waiting and without outages.

use std::time::Duration;

use super::subject::{WINDOW, answered, limited, shadow, shown, ten, used, used_by};
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::Decision;
use crate::key::{KEY_BYTES_MAX, Key, KeyError};
use crate::limiter::Limiter;
use crate::receipt::{Applied, Receipt};
use crate::rule::Algorithm;
use crate::store::{CheckError, Store, UpdateError};
use crate::testing::trace;
use crate::time::Timer;

/// `check`, `check_n`, `peek` and `inspect`: an admission is charged, a denial and a peek are not, and the
/// numbers are those of the rule.
pub async fn checks_charge_and_deny<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let limiter = Limiter::new(fresh().await);
        let api = limited("api", "10/400d", algorithm);
        let peeked = answered(limiter.peek_async(&api, "alice").await)?;
        ensure_eq!(shown(&peeked), (true, Some(0), Some(10)), "{algorithm}: a peek of a key that is new");
        ensure!(peeked.receipt().is_none() && !peeked.is_charged(), "{algorithm}: a peek has a receipt");

        let first = answered(limiter.check_async(&api, "alice").await)?;
        ensure_eq!(shown(&first), (true, Some(1), Some(9)), "{algorithm}: one unit");
        ensure_eq!(first.retry_after(), Some(Duration::ZERO), "{algorithm}: the wait of an admission");
        ensure_eq!((first.rule(), first.limit()), ("api", Some(10)), "{algorithm}: the rule");
        ensure_eq!(first.window(), Some(WINDOW), "{algorithm}: the window");
        ensure!(first.is_charged() && !first.degraded(), "{algorithm}: an admission was charged");

        let rest = answered(limiter.check_n_async(&api, "alice", 9).await)?;
        ensure_eq!(shown(&rest), (true, Some(10), Some(0)), "{algorithm}: nine units");
        for _ in 0..2 {
            let denied = answered(limiter.check_async(&api, "alice").await)?;
            ensure_eq!(shown(&denied), (false, Some(10), Some(0)), "{algorithm}: the eleventh unit");
            let wait = denied.retry_after();
            ensure!(
                wait > Some(Duration::ZERO) && wait <= Some(2 * WINDOW),
                "{algorithm}: a wait of {wait:?}"
            );
            ensure!(denied.receipt().is_none(), "{algorithm}: a denial has a receipt");
        }
        ensure!(!answered(limiter.peek_async(&api, "alice").await)?.allowed(), "{algorithm}: a peek passes");
        ensure_eq!(used(&limiter, &api).await?, 10, "{algorithm}: used");
        ensure_eq!(used_by(&limiter, &api, "bob").await?, 0, "{algorithm}: used by another key");
    }
    Ok(())
}

/// `check_all`, `peek_all` and `decide`: all charges or none, those on one state summed.
pub async fn several_charges_pass_together<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let (quota, search, watched) = (ten("quota"), ten("search"), shadow("watched"));
    let charges = [ask(&quota, 4)?, ask(&search, 6)?, ask(&quota, 1)?, ask(&watched, 8)?];
    let peeked = answered(limiter.peek_all_async(&charges).await)?;
    ensure!(peeked.allowed() && peeked.receipt().is_none(), "a peek of all charges");
    let admitted = answered(limiter.check_all_async(&charges).await)?;
    ensure_eq!(shown(&admitted), (true, Some(6), Some(4)), "three states");
    ensure_eq!(admitted.rule(), "search", "the rule of the least remaining");
    let costs: Vec<u64> = admitted.verdicts().map(|verdict| verdict.cost()).collect();
    ensure_eq!(costs, [5, 6, 5, 8], "a verdict per charge, of all charges on its state");
    let receipt = receipt_of(&admitted)?;
    ensure_eq!(receipt.charges().len(), 3, "charges of the receipt, one per state");

    let admission = Admission::new(&charges[..2]).map_err(|error| error.to_string())?;
    let denied = answered(limiter.decide_async(&admission).await)?;
    ensure_eq!((denied.allowed(), denied.rule()), (false, "search"), "6 and 6 of 10");
    let each: Vec<bool> = denied.verdicts().map(|verdict| verdict.allowed()).collect();
    ensure_eq!(each, [true, false], "each charge's own verdict");
    ensure_eq!(used(&limiter, &quota).await?, 5, "used of the rule that would have passed");
    if let Some(tried) = limiter.try_decide(&admission) {
        ensure_eq!(answered(tried)?.allowed(), false, "the same, decided at once");
    }

    let over = answered(limiter.check_all_async(&[ask(&watched, 3)?, ask(&quota, 1)?]).await)?;
    ensure!(over.allowed(), "a shadow rule refuses");
    ensure_eq!(
        over.verdicts().map(|verdict| verdict.allowed()).collect::<Vec<_>>(),
        [false, true],
        "a shadow"
    );
    ensure_eq!(receipt_of(&over)?.charges().len(), 1, "a shadow that would deny is not charged");
    ensure_eq!(answered(limiter.refund_async(&receipt).await)?, given(19), "a refund of three states");
    ensure_eq!(used(&limiter, &quota).await?, 1, "used after the refund");
    Ok(())
}

/// `check_batch`: each admission on its own, in their order.
pub async fn batches_answer_in_order<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let (api, other) = (ten("api"), ten("other"));
    let mut batch = Vec::new();
    for charges in [&[(&api, 7)][..], &[(&api, 4)], &[(&other, 1), (&api, 3)], &[(&api, 1)], &[(&other, 9)]] {
        let charges: Result<Vec<_>, _> = charges.iter().map(|(rule, cost)| ask(rule, *cost)).collect();
        batch.push(Admission::new(&charges?).map_err(|error| error.to_string())?);
    }
    let mut allowed = Vec::new();
    for decision in limiter.check_batch_async(&batch).await {
        let decision = answered(decision)?;
        ensure_eq!(decision.receipt().is_some(), decision.allowed(), "a receipt per admission");
        allowed.push(decision.allowed());
    }
    ensure_eq!(allowed, [true, false, true, false, true], "7, 4, 3, 1 of 10 and 1, 9 of another 10");
    ensure!(limiter.check_batch_async(&[]).await.is_empty(), "a batch of nothing has answers");
    Ok(())
}

/// Two calls of `receipt` return the same receipt, which gives one refund; its id is unique.
pub async fn receipts_are_made_once<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let limiter = Limiter::new(fresh().await);
        let (api, other) = (limited("api", "10/400d", algorithm), limited("other", "10/400d", algorithm));
        let single = answered(limiter.check_n_async(&api, "alice", 2).await)?;
        let several = answered(limiter.check_all_async(&[ask(&api, 3)?, ask(&other, 3)?]).await)?;
        ensure!(
            receipt_of(&single)?.id() != receipt_of(&several)?.id(),
            "{algorithm}: two receipts of one id"
        );
        for (decision, units) in [(&single, 2), (&several, 6)] {
            let (first, second) = (receipt_of(decision)?, receipt_of(decision)?);
            ensure_eq!(&first, &second, "{algorithm}: a receipt that was asked for twice");
            let refunded = answered(limiter.refund_async(&first).await)?;
            // gcra's line has drained a little since, and only whole units are given back.
            let least = if algorithm == Algorithm::Gcra { 1 } else { units };
            ensure!(
                refunded.applied && (least..=units).contains(&refunded.units),
                "{algorithm}: {refunded:?}"
            );
            let again = answered(limiter.refund_async(&second).await)?;
            ensure_eq!(again, Applied::default(), "{algorithm}: a refund by the second copy");
            let settled = answered(limiter.settle_async(&second, 1).await)?;
            ensure_eq!(settled, Applied::default(), "{algorithm}: a settlement by the second copy");
        }
        let used = used(&limiter, &api).await?;
        ensure!(used == 0 || algorithm == Algorithm::Gcra && used < 5, "{algorithm}: {used} used of 5");
    }
    Ok(())
}

/// `refund`, `settle`, `credit` and `reset`, also for a key without charges. Not for `gcra`: on a running clock the
/// units that it gives back are not known exactly.
pub async fn refunds_settlements_credits_and_resets_give_back<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    for algorithm in trace::algorithms().into_iter().filter(|&algorithm| algorithm != Algorithm::Gcra) {
        let limiter = Limiter::new(fresh().await);
        let api = limited("api", "10/400d", algorithm);
        ensure_eq!(
            answered(limiter.reset_async(&api, "alice").await)?,
            Applied::default(),
            "{algorithm}: a reset"
        );
        let credited = answered(limiter.credit_async(&api, "alice", 1).await)?;
        ensure_eq!(credited, Applied::default(), "{algorithm}: a credit of a key that is new");

        let estimate = receipt_of(&answered(limiter.check_n_async(&api, "alice", 6).await)?)?;
        ensure_eq!(
            answered(limiter.settle_async(&estimate, 2).await)?,
            given(4),
            "{algorithm}: settled for less"
        );
        ensure_eq!(used(&limiter, &api).await?, 2, "{algorithm}: used after it");
        let estimate = receipt_of(&answered(limiter.check_async(&api, "alice").await)?)?;
        ensure_eq!(
            answered(limiter.settle_async(&estimate, 8).await)?,
            given(7),
            "{algorithm}: settled for more"
        );
        ensure!(!answered(limiter.peek_async(&api, "alice").await)?.allowed(), "{algorithm}: 10 of 10 used");
        ensure_eq!(
            answered(limiter.credit_async(&api, "alice", 3).await)?,
            given(3),
            "{algorithm}: a credit"
        );
        let receipt = receipt_of(&answered(limiter.check_n_async(&api, "alice", 3).await)?)?;
        ensure_eq!(answered(limiter.refund_async(&receipt).await)?, given(3), "{algorithm}: a refund");
        let void = receipt_of(&answered(limiter.check_async(&api, "alice").await)?)?;
        ensure_eq!(
            answered(limiter.reset_async(&api, "alice").await)?,
            given(8),
            "{algorithm}: a reset of 8"
        );
        let refunded = answered(limiter.refund_async(&void).await)?;
        ensure_eq!(refunded, Applied::default(), "{algorithm}: a refund of what was reset");
        ensure_eq!(used(&limiter, &api).await?, 0, "{algorithm}: used after a reset");
    }
    Ok(())
}

/// An owned copy of a decision is equal to it, with its receipt, and outlives the rule and key.
pub async fn owned_decisions_are_equal<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let mut owned: Vec<Decision<'static>> = Vec::new();
    for algorithm in trace::algorithms() {
        let name = algorithm.to_string();
        let (api, watched, key) = (limited("api", "10/400d", algorithm), shadow("watched"), name.clone());
        for cost in [6, 3, 5] {
            let (single, beside) = ((&api, cost), (&watched, cost));
            for charges in [&[single][..], &[single, beside], &[beside]] {
                let charges: Result<Vec<_>, _> = charges
                    .iter()
                    .map(|&(rule, cost)| Ok(Charge::new(rule, Key::new(&key)?, cost)))
                    .collect();
                let charges = charges.map_err(|error: KeyError| error.to_string())?;
                let peeked = answered(limiter.peek_all_async(&charges).await)?;
                let decision = answered(limiter.check_all_async(&charges).await)?;
                for decision in [peeked, decision] {
                    let copy = decision.clone().into_owned();
                    ensure_eq!(&copy, &decision, "{algorithm}: an owned decision");
                    ensure_eq!(copy.binding(), decision.binding(), "{algorithm}: its binding verdict");
                    ensure_eq!(copy.is_charged(), decision.is_charged(), "{algorithm}: whether it charged");
                    ensure_eq!(copy.allowed(), decision.allowed(), "{algorithm}: whether it allows");
                    owned.push(copy);
                }
            }
        }
    }
    let mut units = 0;
    for receipt in owned.iter().filter_map(Decision::receipt) {
        units += answered(limiter.refund_async(&receipt).await)?.units;
    }
    ensure!(units > 0, "owned decisions gave back nothing");
    Ok(())
}

/// `change`: used units are kept; a new window's state starts with them.
pub async fn changes_take_over_what_is_used<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let api = ten("api");
    answered(limiter.check_n_async(&api, "alice", 4).await)?;
    for (rate, passes) in [("5/400d", true), ("4/400d", false), ("20/300d", true)] {
        let changed = limited("api", rate, api.algorithm());
        answered(limiter.change_async(&changed).await)?;
        ensure_eq!(used(&limiter, &changed).await?, 4, "used of {rate}");
        ensure_eq!(
            answered(limiter.peek_async(&changed, "alice").await)?.allowed(),
            passes,
            "a peek of {rate}"
        );
    }
    Ok(())
}

/// A bad key, cost or admission is an error of its own kind, and charges nothing.
pub async fn bad_arguments_are_errors<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let api = ten("api");
    let wait = Duration::from_secs(1);
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for (key, error) in [
        ("", KeyError::Empty),
        (&long, KeyError::TooLong { bytes: KEY_BYTES_MAX + 1 }),
        ("a\nb", KeyError::Control { character: '\n', offset: 1 }),
    ] {
        let (error, update) =
            (|| Some(CheckError::Key(error.clone())), || Some(UpdateError::Key(error.clone())));
        ensure_eq!(limiter.check_async(&api, key).await.err(), error(), "check");
        ensure_eq!(limiter.check_n_async(&api, key, 2).await.err(), error(), "check_n");
        ensure_eq!(limiter.peek_async(&api, key).await.err(), error(), "peek");
        ensure_eq!(limiter.acquire_async(timer, &api, key, wait).await.err(), error(), "acquire");
        ensure_eq!(limiter.credit_async(&api, key, 1).await.err(), update(), "credit");
        ensure_eq!(limiter.reset_async(&api, key).await.err(), update(), "reset");
        ensure_eq!(limiter.inspect_async(&api, key).await.err(), error(), "inspect");
    }
    let zero = || Some(CheckError::Charge(ChargeError::Zero { rule: "api".into() }));
    let never = |cost| Some(CheckError::Charge(ChargeError::Never { rule: "api".into(), cost, limit: 10 }));
    ensure_eq!(limiter.check_n_async(&api, "alice", 0).await.err(), zero(), "a cost of 0");
    ensure_eq!(limiter.check_n_async(&api, "alice", 11).await.err(), never(11), "a cost above the limit");
    for (charges, error) in [
        (&[][..], Some(CheckError::Charge(ChargeError::Count { count: 0 }))),
        (&[ask(&api, 0)?], zero()),
        (&[ask(&api, 1)?, ask(&api, 10)?], never(11)),
        (&[ask(&api, u64::MAX)?, ask(&api, 1)?], never(u64::MAX)),
    ] {
        ensure_eq!(limiter.check_all_async(charges).await.as_ref().err(), error.as_ref(), "check_all");
        ensure_eq!(limiter.peek_all_async(charges).await.as_ref().err(), error.as_ref(), "peek_all");
        ensure_eq!(
            limiter.acquire_all_async(timer, charges, wait).await.as_ref().err(),
            error.as_ref(),
            "acquire_all"
        );
    }
    let nothing = Some(UpdateError::ZeroCredit { rule: "api".into() });
    ensure_eq!(limiter.credit_async(&api, "alice", 0).await.err(), nothing, "a credit of 0");
    ensure_eq!(used(&limiter, &api).await?, 0, "used");
    let stats = limiter.stats();
    ensure_eq!((stats.waiting, stats.store_failures, stats.degraded), (0, 0, 0), "statistics");
    ensure_eq!(stats.store, limiter.store().stats(), "statistics of the store");
    Ok(())
}

/// A charge for alice.
pub(super) fn ask(rule: &crate::rule::Rule, cost: u64) -> Result<Charge<'_>, String> {
    rule.charge("alice", cost).map_err(|error| error.to_string())
}

pub(super) fn receipt_of(decision: &Decision<'_>) -> Result<Receipt, String> {
    decision.receipt().ok_or_else(|| format!("no receipt: {decision:?}"))
}

fn given(units: u64) -> Applied {
    Applied { applied: true, units }
}
