//! Returns freed memory to the system when many connections have ended.
//!
//! glibc returns memory by itself only from the end of a heap. After 4,000 connections with half-sent bodies the process
//! kept 236 MB, nearly all of it free; now it keeps 16 MB, 2 MB more than before them (debug build).
//!
//! Rejected: jemalloc with its background thread, which does the same, but every command would start a millisecond later;
//! and mimalloc, which kept as much.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Fewer connections than this had too little memory.
const FALL_MIN: usize = 64;
/// Time between two looks.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Looks at the open connections, and returns memory after their number has fallen.
pub(super) async fn watch(connections: &Peak, open: impl Fn() -> usize) -> Infallible {
    loop {
        sleep(LOOK_PERIOD).await;
        if connections.has_fallen(open()) {
            // It takes milliseconds, and this thread may serve a Redis store.
            drop(tokio::task::spawn_blocking(trim));
        }
    }
}

/// The highest number of connections since memory was returned.
#[derive(Debug, Default)]
pub(super) struct Peak(AtomicUsize);

impl Peak {
    /// Notes a number of connections: a flood may come and go between two looks.
    pub(super) fn note(&self, connections: usize) {
        self.0.fetch_max(connections, Ordering::Relaxed);
    }

    /// Whether the number is at most half of the highest one, and far enough below it. If so, begins anew.
    fn has_fallen(&self, connections: usize) -> bool {
        let fall = self.0.load(Ordering::Relaxed).saturating_sub(connections);
        let has_fallen = fall >= FALL_MIN && fall >= connections;
        if has_fallen {
            self.0.store(connections, Ordering::Relaxed);
        }
        has_fallen
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "only the C library can return its free memory")]
fn trim() {
    // SAFETY: it takes no pointer, frees nothing that is in use, and locks each heap that it looks at.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return memory in their own way.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_returned_once_after_a_fall() {
        let peak = Peak::default();
        for (connections, falls) in
            [(30, false), (0, false), (150, false), (76, false), (75, true), (12, false)]
        {
            peak.note(connections);
            assert_eq!(peak.has_fallen(connections), falls, "at {connections}");
        }
        peak.note(1_000);
        assert!(peak.has_fallen(500) && !peak.has_fallen(450), "a flood between two looks");
    }
}
