//! trypema's local absolute limiter: a minute in buckets of 10 ms.

use std::sync::Arc;

use anyhow::Result;
use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::{SharedLimiter, Worker};

pub(crate) struct Trypema {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

impl Trypema {
    /// Without its cleanup thread, which would slow it down.
    pub(crate) fn new() -> Result<Self> {
        let builder = LocalRateLimiterProvider::builder();
        let builder =
            builder.window_size(WindowSize::seconds(60)?).bucket_size(BucketSize::milliseconds(10)?);
        Ok(Self {
            provider: builder.disable_cleanup().build()?,
            rate: RateLimit::per_second(f64::from(1_000_000_000))?,
        })
    }
}

impl SharedLimiter for Trypema {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl Worker for &Trypema {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        matches!(self.provider.absolute().inc(key, &self.rate, 1), RateLimitDecision::Allowed)
    }
}
