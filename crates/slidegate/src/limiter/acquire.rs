//! `acquire`: waits until a request is admitted or its deadline has passed.

use std::borrow::Borrow;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::waiters::{QueueTicket, WAITERS_MAX};
use super::{Core, Limiter};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::key::IntoKey;
use crate::rule::Rule;
use crate::store::{CheckError, Store};
use crate::time::{Timer, whole_us};

/// Longest single sleep, a day: not every timer supports longer ones.
const SLEEP_MAX_US: u64 = 86_400 * 1_000_000;

impl<S: Store, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Waits up to `max_wait` until one unit of a rule is admitted for a key; the task sleeps by `timer`.
    pub async fn acquire_async<'a, T: Timer>(
        &self,
        timer: &T,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        self.acquire_all_async(timer, &[rule.charge(key, 1)?], max_wait).await
    }

    /// Waits up to `max_wait` until all charges are admitted together, like [`Limiter::acquire_all`]; the task
    /// sleeps by `timer`.
    ///
    /// It joins the queue when it is first polled. Dropping the future at any time leaves the queue. In memory nothing
    /// is charged then; any other store may have charged if a call was in flight.
    ///
    /// ```
    /// use slidegate::time::ManualClock;
    /// use slidegate::{Limiter, Rule};
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    ///
    /// let api = Rule::new("api", "1/10s")?;
    /// let limiter = Limiter::with_clock(ManualClock::at_us(1_745_000_145_000_000));
    /// limiter.check(&api, "alice")?;
    ///
    /// let acquisition = limiter.acquire_async(limiter.clock(), &api, "alice", Duration::from_secs(60));
    /// let mut acquisition = pin!(acquisition);
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(acquisition.as_mut().poll(&mut context).is_pending());
    /// limiter.clock().advance(Duration::from_secs(10));
    /// let Poll::Ready(decision) = acquisition.as_mut().poll(&mut context) else { panic!("it has come") };
    /// assert!(decision?.allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn acquire_all_async<'a, T: Timer>(
        &self,
        timer: &T,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        let clock = self.store().wait_clock();
        let sleep_until =
            |until_us: u64| timer.sleep(Duration::from_micros(until_us.saturating_sub(clock.now_us())));
        self.acquire_with(charges, max_wait, sleep_until).await
    }

    /// Waits with `sleep_until`, whose future is ready when the store's clock shows that instant, or earlier.
    pub(super) async fn acquire_with<'a, F: Future<Output = ()>>(
        &self,
        charges: &[Charge<'a>],
        max_wait: Duration,
        sleep_until: impl Fn(u64) -> F,
    ) -> Result<Decision<'a>, CheckError> {
        let admission = Admission::new(charges)?;
        let (waiters, clock) = (&self.core().waiters, self.store().wait_clock());
        let deadline_us = clock.now_us().saturating_add(whole_us(max_wait));
        if !waiters.any_for(admission.asks()) {
            let asked_us = clock.now_us();
            let decision = self.decide_async(&admission).await?;
            if decision.allowed() || passes_us(asked_us, &decision) > deadline_us {
                return Ok(decision);
            }
        }
        let ticket = with_waker(|waker| waiters.join(admission.asks(), waker)).await;
        let ticket = ticket.ok_or(CheckError::TooManyWaiters { max: WAITERS_MAX })?;
        // A refund before it joined the queue woke no waiter, so it asks the store again.
        loop {
            // The wait counts from before the call: counted from the answer it would be too long by the latency of the
            // call. If it is too short, the next answer has the rest.
            let asked_us = clock.now_us();
            let mut until_us = deadline_us;
            if with_waker(|waker| ticket.is_first(waker)).await {
                let decision = self.decide_async(&admission).await?;
                until_us = passes_us(asked_us, &decision);
                if decision.allowed() || until_us > deadline_us {
                    return Ok(decision);
                }
                ticket.tries_next_at(until_us);
            } else if asked_us >= deadline_us {
                let peeked = self.peek_admission_async(&admission).await?;
                match refused(&ticket, clock.now_us(), peeked) {
                    Some(refused) => return Ok(refused),
                    None => continue,
                }
            }
            let mut sleep = pin!(sleep_until(until_us.min(asked_us.saturating_add(SLEEP_MAX_US))));
            let woken_or_slept = poll_fn(|context| {
                if ticket.woken(context.waker()) { Poll::Ready(()) } else { sleep.as_mut().poll(context) }
            });
            woken_or_slept.await;
        }
    }
}

/// Calls `act` with the task's waker.
async fn with_waker<T>(act: impl Fn(&Waker) -> T) -> T {
    poll_fn(|context| Poll::Ready(act(context.waker()))).await
}

/// The instant at which the same request passes, by a decision that was requested at `asked_us`.
fn passes_us(asked_us: u64, decision: &Decision<'_>) -> u64 {
    decision.retry_after().map_or(u64::MAX, |wait| asked_us.saturating_add(whole_us(wait)))
}

/// The denial of an acquisition whose deadline has passed, from a peek. Units that are left belong to the waiters in
/// front of it, so the rules of those waiters deny, until the waiters try again. `None` if no waiter is in front any
/// more: it must try itself, as a peek charges nothing.
///
/// An answer of the outage policy is returned unchanged: it takes no units from other waiters.
fn refused<'a>(ticket: &QueueTicket<'_>, now_us: u64, peeked: Decision<'a>) -> Option<Decision<'a>> {
    if !peeked.allowed() || peeked.degraded() {
        return Some(peeked);
    }
    let refused = peeked.refused(|ask| {
        let until_us = ticket.behind_until_us(ask)?;
        Some(until_us.saturating_sub(now_us).max(1))
    });
    Some(refused).filter(|refused| !refused.allowed())
}
