//! A limiter over a file: every verb and the outage policy, as on every store.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::common::{Directory, open};
use slidegate::testing::{block_on, limiter_suite};
use slidegate::time::{Clock, SystemClock, Timer};

/// A timer that polls the clock: the suite sleeps for some milliseconds at most.
struct PollingTimer(SystemClock);

impl Timer for PollingTimer {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        let end_us = self.0.now_us() + u64::try_from(duration.as_micros()).unwrap();
        poll_fn(move |context| {
            if self.0.now_us() >= end_us {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }
}

#[test]
fn the_suite_of_the_limiter_passes() {
    let (directory, stores) = (Directory::new(), AtomicU64::new(0));
    let fresh = async || {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        open(directory.path().join(format!("{number}.db")))
    };
    let timer = PollingTimer(SystemClock::new());
    block_on(limiter_suite::run(&fresh, &timer)).unwrap_or_else(|broken| panic!("{broken}"));
}
