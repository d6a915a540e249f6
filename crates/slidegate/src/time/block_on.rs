//! A minimal executor: runs a future on the calling thread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A waker that unparks a thread.
struct ThreadWaker {
    thread: Thread,
    /// A flag of our own, because another park in between may consume the thread's token.
    woken: AtomicBool,
}

impl ThreadWaker {
    fn of_this_thread() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) })
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A waker that unparks the calling thread.
pub(super) fn waker_of_this_thread() -> Waker {
    ThreadWaker::of_this_thread().into()
}

/// Runs a future on this thread, which parks while the future is pending.
///
/// It has no timers and no I/O: a future that needs a runtime must run on that runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = ThreadWaker::of_this_thread();
    let task = Waker::from(Arc::clone(&waker));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&task)) {
            return value;
        }
        while !waker.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::{Clock, ManualClock, Timer};

    #[test]
    fn a_future_that_another_thread_wakes_completes() {
        let clock = ManualClock::at_us(0);
        thread::scope(|scope| {
            let slept = scope.spawn(|| {
                block_on(async {
                    clock.sleep(Duration::from_secs(1)).await;
                    clock.now_us()
                })
            });
            while clock.sleepers() == 0 {
                thread::yield_now();
            }
            clock.advance(Duration::from_secs(1));
            assert_eq!(slept.join().unwrap(), 1_000_000);
        });
    }

    /// The future itself parks the thread and consumes its token during the poll.
    #[test]
    fn a_wake_up_is_not_lost_to_another_park() {
        let mut polls = 0;
        block_on(std::future::poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            thread::park();
            if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
        }));
        assert_eq!(polls, 3);
    }
}
