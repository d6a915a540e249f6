//! Waking a thread the way a task is woken.

use std::sync::Arc;
use std::task::{Wake, Waker};
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
    /// Made once: most who might have to wait do not.
    static WAKER: Waker = Arc::new(Unpark(thread::current())).into();
}

/// Unparks the thread that calls this.
pub(crate) fn waker_of_this_thread() -> Waker {
    WAKER.with(Waker::clone)
}
