//! Waiting for admission: one acquisition, from its arrival until it is admitted or gives up.
//!
//! The blocking and the asynchronous form are the same steps; they differ in how they ask the store and how they
//! sleep in between.

use std::borrow::Borrow;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::waiters::{Place, WAITERS_MAX, Waiters};
use super::{Core, Limiter};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::rule::Rule;
use crate::store::{CheckError, LocalStore, Store};
use crate::time::{Clock, Timer, waker_of_this_thread, whole_us};

/// Longest sleep between two looks, a day: timers need not bear sleeps without end.
const SLEEP_MAX_US: u64 = 86_400 * 1_000_000;

impl<S: LocalStore, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Waits up to `max_wait` until one unit of a rule is admitted for a key; blocks the thread.
    pub fn acquire<'a>(
        &self,
        rule: &'a Rule,
        key: &'a str,
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        self.acquire_all(&[rule.charge(key, 1)?], max_wait)
    }

    /// Waits up to `max_wait` until all charges are admitted together; blocks the thread.
    ///
    /// Acquisitions that wait in this limiter are served in the order of their arrival, per key; one that arrives
    /// while others wait for one of its keys waits behind them. A plain `check` does not queue.
    ///
    /// The answer is a denial, and nothing was charged, as soon as it is known that `max_wait` does not
    /// suffice if nobody gives units back, and at the latest when `max_wait` is over. A refusal behind other waiters
    /// says when these try next, even if there are units left.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    /// use std::time::Duration;
    ///
    /// let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/10ms")?);
    /// for _ in 0..3 {
    ///     // The second waits until the first is 10 ms old.
    ///     assert!(limiter.acquire(&api, "alice", Duration::from_secs(10))?.allowed());
    /// }
    ///
    /// let quota = Rule::new("quota", "1/24h")?;
    /// limiter.check(&quota, "alice")?;
    /// // Ten seconds do not suffice, which is known at once.
    /// let refused = limiter.acquire(&quota, "alice", Duration::from_secs(10))?;
    /// assert!(!refused.allowed() && refused.retry_after() > Some(Duration::from_secs(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_all<'a>(
        &self,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        let admission = Admission::new(charges)?;
        let clock = self.store().waits_by();
        let mut acquisition = Acquisition::new(&self.core().waiters, &admission, clock, max_wait);
        let waker = waker_of_this_thread();
        loop {
            let until_us = match acquisition.next(&waker)? {
                Next::Check => match acquisition.decided(self.decide(&admission)?) {
                    After::Done(decision) => return Ok(decision),
                    After::Again => continue,
                    After::Sleep(until_us) => until_us,
                },
                Next::Sleep(until_us) => until_us,
                Next::Refuse => match acquisition.refused(self.peek_admission(&admission)?) {
                    Some(refused) => return Ok(refused),
                    None => continue,
                },
            };
            clock.park_until_us(until_us);
        }
    }
}

impl<S: Store, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Waits up to `max_wait` until one unit of a rule is admitted for a key; the task sleeps by `timer`.
    pub async fn acquire_async<'a, T: Timer>(
        &self,
        timer: &T,
        rule: &'a Rule,
        key: &'a str,
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        self.acquire_all_async(timer, &[rule.charge(key, 1)?], max_wait).await
    }

    /// Waits up to `max_wait` until all charges are admitted together, like [`Limiter::acquire_all`]; the task
    /// sleeps by `timer`.
    ///
    /// It arrives when it is first polled. Dropping the future at any time gives up its place. In memory nothing is
    /// charged then that the caller does not get; any other store that is being asked at that moment may have charged.
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
        let admission = Admission::new(charges)?;
        let clock = self.store().waits_by();
        let mut acquisition = Acquisition::new(&self.core().waiters, &admission, clock, max_wait);
        loop {
            let next = poll_fn(|context| Poll::Ready(acquisition.next(context.waker())));
            let until_us = match next.await? {
                Next::Check => match acquisition.decided(self.decide_async(&admission).await?) {
                    After::Done(decision) => return Ok(decision),
                    After::Again => continue,
                    After::Sleep(until_us) => until_us,
                },
                Next::Sleep(until_us) => until_us,
                Next::Refuse => match acquisition.refused(self.peek_admission_async(&admission).await?) {
                    Some(refused) => return Ok(refused),
                    None => continue,
                },
            };
            let left_us = until_us.saturating_sub(clock.now_us());
            let mut sleep = pin!(timer.sleep(Duration::from_micros(left_us)));
            let woken_or_slept = poll_fn(|context| {
                if acquisition.woken(context.waker()) {
                    Poll::Ready(())
                } else {
                    sleep.as_mut().poll(context)
                }
            });
            woken_or_slept.await;
        }
    }
}

