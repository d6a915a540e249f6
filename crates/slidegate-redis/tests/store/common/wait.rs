//! Waiting for other processes, which announce nothing.

use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// Enough on a busy machine.
const AMPLE: Duration = Duration::from_secs(90);

/// Waits for a state of another process.
pub fn wait_until(state: &str, mut is_reached: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_reached() {
        assert!(begin.elapsed() < AMPLE, "not reached: {state}");
        pause(Duration::from_millis(5));
    }
}

/// Leaves other processes some time.
pub fn pause(pause: Duration) {
    thread::park_timeout(pause);
}
