//! Charges that an override leaves unlimited.

use std::time::Duration;

use super::subject::{answered, shown, ten, used, used_by};
use super::verbs::{ask, receipt_of};
use crate::charge::Admission;
use crate::limiter::Limiter;
use crate::store::Store;
use crate::testing::{FailingStore, StoreFailure};

/// Unlimited charges pass, alone and beside limited ones, and no key is charged for them.
pub async fn unlimited_charges_are_charged_nowhere<S: Store>(
    fresh: &impl AsyncFn() -> S,
) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let (api, other) = (ten("api"), ten("other"));
    let charges = [ask(&api, 50)?, ask(&other, 6)?];
    let text = |error: crate::charge::ChargeError| error.to_string();
    let alone = Admission::partly_unlimited(&charges, |_| true).map_err(text)?;
    let beside = Admission::partly_unlimited(&charges, |index| index == 0).map_err(text)?;

    for _ in 0..3 {
        for decision in [limiter.decide_async(&alone).await, limiter.peek_admission_async(&alone).await] {
            let decision = answered(decision)?;
            ensure_eq!(shown(&decision), (true, None, None), "unlimited charges alone");
            ensure_eq!((decision.limit(), decision.window()), (None, None), "their limit");
            ensure_eq!(decision.reset_after(), None, "their reset");
            ensure_eq!(decision.retry_after(), Some(Duration::ZERO), "their wait");
            ensure!(decision.verdicts().all(|verdict| verdict.unlimited()), "a verdict is limited");
            ensure!(decision.receipt().is_none() && !decision.is_charged(), "they have a receipt");
            ensure!(!decision.degraded(), "they are degraded");
            ensure_eq!(decision.clone().into_owned(), decision, "an owned copy");
        }
    }

    let admitted = answered(limiter.decide_async(&beside).await)?;
    ensure_eq!(
        (admitted.rule(), shown(&admitted)),
        ("other", (true, Some(6), Some(4))),
        "beside a limited one"
    );
    let verdicts: Vec<_> = admitted.verdicts().map(|it| (it.rule(), it.unlimited(), it.cost())).collect();
    ensure_eq!(verdicts, [("api", true, 50), ("other", false, 6)], "verdicts in the order of charges");
    let receipt = receipt_of(&admitted)?;
    ensure_eq!(receipt.charges().len(), 1, "charges of the receipt");
    ensure_eq!(admitted.clone().into_owned(), admitted, "an owned copy");
    let denied = answered(limiter.decide_async(&beside).await)?;
    ensure_eq!(denied.allowed(), false, "6 and 6 of 10, beside an unlimited charge");
    ensure_eq!(denied.verdicts().map(|verdict| verdict.allowed()).collect::<Vec<_>>(), [true, false], "each");
    ensure_eq!(used_by(&limiter, &api, "alice").await?, 0, "used by an unlimited key");

    let counted = Admission::new(&charges[1..]).map_err(text)?;
    let batch = [alone.clone(), counted, alone, beside];
    let answers = limiter.check_batch_async(&batch).await.into_iter().map(answered);
    let allowed: Result<Vec<_>, _> =
        answers.map(|answer| answer.map(|decision| decision.allowed())).collect();
    ensure_eq!(allowed?, [true, false, true, false], "a batch of all kinds");
    ensure_eq!(answered(limiter.refund_async(&receipt).await)?.units, 6, "a refund");
    ensure_eq!(used(&limiter, &other).await?, 0, "used of the limited rule");
    Ok(())
}

/// Unlimited charges alone do not call the store: they pass during an outage.
pub async fn unlimited_charges_ask_no_store<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let limiter = Limiter::new(FailingStore::new(fresh().await));
    limiter.store().fail(StoreFailure::Unavailable);
    let api = ten("api");
    let alone =
        Admission::partly_unlimited(&[ask(&api, 50)?], |_| true).map_err(|error| error.to_string())?;
    let decided = [
        limiter.decide_async(&alone).await,
        limiter.peek_admission_async(&alone).await,
        limiter.try_decide(&alone).ok_or("unlimited charges were not decided at once")?,
        limiter.check_batch_async(&[alone]).await.remove(0),
    ];
    for decision in decided {
        let decision = answered(decision)?;
        ensure!(decision.allowed() && !decision.degraded(), "an unlimited charge in an outage");
    }
    ensure!(limiter.store().calls() <= 1, "a store was asked {} times", limiter.store().calls());
    ensure_eq!((limiter.stats().store_failures, limiter.stats().degraded), (0, 0), "statistics");
    Ok(())
}
