//! Running a future on the thread that waits for it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Made once: most futures are ready when they are first polled.
    static WAKER: Waker = Arc::new(Unpark(thread::current())).into();
}

/// Unparks the thread that calls this.
pub(super) fn waker_of_this_thread() -> Waker {
    WAKER.with(Waker::clone)
}

/// Runs a future on this thread, which parks while it waits.
///
/// It has no timers and no input or output of its own: a future that needs a runtime's is run on that runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = waker_of_this_thread();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::{Clock, ManualClock, Timer};

    #[test]
    fn a_future_that_another_thread_wakes_comes_to_its_end() {
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
}
