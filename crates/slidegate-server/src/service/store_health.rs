//! Failures of the store by cause: a line in the log when each begins and ends, and what `/readyz` shows.
//!
//! A cause ends with an answer of the store after five seconds without it, so a store that fails every other call, or
//! answers reads and refuses writes, logs a line per cause in five seconds at most. The metrics count every failure.
//!
//! The circuit breaker may open and close many times meanwhile. It is logged when it opens first, and when it is closed
//! and no cause is left.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slidegate::time::Clock;

use crate::metrics::StoreCause;

/// How long a cause must be absent before it has ended.
const QUIET_US: u64 = 5_000_000;

/// The causes that the store fails for at present.
pub(crate) struct StoreHealth {
    clock: Arc<dyn Clock>,
    /// Whether there is any, to be read at every answer.
    is_failing: AtomicBool,
    causes: Mutex<[Option<Failing>; StoreCause::ALL.len()]>,
    breaker_is_open: AtomicBool,
    /// Whether its opening was logged, and not yet its closing.
    breaker_is_logged: AtomicBool,
}

/// A cause since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) cause: StoreCause,
    pub(crate) failures: u64,
    begun_us: u64,
    last_us: u64,
}

impl StoreHealth {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let [is_failing, breaker_is_open, breaker_is_logged] = [const { AtomicBool::new(false) }; 3];
        Self { clock, is_failing, causes: Mutex::default(), breaker_is_open, breaker_is_logged }
    }

    /// Whether the store fails for any cause, or did a moment ago.
    #[inline]
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Records a failure, and logs the first of its cause.
    #[cold]
    pub(super) fn failed(&self, operation: &str, cause: StoreCause, error: &dyn Display) {
        let now_us = self.clock.now_us();
        let mut causes = self.causes();
        match &mut causes[cause as usize] {
            Some(failing) => {
                failing.failures += 1;
                failing.last_us = now_us;
            }
            none => {
                *none = Some(Failing { cause, failures: 1, begun_us: now_us, last_us: now_us });
                self.is_failing.store(true, Ordering::Relaxed);
                drop(causes);
                let (kind, remedy) = (cause.name(), cause.remedy());
                if cause.error_has_no_key() {
                    tracing::warn!(operation, kind, remedy, %error, "the store fails");
                } else {
                    tracing::warn!(operation, kind, remedy, "the store fails");
                }
            }
        }
    }

    /// Records that the circuit breaker opened or closed, and logs the first opening.
    pub(super) fn breaker_changed(&self, is_open: bool) {
        self.breaker_is_open.store(is_open, Ordering::Relaxed);
        if is_open && !self.breaker_is_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the circuit breaker opened: outage policies answer, and one call at a time probes the store"
            );
        }
    }

    /// Records an answer of a failing store, and logs the causes that have ended. `wrote`: whether the call changed
    /// anything.
    #[cold]
    pub(super) fn answered(&self, wrote: bool) {
        let now_us = self.clock.now_us();
        let mut causes = self.causes();
        let mut ended = Vec::new();
        for slot in causes.iter_mut() {
            let Some(failing) = slot else { continue };
            // A clock that was set back must not keep a cause for as long as the step.
            failing.last_us = failing.last_us.min(now_us);
            let shows = wrote || !failing.cause.fails_writes_only();
            if shows && now_us - failing.last_us >= QUIET_US {
                ended.extend(slot.take());
            }
        }
        let is_failing = causes.iter().any(Option::is_some);
        self.is_failing.store(is_failing, Ordering::Relaxed);
        drop(causes);
        for Failing { cause, failures, begun_us, last_us } in ended {
            let (kind, failed_for_ms) = (cause.name(), last_us.saturating_sub(begun_us) / 1_000);
            tracing::info!(kind, failures, failed_for_ms, "the store answers again");
        }
        let is_closed = !self.breaker_is_open.load(Ordering::Relaxed);
        if !is_failing && is_closed && self.breaker_is_logged.swap(false, Ordering::Relaxed) {
            tracing::info!("the circuit breaker is closed");
        }
    }

    /// The causes at present.
    pub(crate) fn failing(&self) -> Vec<Failing> {
        if self.is_failing() { self.causes().iter().flatten().copied().collect() } else { Vec::new() }
    }

    fn causes(&self) -> MutexGuard<'_, [Option<Failing>; StoreCause::ALL.len()]> {
        self.causes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use serde_json::Value;
    use slidegate::time::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health() -> (StoreHealth, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at_us(1_000_000_000));
        (StoreHealth::new(Arc::clone(&clock) as _), clock)
    }

    /// The lines that are logged, as (level, kind, failures, error).
    fn logged(act: impl FnOnce()) -> Vec<[String; 4]> {
        let (reader, writer) = io::pipe().unwrap();
        let lines = tracing_subscriber::fmt().json().flatten_event(true).with_writer(Mutex::new(writer));
        tracing::subscriber::with_default(lines.finish(), act);
        let text = io::read_to_string(reader).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| ["level", "kind", "failures", "error"].map(|field| shown(&line[field]))).collect()
    }

    fn shown(value: &Value) -> String {
        value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
    }

    #[test]
    fn each_cause_is_logged_when_it_begins_and_when_it_ends() {
        let (health, clock) = health();
        let lines = logged(|| {
            for _ in 0..3 {
                health.failed("check", StoreCause::OutOfMemory, &"maxmemory; raise it");
                clock.advance(SECOND);
            }
            health.failed("peek", StoreCause::Unavailable, &"no route");
            clock.advance(6 * SECOND);
            health.answered(true);
        });
        assert_eq!(
            lines.iter().map(|line| line.each_ref().map(String::as_str)).collect::<Vec<_>>(),
            [
                ["WARN", "out-of-memory", "null", "maxmemory; raise it"],
                ["WARN", "unavailable", "null", "no route"],
                ["INFO", "unavailable", "1", "null"],
                ["INFO", "out-of-memory", "3", "null"],
            ]
        );
        assert!(!health.is_failing());
        assert_eq!(health.failing(), []);
    }

    /// A read-only replica answers reads and refuses writes; a store that fails every other call is as noisy.
    #[test]
    fn a_store_that_alternates_does_not_flood_the_log() {
        for wrote in [true, false] {
            let (health, clock) = health();
            let lines = logged(|| {
                for _ in 0..1_000 {
                    health.failed("check", StoreCause::ReadOnly, &"a replica");
                    clock.advance(Duration::from_millis(100));
                    health.answered(wrote);
                }
            });
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert_eq!(health.failing()[0].failures, 1_000);
        }
    }

    /// A flapping store opens the breaker every second.
    #[test]
    fn the_breaker_is_logged_once_per_outage() {
        let (health, clock) = health();
        for outages in 1..3 {
            let lines = logged(|| {
                for _ in 0..50 {
                    health.failed("check", StoreCause::Unavailable, &"gone");
                    health.breaker_changed(true);
                    clock.advance(SECOND);
                    health.breaker_changed(false);
                    health.answered(true);
                }
                clock.advance(6 * SECOND);
                health.answered(true);
            });
            // The cause and the breaker, each twice.
            assert_eq!(lines.len(), 4, "{outages}: {lines:?}");
        }
    }

    #[test]
    fn a_denial_does_not_show_that_writes_are_taken_again() {
        let (health, clock) = health();
        health.failed("check", StoreCause::Disk, &"full");
        health.failed("check", StoreCause::ForeignValue, &"a list");
        clock.advance(60 * SECOND);
        health.answered(false);
        assert_eq!(
            health.failing().iter().map(|failing| failing.cause).collect::<Vec<_>>(),
            [StoreCause::Disk]
        );
        health.answered(true);
        assert_eq!(health.failing(), []);
    }

    /// Keys may be personal data.
    #[test]
    fn errors_that_name_a_key_are_not_logged() {
        let (health, _clock) = health();
        let lines = logged(|| {
            for cause in StoreCause::ALL.into_iter().filter(|cause| !cause.error_has_no_key()) {
                health.failed("check", cause, &"key `alice`");
            }
        });
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|[.., error]| error == "null"), "{lines:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_a_cause() {
        let (health, clock) = health();
        health.failed("check", StoreCause::Unavailable, &"gone");
        clock.set_us(1_000);
        health.answered(true);
        assert!(health.is_failing());
        clock.advance(6 * SECOND);
        health.answered(true);
        assert!(!health.is_failing());
    }
}
