//! Time: whole microseconds since 1970, read through a [`Clock`].
//!
//! Algorithms never read a clock; they take `now_us`. Only this folder may read the time of the
//! operating system or the processor.
//!
//! * [`SystemClock`]: the default clock, monotonic.
//! * [`WallClock`]: the system clock, read every time; shared by the processes of a machine.
//! * [`ManualClock`]: moves only by its methods; for tests, replays and simulations.
//! * [`Timer`]: lets a task sleep.

mod block_on;
mod interpolated;
mod line;
mod manual;
mod system;
mod ticks;
mod timer;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) use block_on::block_on;
pub use manual::ManualClock;
pub use system::{SystemClock, WallClock};
pub(crate) use system::{deadline_after, process_clock};
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use timer::TokioTimer;

/// The end of the year 9999: no clock shows more, so that sums of instants and windows cannot overflow.
pub const TIME_MAX_US: u64 = 253_402_300_799_999_999;

/// The source of a store's time.
///
/// ```
/// use slidegate::time::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::at_us(1_745_000_145_000_000);
/// clock.advance(Duration::from_millis(3));
/// assert_eq!(clock.now_us(), 1_745_000_145_003_000);
/// ```
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01T00:00:00Z.
    fn now_us(&self) -> u64;

    /// Parks this thread until the clock shows `until_us` or it is unparked. It may return early.
    ///
    /// The default assumes a clock that runs in real time.
    fn park_until_us(&self, until_us: u64) {
        thread::park_timeout(Duration::from_micros(until_us.saturating_sub(self.now_us())));
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now_us(&self) -> u64 {
        (**self).now_us()
    }

    fn park_until_us(&self, until_us: u64) {
        (**self).park_until_us(until_us);
    }
}

/// Whole microseconds of a duration, rounded down; saturates after half a million years.
pub(crate) fn whole_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
