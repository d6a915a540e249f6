//! Limiters in simulated time: slidegate and governor.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, FakeRelativeClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use slidegate::algorithm::State;
use slidegate::rule::{Buckets, Decimal, Edge, Limit};
use slidegate::{Algorithm, Rate};

/// A limiter's answer to a request of cost 1.
pub(crate) struct SubjectAnswer {
    pub(crate) allowed: bool,
    /// The limiter's estimate of the used units before the request.
    pub(crate) estimate: u64,
    /// The announced wait in microseconds; 0 when allowed.
    pub(crate) retry_after_us: u64,
}

/// A limiter with one key, in simulated time.
pub(crate) trait Subject {
    fn ask(&mut self, now_us: u64) -> SubjectAnswer;
}

/// The algorithms, in the order of the tables.
pub(crate) const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::ALL[0],
    Algorithm::ALL[1],
    Algorithm::ALL[2],
    Algorithm::SlidingBuckets(Buckets::DEFAULT, Edge::Interpolated),
    Algorithm::SlidingBuckets(Buckets::DEFAULT, Edge::Dropped),
    Algorithm::ALL[3],
    Algorithm::ALL[4],
    Algorithm::ALL[5],
];

/// A limit with this rate and algorithm.
pub(crate) fn limit(rate: &str, algorithm: Algorithm) -> Limit {
    let rate: Rate = rate.parse().expect("the rates of this program are well formed");
    Limit::new(rate, Decimal::ZERO, algorithm)
}

/// A slidegate algorithm.
pub(crate) struct SlidegateState {
    limit: Limit,
    state: State,
}

impl SlidegateState {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, state: State::new(limit) }
    }
}

impl Subject for SlidegateState {
    fn ask(&mut self, now_us: u64) -> SubjectAnswer {
        let ruling = self.state.decide(&self.limit, now_us, 1);
        if ruling.allowed() {
            self.state.charge(&self.limit, now_us, 1);
        }
        SubjectAnswer {
            allowed: ruling.allowed(),
            estimate: ruling.usage.used,
            retry_after_us: ruling.retry_after_us,
        }
    }
}

/// governor's direct limiter on its own fake clock: a burst of the limit, refilled evenly over the window.
pub(crate) struct Governor {
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, StateInformationMiddleware>,
    clock: FakeRelativeClock,
    limit: u32,
    start_us: Option<u64>,
    shown_us: u64,
}

impl Governor {
    pub(crate) fn new(rate: Rate) -> Self {
        let limit = u32::try_from(rate.limit()).expect("governor counts to u32");
        let burst = NonZeroU32::new(limit).expect("a limit is at least 1");
        let quota =
            Quota::with_period(rate.window() / limit).expect("a period above zero").allow_burst(burst);
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone()).with_middleware();
        Self { limiter, clock, limit, start_us: None, shown_us: 0 }
    }
}

impl Subject for Governor {
    fn ask(&mut self, now_us: u64) -> SubjectAnswer {
        // The fake clock starts at zero and can only advance.
        let since_us = now_us - *self.start_us.get_or_insert(now_us);
        self.clock.advance(Duration::from_micros(since_us - self.shown_us));
        self.shown_us = since_us;
        match self.limiter.check() {
            Ok(snapshot) => {
                let used_after = self.limit - snapshot.remaining_burst_capacity();
                SubjectAnswer {
                    allowed: true,
                    estimate: u64::from(used_after.saturating_sub(1)),
                    retry_after_us: 0,
                }
            }
            Err(refused) => {
                let wait = refused.wait_time_from(self.clock.now());
                let retry_after_us = wait.as_nanos().div_ceil(1_000).try_into().unwrap_or(u64::MAX);
                SubjectAnswer { allowed: false, estimate: u64::from(self.limit), retry_after_us }
            }
        }
    }
}
