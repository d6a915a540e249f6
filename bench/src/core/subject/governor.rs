//! governor with its default store and clock.

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Context, Result};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{SharedLimiter, Worker};

pub(crate) struct Governor(DefaultKeyedRateLimiter<String>);

impl Governor {
    /// Four thousand million at once, refilled over an hour.
    pub(crate) fn new() -> Result<Self> {
        let burst = NonZeroU32::new(4_000_000_000).context("a burst above zero")?;
        let quota = Quota::with_period(Duration::from_nanos(900)).context("a period above zero")?;
        Ok(Self(RateLimiter::dashmap(quota.allow_burst(burst))))
    }
}

impl SharedLimiter for Governor {
    fn worker(&self) -> impl Worker {
        GovernorWorker { limiter: &self.0, key: String::with_capacity(64) }
    }
}

/// governor takes a `&String`: the key is copied to a reused one, without an allocation.
struct GovernorWorker<'a> {
    limiter: &'a DefaultKeyedRateLimiter<String>,
    key: String,
}

impl Worker for GovernorWorker<'_> {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        self.key.clear();
        self.key.push_str(key);
        self.limiter.check_key(&self.key).is_ok()
    }
}
