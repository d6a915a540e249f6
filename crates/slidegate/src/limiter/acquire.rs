//! Waiting for admission: one acquisition, from its arrival until it is admitted or gives up.
//!
//! The blocking and the asynchronous form are the same steps; they differ in how they sleep between them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use thiserror::Error;

use super::Limiter;
use super::waiters::{Place, WAITERS_MAX};
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::{Decision, Verdict};
use crate::guard::ByPolicy;
use crate::store::{CheckError, Outcome, StoreError};
use crate::time::{Clock, Timer, waker_of_this_thread, whole_us};

/// Longest sleep between two looks, a day: timers need not bear sleeps without end.
const SLEEP_MAX_US: u64 = 86_400 * 1_000_000;

/// Why an acquisition was not even refused. Nothing was charged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The charges cannot be an admission.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The store failed, and a rule says that this refuses the request.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// [`WAITERS_MAX`] acquisitions wait already.
    #[error("waiters: {WAITERS_MAX} wait in this limiter, its maximum; lower max_wait, or shed requests")]
    TooManyWaiters,
}

impl From<CheckError> for AcquireError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Charge(error) => Self::Charge(error),
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

impl<C: Clock> Limiter<C> {
    /// Decides like [`Limiter::check`], but waits up to `max_wait` for an admission; blocks the thread.
    ///
    /// Among all that wait in this limiter, whoever came first for a key is served first; who comes while
    /// others wait for one of its keys waits behind them. A plain `check` does not queue.
    ///
    /// The answer is a denial, and nothing was charged, as soon as it is known that `max_wait` does not
    /// suffice if nobody gives units back, and at the latest when `max_wait` is over. Who is refused behind
    /// others although there are units left learns when they try next.
    ///
    /// ```
    /// use slidegate::{Charge, Key, Limiter, Rule};
    /// use std::time::Duration;
    ///
    /// let (api, key) = (Rule::builder("api").limit("1/10ms".parse()?).build()?, Key::new("alice")?);
    /// let limiter = Limiter::in_memory();
    /// for _ in 0..3 {
    ///     // The second waits until the first is 10 ms old.
    ///     let charges = [Charge { rule: &api, key, cost: 1 }];
    ///     assert!(limiter.acquire(&charges, Duration::from_secs(10))?.receipt.is_some());
    /// }
    ///
    /// let quota = Rule::builder("quota").limit("1/24h".parse()?).build()?;
    /// let charges = [Charge { rule: &quota, key, cost: 1 }];
    /// limiter.check(&charges)?;
    /// // Ten seconds will not do, which is known at once.
    /// let refused = limiter.acquire(&charges, Duration::from_secs(10))?.decision;
    /// assert!(!refused.allowed() && refused.retry_after() > Duration::from_secs(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire<'a>(
        &self,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Outcome<'a>, AcquireError> {
        let mut waiting = Waiting::new(self, charges, max_wait)?;
        let waker = waker_of_this_thread();
        loop {
            match waiting.attempt(&waker)? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::SleepUntil(until_us) => self.clock().park_until_us(until_us),
            }
        }
    }

    /// [`Limiter::acquire`] for a task, which sleeps by `timer`.
    ///
    /// It arrives when it is first polled. Dropping the future at any time gives up its place, and nothing
    /// is charged that the caller does not get.
    ///
    /// ```
    /// use slidegate::time::ManualClock;
    /// use slidegate::{Charge, Key, Limiter, Rule};
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    ///
    /// let api = Rule::builder("api").limit("1/10s".parse()?).build()?;
    /// let limiter = Limiter::with_clock(ManualClock::at_us(1_745_000_145_000_000));
    /// let request = [Charge { rule: &api, key: Key::new("alice")?, cost: 1 }];
    /// limiter.check(&request)?;
    ///
    /// let mut acquisition = pin!(limiter.acquire_async(limiter.clock(), &request, Duration::from_secs(60)));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(acquisition.as_mut().poll(&mut context).is_pending());
    /// limiter.clock().advance(Duration::from_secs(10));
    /// let Poll::Ready(outcome) = acquisition.as_mut().poll(&mut context) else { panic!("it has come") };
    /// assert!(outcome?.decision.allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn acquire_async<'a, T: Timer>(
        &self,
        timer: &T,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Outcome<'a>, AcquireError> {
        let mut waiting = Waiting::new(self, charges, max_wait)?;
        loop {
            let attempt = poll_fn(|context| Poll::Ready(waiting.attempt(context.waker())));
            match attempt.await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::SleepUntil(until_us) => {
                    let left_us = until_us.saturating_sub(self.clock().now_us());
                    let mut sleep = pin!(timer.sleep(Duration::from_micros(left_us)));
                    let woken_or_slept = poll_fn(|context| {
                        if waiting.woken(context.waker()) {
                            Poll::Ready(())
                        } else {
                            sleep.as_mut().poll(context)
                        }
                    });
                    woken_or_slept.await;
                }
            }
        }
    }
}

