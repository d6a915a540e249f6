//! `acquire`: waiting until a request is admitted.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::subject::{answered, limited, ten, used};
use super::verbs::{ask, receipt_of};
use crate::limiter::Limiter;
use crate::rule::Algorithm;
use crate::store::Store;
use crate::time::Timer;

/// Much longer than a store takes to answer, much shorter than any window of the suite.
const SOON: Duration = Duration::from_secs(10);

/// `acquire` and `acquire_all` admit at once if there are units, and wait for them otherwise.
pub async fn acquisitions_wait_and_are_admitted<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let (brief, api) = (limited("brief", "1/30ms", Algorithm::SlidingLog), ten("api"));
    for turn in 1..=3 {
        let decision = answered(limiter.acquire_async(timer, &brief, "alice", SOON).await)?;
        ensure!(decision.allowed() && decision.is_charged(), "acquisition {turn}: {decision:?}");
    }
    for turn in 1..=2 {
        let charges = [ask(&brief, 1)?, ask(&api, 2)?];
        let decision = answered(limiter.acquire_all_async(timer, &charges, SOON).await)?;
        ensure!(decision.allowed(), "acquisition {turn} of two charges: {decision:?}");
        ensure_eq!(receipt_of(&decision)?.charges().len(), 2, "charges of its receipt");
    }
    ensure_eq!(used(&limiter, &api).await?, 4, "used of the rule that never made anyone wait");
    ensure_eq!(limiter.stats().waiting, 0, "waiting afterwards");
    Ok(())
}

/// An acquisition whose maximum wait is too short is denied at once, without a charge.
pub async fn acquisitions_that_would_wait_too_long_are_refused<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let (api, other) = (ten("api"), ten("other"));
    answered(limiter.check_n_async(&api, "alice", 10).await)?;
    for max_wait in [Duration::ZERO, SOON] {
        let alone = answered(limiter.acquire_async(timer, &api, "alice", max_wait).await)?;
        let charges = [ask(&api, 1)?, ask(&other, 1)?];
        let both = answered(limiter.acquire_all_async(timer, &charges, max_wait).await)?;
        for decision in [alone, both] {
            ensure!(!decision.allowed() && decision.receipt().is_none(), "admitted: {decision:?}");
            ensure!(decision.retry_after() > Some(SOON), "a wait of {:?}", decision.retry_after());
        }
    }
    ensure_eq!(used(&limiter, &other).await?, 0, "used of the rule that would have passed");
    ensure_eq!(limiter.stats().waiting, 0, "waiting afterwards");
    Ok(())
}

/// A refund wakes the acquisition that waits for its units. A cancelled acquisition leaves no trace.
pub async fn refunds_wake_the_first<S: Store>(
    fresh: &impl AsyncFn() -> S,
    timer: &impl Timer,
) -> Result<(), String> {
    let limiter = Limiter::new(fresh().await);
    let api = ten("api");
    let receipt = receipt_of(&answered(limiter.check_n_async(&api, "alice", 10).await)?)?;
    for dropped in [true, false] {
        let mut acquisition = pin!(limiter.acquire_async(timer, &api, "alice", Duration::MAX));
        // Until it is in the queue; before that it asks the store.
        let early = poll_fn(|context| match acquisition.as_mut().poll(context) {
            Poll::Ready(decision) => Poll::Ready(Some(decision)),
            Poll::Pending if limiter.stats().waiting == 1 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        ensure!(early.await.is_none(), "an acquisition did not wait");
        if dropped {
            continue;
        }
        ensure_eq!(answered(limiter.refund_async(&receipt).await)?.units, 10, "a refund");
        let mut late = pin!(timer.sleep(SOON));
        let admitted = poll_fn(|context| match acquisition.as_mut().poll(context) {
            Poll::Ready(decision) => Poll::Ready(Some(decision)),
            Poll::Pending => late.as_mut().poll(context).map(|()| None),
        });
        let admitted = answered(admitted.await.ok_or("a refund woke nobody")?)?;
        ensure!(admitted.allowed() && admitted.is_charged(), "after a refund: {admitted:?}");
    }
    ensure_eq!(limiter.stats().waiting, 0, "waiting afterwards");
    ensure_eq!(used(&limiter, &api).await?, 1, "used: an acquisition that was dropped is not charged");
    Ok(())
}