/// One acquisition. Dropping it leaves the queues.
struct Acquisition<'l, 'a> {
    waiters: &'l Waiters,
    admission: &'l Admission<'a>,
    clock: &'l dyn Clock,
    deadline_us: u64,
    /// When it last went to ask: a wait counts from here. Counted from the answer, it would be too long by what passed
    /// in between, and a unit would lie idle; so counted, it may be too short, and the next look says how much is left.
    asked_us: u64,
    /// Whether it has asked before it queued.
    tried: bool,
    /// Once it has to wait.
    place: Option<Place<'l>>,
}

/// What an acquisition does next.
enum Next {
    /// Asks the store: nobody is in front.
    Check,
    /// Sleeps until that instant, or until it is woken.
    Sleep(u64),
    /// Gives up: the deadline has come, its turn has not.
    Refuse,
}

/// What follows from a decision.
enum After<'a> {
    Done(Decision<'a>),
    Again,
    Sleep(u64),
}

impl<'l, 'a> Acquisition<'l, 'a> {
    fn new(
        waiters: &'l Waiters,
        admission: &'l Admission<'a>,
        clock: &'l dyn Clock,
        max_wait: Duration,
    ) -> Self {
        let asked_us = clock.now_us();
        let deadline_us = asked_us.saturating_add(whole_us(max_wait));
        Self { waiters, admission, clock, deadline_us, asked_us, tried: false, place: None }
    }

    /// What to do at this instant. If it is to sleep, the waker is woken when there is something to look at.
    fn next(&mut self, waker: &Waker) -> Result<Next, CheckError> {
        let (asks, now_us) = (self.admission.asks(), self.clock.now_us());
        self.asked_us = now_us;
        if self.place.is_none() {
            if !std::mem::replace(&mut self.tried, true) && !self.waiters.any_for(asks) {
                return Ok(Next::Check);
            }
            let place = self.waiters.join(asks, waker);
            self.place = Some(place.ok_or(CheckError::TooManyWaiters { max: WAITERS_MAX })?);
            // What was given back before it joined woke nobody: it looks again.
        }
        let place = self.place.as_ref().expect("it has joined");
        Ok(if place.is_first(waker) {
            Next::Check
        } else if now_us >= self.deadline_us {
            Next::Refuse
        } else {
            Next::Sleep(bounded(now_us, self.deadline_us))
        })
    }

    fn decided(&self, decision: Decision<'a>) -> After<'a> {
        let wait_us = decision.retry_after().map(whole_us);
        let passes_us = wait_us.map_or(u64::MAX, |wait_us| self.asked_us.saturating_add(wait_us));
        if decision.allowed() || passes_us > self.deadline_us {
            return After::Done(decision);
        }
        let Some(place) = &self.place else { return After::Again };
        place.tries_next_at(passes_us);
        After::Sleep(bounded(self.asked_us, passes_us))
    }

    /// Whether it was woken since it last looked; if not, the waker is woken then.
    fn woken(&self, waker: &Waker) -> bool {
        self.place.as_ref().is_some_and(|place| place.woken(waker))
    }

    /// What it is told in place of `peeked`: there may be units that only those in front may take, and
    /// then the rules they wait for refuse, at least until those have tried again. `None` if nobody is in front any more:
    /// it is its turn, and a peek charges nothing.
    ///
    /// What the outage policy said stands: nobody in front has better claims to it.
    fn refused(&self, peeked: Decision<'a>) -> Option<Decision<'a>> {
        let Some(place) = self.place.as_ref().filter(|_| peeked.allowed() && !peeked.degraded()) else {
            return Some(peeked);
        };
        let now_us = self.clock.now_us();
        let refused = peeked.refused(|ask| {
            let until_us = place.behind_until_us(ask)?;
            Some(until_us.saturating_sub(now_us).max(1))
        });
        Some(refused).filter(|refused| !refused.allowed())
    }
}

fn bounded(now_us: u64, until_us: u64) -> u64 {
    until_us.min(now_us.saturating_add(SLEEP_MAX_US))
}
