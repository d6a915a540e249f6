//! throttlecrab, which takes `&mut self` and the time.

use std::time::{Duration, UNIX_EPOCH};

use slidegate::time::{Clock, SystemClock};
use throttlecrab::{PeriodicStore, RateLimiter};

use super::Worker;

const BURST: i64 = 4_000_000_000;
const PERIOD_S: i64 = 3_600;

pub(crate) struct Throttlecrab {
    limiter: RateLimiter<PeriodicStore>,
    clock: SystemClock,
}

impl Throttlecrab {
    pub(crate) fn new() -> Self {
        Self { limiter: RateLimiter::new(PeriodicStore::new()), clock: SystemClock::new() }
    }
}

impl Worker for Throttlecrab {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        let now = UNIX_EPOCH + Duration::from_micros(self.clock.now_us());
        let answer = self.limiter.rate_limit(key, BURST, BURST, PERIOD_S, 1, now);
        answer.expect("a quantity of 1 can pass").0
    }
}