/// One acquisition. Dropping it leaves the queues.
struct Waiting<'l, 'a, C> {
    limiter: &'l Limiter<C>,
    admission: Admission<'a>,
    deadline_us: u64,
    /// Once it has to wait.
    place: Option<Place<'l>>,
}

enum Attempt<'a> {
    /// Admitted, or given up.
    Done(Outcome<'a>),
    /// To be tried again at that instant, or earlier when woken.
    SleepUntil(u64),
}

impl<'l, 'a, C: Clock> Waiting<'l, 'a, C> {
    fn new(
        limiter: &'l Limiter<C>,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Self, AcquireError> {
        let admission = Admission::new(charges)?;
        let deadline_us = limiter.clock().now_us().saturating_add(whole_us(max_wait));
        Ok(Self { limiter, admission, deadline_us, place: None })
    }

    /// Gets on as far as it can at this instant. If it has to sleep, it may do so until the waker is woken.
    fn attempt(&mut self, waker: &Waker) -> Result<Attempt<'a>, AcquireError> {
        let now_us = self.limiter.clock().now_us();
        if self.place.is_none() {
            let asks = self.admission.asks();
            if !self.limiter.waiters.any_for(asks) {
                let done = self.check(now_us)?;
                if matches!(done, Attempt::Done(_)) {
                    return Ok(done);
                }
            }
            let place = self.limiter.waiters.join(asks, waker);
            self.place = Some(place.ok_or(AcquireError::TooManyWaiters)?);
            // What was given back before it joined woke nobody: it looks again.
        }
        let place = self.place.as_ref().expect("it has joined");
        Ok(if place.is_first(waker) {
            self.check(now_us)?
        } else if now_us >= self.deadline_us {
            Attempt::Done(self.refuse(now_us, place))
        } else {
            Attempt::sleep(now_us, self.deadline_us)
        })
    }

    /// Whether it was woken since the last attempt; if not, the waker is woken then.
    fn woken(&self, waker: &Waker) -> bool {
        self.place.as_ref().is_some_and(|place| place.woken(waker))
    }

    /// Nobody is in front: tries.
    fn check(&self, now_us: u64) -> Result<Attempt<'a>, CheckError> {
        let outcome = self.limiter.store.check_or::<ByPolicy>(now_us, &self.admission)?;
        let passes_us = now_us.saturating_add(whole_us(outcome.decision.retry_after()));
        if outcome.decision.allowed() || passes_us > self.deadline_us {
            return Ok(Attempt::Done(outcome));
        }
        if let Some(place) = &self.place {
            place.tries_next_at(passes_us);
        }
        Ok(Attempt::sleep(now_us, passes_us))
    }

    /// The deadline has come, its turn has not. There may be units that only those in front may take, and
    /// then the rules they wait for refuse, at least until those have tried again.
    fn refuse(&self, now_us: u64, place: &Place<'_>) -> Outcome<'a> {
        let mut decision = self.limiter.store.peek(now_us, &self.admission);
        if decision.allowed() {
            let asks = self.admission.ask_of_charge().iter().map(|&ask| &self.admission.asks()[ask]);
            let refuse = |(verdict, ask): (&Verdict<'a>, _)| match place.behind_until_us(ask) {
                Some(until_us) if !verdict.shadow() => {
                    let retry_after_us = until_us.saturating_sub(now_us).max(1);
                    Verdict { allowed: false, retry_after_us, ..*verdict }
                }
                _ => *verdict,
            };
            decision = Decision::new(decision.verdicts().iter().zip(asks).map(refuse).collect());
        }
        Outcome { decision, receipt: None }
    }
}

impl Attempt<'_> {
    fn sleep(now_us: u64, until_us: u64) -> Self {
        Self::SleepUntil(until_us.min(now_us.saturating_add(SLEEP_MAX_US)))
    }
}
