//! Settlements: replacing the cost of an admission by the actual cost.

use super::subject::{BOUNDARY_US, Subject, rule};
use crate::receipt::ReceiptError;
use crate::rule::Algorithm;
use crate::store::{Store, UpdateError};
use crate::testing::trace;

/// A lower cost is refunded, a higher one charged unconditionally, an equal one changes nothing; each spends the
/// receipt.
pub async fn settlements_replace_the_cost<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let rule = rule("api", &["100/10s"], algorithm);
        for (actual, moved) in [(0, 40), (15, 25), (40, 0), (70, 30), (340, 300)] {
            let subject = Subject::new(fresh).await;
            let receipt = subject.admit(BOUNDARY_US, &rule, 40).await?;
            let settled = subject.settle(BOUNDARY_US, &receipt, actual).await;
            ensure_eq!(settled, Ok(Some(moved)), "{algorithm}: 40 settled for {actual}");
            ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, actual, "{algorithm}: used");
            let again = subject.settle(BOUNDARY_US, &receipt, 1).await;
            ensure_eq!(again, Ok(None), "{algorithm}: a second settlement");
            ensure_eq!(subject.refund(BOUNDARY_US, &receipt).await?, None, "{algorithm}: a refund after it");
            let next = subject.ask(BOUNDARY_US, &rule, 1).await?;
            ensure_eq!(next.allowed(), actual < 100, "{algorithm}: one unit more after {actual}");
            if !next.allowed() {
                subject.wait_is_exact(BOUNDARY_US, &[(&rule, "alice", 1)], &next).await?;
            }
        }
    }
    Ok(())
}

/// An invalid settlement is an error, changes nothing and does not spend the receipt.
pub async fn bad_settlements_change_nothing<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let (quota, costly) = (
        rule("quota", &["100/10s"], Algorithm::SlidingLog),
        rule("costly", &["5/10s", "50/1m"], Algorithm::SlidingLog),
    );
    let subject = Subject::new(fresh).await;
    let both = subject.check(BOUNDARY_US, &[(&quota, "alice", 50), (&costly, "alice", 1)]).await?;
    let both = both.receipt().ok_or("an admission has no receipt")?;
    let unequal = ReceiptError::UnequalCosts { first: 50, second: 1 };
    let settled = subject.settle(BOUNDARY_US, &both, 20).await;
    ensure_eq!(settled, Err(UpdateError::Receipt(unequal)), "unequal costs");
    ensure_eq!(subject.refund(BOUNDARY_US, &both).await?, Some(51), "a refund after a bad settlement");
    let receipt = subject.admit(BOUNDARY_US, &costly, 1).await?;
    let excess = ReceiptError::Excess { rule: "costly".to_owned(), excess: 81, excess_max: 80 };
    let settled = subject.settle(BOUNDARY_US, &receipt, 1 + 81).await;
    ensure_eq!(settled, Err(UpdateError::Receipt(excess)), "more than 16 limits of 5");
    ensure_eq!(subject.used(BOUNDARY_US, &costly).await?, 1, "used after bad settlements");
    let settled = subject.settle(BOUNDARY_US, &receipt, 1 + 80).await;
    ensure_eq!(settled, Ok(Some(80)), "exactly 16 limits of 5");
    Ok(())
}
