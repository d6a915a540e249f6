//! trypema in real time: it reads the machine's clock itself.

use std::hint::spin_loop;
use std::sync::Arc;

use slidegate::testing::Auditor;
use slidegate::time::{Clock, SystemClock};
use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use crate::subjects::{Subject, SubjectAnswer};

pub(crate) const WINDOW_US: u64 = 1_000_000;

/// trypema's local absolute limiter with its default bucket of 10 ms, one key, window of a second.
pub(crate) struct Trypema {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
    clock: SystemClock,
    /// Simulated minus real time, fixed at the first request.
    lead_us: Option<u64>,
}

impl Trypema {
    pub(crate) fn new(limit: u32) -> anyhow::Result<Self> {
        let provider = LocalRateLimiterProvider::builder()
            .window_size(WindowSize::seconds(1)?)
            .bucket_size(BucketSize::milliseconds(10)?)
            .disable_cleanup()
            .build()?;
        Ok(Self {
            provider,
            rate: RateLimit::per_second(f64::from(limit))?,
            clock: SystemClock::new(),
            lead_us: None,
        })
    }

    /// Asks for `units`: `None` if allowed, otherwise the announced wait in microseconds.
    fn inc(&self, units: u64) -> Option<u64> {
        match self.provider.absolute().inc("key", &self.rate, units) {
            RateLimitDecision::Rejected { retry_after, .. } => {
                Some(u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX))
            }
            _ => None,
        }
    }

    fn wait_until(&self, now_us: u64) {
        while self.clock.now_us() < now_us {
            spin_loop();
        }
    }
}

impl Subject for Trypema {
    /// Waits until `now_us`, then asks.
    fn ask(&mut self, now_us: u64) -> SubjectAnswer {
        let lead_us = *self.lead_us.get_or_insert_with(|| now_us - self.clock.now_us());
        self.wait_until(now_us - lead_us);
        // `get` also drops expired buckets, so it is called only where the estimate is measured.
        let estimate = self.provider.absolute().get("key");
        let wait_us = self.inc(1);
        SubjectAnswer { allowed: wait_us.is_none(), estimate, retry_after_us: wait_us.unwrap_or(0) }
    }
}

/// Most units within one window: one request opens a bucket, the rest of the limit follows 9 ms later in the same
/// bucket, and the whole bucket expires 9 ms too early.
pub(crate) fn coalesce_attack(limit: u32) -> anyhow::Result<u64> {
    let subject = Trypema::new(limit)?;
    let mut auditor = Auditor::new(u64::from(limit), WINDOW_US);
    let mut take = |until_us: u64, most: u32| {
        subject.wait_until(until_us);
        for _ in 0..most {
            let now_us = subject.clock.now_us();
            auditor.saw(now_us, 1, subject.inc(1).is_none());
        }
    };
    let start_us = subject.clock.now_us();
    take(start_us, 1);
    take(start_us + 9_000, limit);
    take(start_us + WINDOW_US + 2_000, 2 * limit);
    Ok(auditor.findings().most_in_window)
}

/// Units in one window when the last unit of the limit is requested with a cost of ten limits.
pub(crate) fn cost_attack(limit: u32) -> anyhow::Result<u64> {
    let subject = Trypema::new(limit)?;
    let before = u64::from(limit) - 1;
    let mut admitted = 0;
    for units in [before, 10 * u64::from(limit)] {
        if subject.inc(units).is_none() {
            admitted += units;
        }
    }
    Ok(admitted)
}

/// Of `probes` announced waits, how many requests were still refused at the end, and how many a millisecond later.
pub(crate) fn short_waits(limit: u32, probes: u64) -> anyhow::Result<(u64, u64)> {
    let subject = Trypema::new(limit)?;
    let (mut at_the_end, mut later) = (0, 0);
    let mut count = 0;
    while count < probes {
        let wait_us = subject.inc(1);
        let asked_us = subject.clock.now_us();
        match wait_us {
            // Spread the requests that fill the window, so that the next waits are short.
            None => subject.wait_until(asked_us + WINDOW_US / (2 * u64::from(limit))),
            Some(wait_us) => {
                count += 1;
                subject.wait_until(asked_us + wait_us);
                if subject.inc(1).is_some() {
                    at_the_end += 1;
                    subject.wait_until(asked_us + wait_us + 1_000);
                    later += u64::from(subject.inc(1).is_some());
                }
            }
        }
    }
    Ok((at_the_end, later))
}
