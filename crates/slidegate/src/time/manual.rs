//! A clock for tests.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use super::block_on::waker_of_this_thread;
use super::{Clock, TIME_MAX_US, Timer, whole_us};

/// A clock that moves only by its methods, and only forward: for tests, replays and simulations.
///
/// It is a [`Timer`] too: a task that sleeps by it is woken when it is moved to the end of the sleep.
///
/// ```
/// use slidegate::time::{ManualClock, Timer};
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use std::time::Duration;
///
/// let clock = ManualClock::at_us(0);
/// let mut sleep = pin!(clock.sleep(Duration::from_secs(3)));
/// let mut context = Context::from_waker(Waker::noop());
/// assert_eq!(sleep.as_mut().poll(&mut context), Poll::Pending);
/// assert_eq!(clock.sleepers(), 1);
///
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(()));
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    now_us: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

/// The wakers of sleepers, by the end of their sleep and a unique number.
#[derive(Debug, Default)]
struct Sleepers {
    numbers_given: u64,
    wakers: BTreeMap<(u64, u64), Waker>,
}

impl ManualClock {
    /// A clock that shows `now_us`, at most [`TIME_MAX_US`].
    #[must_use]
    pub fn at_us(now_us: u64) -> Self {
        Self { now_us: AtomicU64::new(now_us.min(TIME_MAX_US)), sleepers: Mutex::default() }
    }

    /// Moves forward by `step`, at most to [`TIME_MAX_US`], and wakes the sleepers whose sleep has ended.
    pub fn advance(&self, step: Duration) {
        let advanced = |now_us: u64| Some(now_us.saturating_add(whole_us(step)).min(TIME_MAX_US));
        self.now_us.fetch_update(Ordering::SeqCst, Ordering::SeqCst, advanced).expect("it always moves");
        self.wake_due();
    }

    /// Moves forward to `now_us`, at most to [`TIME_MAX_US`], and wakes the sleepers whose sleep has ended; an earlier
    /// instant does not move the clock.
    pub fn set_us(&self, now_us: u64) {
        self.now_us.fetch_max(now_us.min(TIME_MAX_US), Ordering::SeqCst);
        self.wake_due();
    }

    /// Number of tasks and threads that sleep by this clock: a test can wait for them before it moves the clock.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().wakers.len()
    }

    /// The earliest end of a sleep: a test can move the clock there.
    #[must_use]
    pub fn next_end_us(&self) -> Option<u64> {
        self.lock().wakers.first_key_value().map(|(&(end_us, _), _)| end_us)
    }

    fn wake_due(&self) {
        let due = {
            let mut sleepers = self.lock();
            let first_later = (self.now_us() + 1, 0);
            let later = sleepers.wakers.split_off(&first_later);
            std::mem::replace(&mut sleepers.wakers, later)
        };
        // Outside the lock: a waker may run any code.
        due.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    /// Parks until the clock is moved to `until_us`.
    fn park_until_us(&self, until_us: u64) {
        let mut sleep = ManualSleep { clock: self, end_us: until_us, number: None };
        if !sleep.ended(&waker_of_this_thread()) {
            thread::park();
        }
    }
}

impl Timer for ManualClock {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        ManualSleep { clock: self, end_us: self.now_us().saturating_add(whole_us(duration)), number: None }
    }
}

struct ManualSleep<'a> {
    clock: &'a ManualClock,
    end_us: u64,
    /// Set when it is first polled.
    number: Option<u64>,
}

impl ManualSleep<'_> {
    /// Whether the sleep has ended; if not, `waker` will be woken.
    fn ended(&mut self, waker: &Waker) -> bool {
        let mut sleepers = self.clock.lock();
        // Read under the lock: a thread that moves the clock afterwards finds the waker.
        if self.clock.now_us() >= self.end_us {
            return true;
        }
        let number = *self.number.get_or_insert_with(|| {
            sleepers.numbers_given += 1;
            sleepers.numbers_given
        });
        sleepers.wakers.insert((self.end_us, number), waker.clone());
        false
    }
}

impl Future for ManualSleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.ended(context.waker()) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for ManualSleep<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.lock().wakers.remove(&(self.end_us, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn manual_clock_refuses_to_go_back() {
        let clock = ManualClock::at_us(50);
        clock.set_us(40);
        assert_eq!(clock.now_us(), 50);
        clock.set_us(60);
        assert_eq!(clock.now_us(), 60);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now_us(), TIME_MAX_US, "capped at the maximum");
    }

    #[test]
    fn sleeps_end_when_the_clock_is_moved_to_their_end() {
        let clock = ManualClock::at_us(1_000);
        let counter = Arc::new(Wakes::default());
        let waker = Arc::clone(&counter).into();
        let mut context = Context::from_waker(&waker);
        let mut short = pin!(clock.sleep(Duration::from_micros(10)));
        let mut long = pin!(clock.sleep(Duration::from_micros(20)));
        let woken = || counter.0.load(Ordering::SeqCst);

        assert!(pin!(clock.sleep(Duration::ZERO)).poll(&mut context).is_ready(), "nothing to wait for");
        assert!(
            short.as_mut().poll(&mut context).is_pending() && long.as_mut().poll(&mut context).is_pending()
        );
        assert!(long.as_mut().poll(&mut context).is_pending(), "asking twice is one sleep");
        assert_eq!((clock.sleepers(), clock.next_end_us()), (2, Some(1_010)));
        clock.advance(Duration::from_micros(9));
        assert_eq!(woken(), 0);
        clock.advance(Duration::from_micros(1));
        assert_eq!((woken(), clock.sleepers()), (1, 1));
        assert!(
            short.as_mut().poll(&mut context).is_ready() && long.as_mut().poll(&mut context).is_pending()
        );
        clock.set_us(5_000);
        assert_eq!((woken(), clock.sleepers()), (2, 0));
        assert!(long.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn sleeps_that_are_dropped_leave_nothing_behind() {
        let clock = ManualClock::default();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            let mut sleep = Box::pin(clock.sleep(Duration::MAX));
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            assert_eq!(clock.sleepers(), 1);
        }
        drop(clock.sleep(Duration::MAX));
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn threads_park_until_the_clock_is_moved() {
        let clock = ManualClock::default();
        thread::scope(|scope| {
            let parked = scope.spawn(|| {
                while clock.now_us() < 500 {
                    clock.park_until_us(500);
                }
            });
            while clock.sleepers() == 0 {
                thread::yield_now();
            }
            clock.set_us(500);
            parked.join().unwrap();
        });
        assert_eq!(clock.sleepers(), 0);
        clock.park_until_us(400);
    }
}
