//! Refunds, credits and resets.

use super::subject::{BOUNDARY_US, MINUTE_US, SECOND_US, Subject, rule};
use crate::rule::Algorithm;
use crate::store::Store;
use crate::testing::model::ModelDecision;
use crate::testing::trace;

/// A refund gives back all charges of an admission, once.
pub async fn refunds_work_once<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (quota, costly) =
            (rule("quota", &["100/1h"], algorithm), rule("costly", &["5/10s", "9/1m"], algorithm));
        let subject = Subject::new(fresh).await;
        subject.admit(BOUNDARY_US, &quota, 3).await?;
        let both = subject.check(BOUNDARY_US, &[(&quota, "alice", 10), (&costly, "alice", 2)]).await?;
        let receipt = both.receipt().ok_or_else(|| format!("{algorithm}: an admission has no receipt"))?;
        ensure_eq!(subject.refund(BOUNDARY_US, &receipt).await?, Some(12), "{algorithm}: a refund");
        ensure_eq!(subject.used(BOUNDARY_US, &quota).await?, 3, "{algorithm}: used of quota");
        ensure_eq!(subject.used(BOUNDARY_US, &costly).await?, 0, "{algorithm}: used of costly");
        ensure_eq!(subject.refund(BOUNDARY_US, &receipt).await?, None, "{algorithm}: a second refund");
        let settled = subject.settle(BOUNDARY_US, &receipt, 1).await;
        ensure_eq!(settled, Ok(None), "{algorithm}: a settlement after a refund");
        ensure_eq!(subject.used(BOUNDARY_US, &quota).await?, 3, "{algorithm}: used after all of them");
        subject.admit(BOUNDARY_US, &quota, 97).await?;
    }
    Ok(())
}

/// An expired receipt gives nothing back and settles nothing; later charges are not touched.
pub async fn expired_receipts_give_nothing<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["10/10s"], algorithm));
        let first = subject.admit(BOUNDARY_US, &rule, 4).await?;
        let second = subject.admit(BOUNDARY_US, &rule, 4).await?;
        let late_us = BOUNDARY_US + MINUTE_US;
        subject.admit(late_us, &rule, 7).await?;
        ensure_eq!(subject.refund(late_us, &first).await?, None, "{algorithm}: a refund of what has expired");
        let settled = subject.settle(late_us, &second, 9).await;
        ensure_eq!(settled, Ok(None), "{algorithm}: a settlement of what has expired");
        ensure_eq!(subject.used(late_us, &rule).await?, 7, "{algorithm}: used");
        ensure_eq!(
            subject.refund(BOUNDARY_US, &first).await?,
            None,
            "{algorithm}: a refund after the clock was set back"
        );
    }
    Ok(())
}

/// A refund lowers its place by at most the units that are left there, and lowers no other place.
pub async fn refunds_are_one_sided<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["10/10s"], algorithm));
        let receipt = subject.admit(BOUNDARY_US, &rule, 6).await?;
        let credited = subject.credit(BOUNDARY_US, &rule, 4).await?;
        ensure_eq!(credited, Some(4), "{algorithm}: a credit");
        let given = subject.refund(BOUNDARY_US, &receipt).await?.unwrap_or(0);
        ensure!(given <= 2, "{algorithm}: {given} units given back, of 6 of which 4 were credited");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 2 - given, "{algorithm}: used");
    }
    // After the window has rolled, a refund does not lower the new window.
    let subject = Subject::new(fresh).await;
    let fixed = rule("fixed", &["10/10s"], Algorithm::FixedWindow);
    let receipt = subject.admit(BOUNDARY_US - SECOND_US, &fixed, 6).await?;
    subject.admit(BOUNDARY_US, &fixed, 2).await?;
    ensure_eq!(subject.refund(BOUNDARY_US, &receipt).await?, None, "a refund after the roll");
    ensure_eq!(subject.used(BOUNDARY_US, &fixed).await?, 2, "used after the roll");
    // A receipt of another store.
    let elsewhere = Subject::new(fresh).await;
    elsewhere.admit(BOUNDARY_US, &fixed, 6).await?;
    let foreign = subject.admit(BOUNDARY_US, &fixed, 6).await?;
    let given = elsewhere.refund(BOUNDARY_US, &foreign).await;
    ensure!(matches!(given, Err(_) | Ok(None)), "the receipt of another store gives back {given:?}");
    ensure_eq!(elsewhere.used(BOUNDARY_US, &fixed).await?, 6, "used after it");
    Ok(())
}

/// A credit takes the oldest charges first, and at most what is used.
pub async fn credits_take_the_oldest_first<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["100/10s"], algorithm));
        ensure_eq!(subject.credit(BOUNDARY_US, &rule, 5).await?, None, "{algorithm}: a credit of a new key");
        subject.admit(BOUNDARY_US, &rule, 30).await?;
        ensure_eq!(subject.credit(BOUNDARY_US, &rule, 10).await?, Some(10), "{algorithm}: a part");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 20, "{algorithm}: used");
        ensure_eq!(subject.credit(BOUNDARY_US, &rule, u64::MAX).await?, Some(20), "{algorithm}: everything");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 0, "{algorithm}: used after it");
    }
    let (subject, rule) = (Subject::new(fresh).await, rule("api", &["100/10s"], Algorithm::SlidingLog));
    let newer_us = BOUNDARY_US + SECOND_US;
    subject.admit(BOUNDARY_US, &rule, 30).await?;
    subject.admit(newer_us, &rule, 30).await?;
    subject.credit(newer_us, &rule, 30).await?;
    let used = subject.used(BOUNDARY_US + 10 * SECOND_US, &rule).await?;
    ensure_eq!(used, 30, "the newer charge when the older would have left");
    Ok(())
}

/// After a reset a key is like a new one, and earlier receipts give nothing back, whatever the clock shows.
pub async fn resets_forget_everything<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let rule = rule("api", &["5/10s", "20/1m"], algorithm);
        for reset_us in [BOUNDARY_US - SECOND_US, BOUNDARY_US, BOUNDARY_US + SECOND_US] {
            let subject = Subject::new(fresh).await;
            let unseen = subject.peek(BOUNDARY_US, &[(&rule, "alice", 5)]).await?;
            ensure_eq!(subject.reset(reset_us, &rule).await?, None, "{algorithm}: a reset of a new key");
            let old = subject.admit(BOUNDARY_US, &rule, 5).await?;
            let used = subject.used(reset_us, &rule).await?;
            ensure_eq!(subject.reset(reset_us, &rule).await?, Some(used), "{algorithm}: a reset");
            let peeked = subject.peek(BOUNDARY_US, &[(&rule, "alice", 5)]).await?;
            ensure_eq!(
                ModelDecision::of(&peeked),
                ModelDecision::of(&unseen),
                "{algorithm}: a key after its reset"
            );
            let new = subject.admit(BOUNDARY_US, &rule, 5).await?;
            ensure_eq!(subject.refund(BOUNDARY_US, &old).await?, None, "{algorithm}: an earlier receipt");
            ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 5, "{algorithm}: used after it");
            ensure_eq!(subject.refund(BOUNDARY_US, &new).await?, Some(5), "{algorithm}: a later receipt");
        }
    }
    Ok(())
}
