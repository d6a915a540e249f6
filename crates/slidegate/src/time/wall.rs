//! The system's clock as it is now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Clock, TIME_MAX_US, whole_us};

/// The system's clock, read anew every time: it follows corrections, and may be set back.
///
/// For what several processes of a machine share, each of which would otherwise count on from its own start.
///
/// ```
/// use slidegate::time::{Clock, WallClock};
///
/// assert!(WallClock.now_us() > 1_700_000_000_000_000);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the folder where time enters")]
    fn now_us(&self) -> u64 {
        // A machine set to before 1970 shows 1970.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        whole_us(since_epoch).min(TIME_MAX_US)
    }
}
