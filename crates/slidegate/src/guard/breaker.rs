//! The circuit breaker: does not ask a store that has failed several times in a row.
//!
//! ```text
//!           FAILURES_MAX failures in a row              the pause has passed
//!   closed ------------------------------> open <------------------------> half-open
//!     ^                                      ^       the probe fails            |
//!     |                                      +--- (a pause twice as long) ------+
//!     +------------------------- the probe is answered -------------------------+
//! ```
//!
//! While it is open a call is answered without the store, in microseconds instead of a deadline. Half-open, one call at
//! a time is the probe, and asks the store; all others are answered as before. There is no probe without traffic, and no
//! timer: the first call after the pause is the probe.
//!
//! Rejected: a failure rate over a window, which needs a window of its own and opens no earlier when a store is gone;
//! and jitter in the pauses: every process sends one call a second at most to a store that is down.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::{RefusalCause, StoreError};
use crate::time::whole_us;

/// Failures in a row that open it. More than one, because one lost connection is no outage.
const FAILURES_MAX: u32 = 5;
/// First and longest pause between probes. A store that is back is asked within the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Stands for a closed breaker, which needs no instant.
const CLOSED: u64 = 0;

/// The state of the breaker. Reading it while it is closed costs one load.
#[derive(Debug)]
pub(super) struct Breaker {
    /// When the next probe may ask the store, while it is open; else [`CLOSED`].
    probe_at_us: AtomicU64,
    /// Failures in a row while it is closed, failed probes while it is open.
    failures: AtomicU32,
    /// Whether a probe is asking the store.
    probing: AtomicBool,
    /// What calls fail with while it is open.
    error: Mutex<Option<StoreError>>,
}

/// The permission to ask the store. Its result must be [reported](Permit::report); a permit that is dropped without one,
/// because its call was cancelled, leaves the breaker as it was.
#[derive(Debug)]
pub(super) struct Permit<'b> {
    breaker: &'b Breaker,
    is_probe: bool,
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Opened,
    Closed,
}

impl Breaker {
    pub(super) fn new() -> Self {
        let (probe_at_us, failures) = (AtomicU64::new(CLOSED), AtomicU32::new(0));
        Self { probe_at_us, failures, probing: AtomicBool::new(false), error: Mutex::new(None) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.probe_at_us.load(Ordering::Acquire) != CLOSED
    }

    /// Whether the store may be asked at `now_us`; if not, the error that the call fails with.
    pub(super) fn permit(&self, now_us: impl FnOnce() -> u64) -> Result<Permit<'_>, StoreError> {
        let probe_at_us = self.probe_at_us.load(Ordering::Acquire);
        if probe_at_us == CLOSED {
            return Ok(Permit { breaker: self, is_probe: false });
        }
        let now_us = now_us();
        if now_us >= probe_at_us && !self.probing.swap(true, Ordering::AcqRel) {
            let probe = Permit { breaker: self, is_probe: true };
            // Another probe may have ended since: after a failure the next one is not due yet.
            if self.probe_at_us.load(Ordering::Acquire) <= now_us {
                return Ok(probe);
            }
        }
        Err(self.last_error())
    }

    /// The permission to ask the store in any case. While it is open, the call is the probe unless there is one already.
    pub(super) fn permit_always(&self) -> Permit<'_> {
        let is_probe = self.is_open() && !self.probing.swap(true, Ordering::AcqRel);
        Permit { breaker: self, is_probe }
    }

    /// The error that a call fails with while it is open; `None` if the store may be asked.
    pub(super) fn refusal(&self, now_us: impl FnOnce() -> u64) -> Option<StoreError> {
        let probe_at_us = self.probe_at_us.load(Ordering::Acquire);
        let refuses =
            probe_at_us != CLOSED && (now_us() < probe_at_us || self.probing.load(Ordering::Acquire));
        refuses.then(|| self.last_error())
    }

    fn last_error(&self) -> StoreError {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        error.unwrap_or_else(|| StoreError::Unavailable { why: OPEN.into() })
    }

    fn open(&self, now_us: u64, error: &StoreError, failed_probes: u32) {
        let pause = (PAUSES.0 * 2_u32.saturating_pow(failed_probes)).min(PAUSES.1);
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(open_error(error));
        self.failures.store(failed_probes, Ordering::Relaxed);
        self.probe_at_us.store(now_us.saturating_add(whole_us(pause)).max(CLOSED + 1), Ordering::Release);
    }

    fn close(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.probe_at_us.store(CLOSED, Ordering::Release);
    }
}

impl Permit<'_> {
    /// Records how the call ended: with `failure`, or with an answer of the store.
    pub(super) fn report(self, now_us: impl FnOnce() -> u64, failure: Option<&StoreError>) -> Change {
        let breaker = self.breaker;
        // Closed by another call since: an ordinary one.
        let is_probe = self.is_probe && breaker.is_open();
        match failure.filter(|error| is_outage(error)) {
            None if is_probe => {
                breaker.close();
                Change::Closed
            }
            None => {
                // Usually there were none, and a load leaves the cache line shared.
                if breaker.failures.load(Ordering::Relaxed) != 0 && !breaker.is_open() {
                    breaker.failures.store(0, Ordering::Relaxed);
                }
                Change::None
            }
            Some(error) if is_probe => {
                let failed_probes = breaker.failures.load(Ordering::Relaxed).saturating_add(1);
                breaker.open(now_us(), error, failed_probes);
                Change::None
            }
            // A call from before it opened.
            Some(_) if breaker.is_open() => Change::None,
            Some(error) => {
                if breaker.failures.fetch_add(1, Ordering::AcqRel) + 1 != FAILURES_MAX {
                    return Change::None;
                }
                breaker.open(now_us(), error, 0);
                Change::Opened
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.probing.store(false, Ordering::Release);
        }
    }
}

/// Whether a failure says that the store cannot be asked at all. A store that refuses a request has answered it; only a
/// replica refuses all of them.
fn is_outage(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable { .. } | StoreError::Ambiguous { .. } => true,
        StoreError::Refused { cause, .. } => *cause == RefusalCause::ReadOnly,
        StoreError::Full { .. } | StoreError::InlineFull { .. } => false,
    }
}

const OPEN: &str = "the circuit breaker is open, because calls failed in a row";

/// The error of calls that are not made. A refusal keeps its cause, which tells operators what to do.
fn open_error(last: &StoreError) -> StoreError {
    let text = last.to_string();
    let why = format!("{OPEN}; the last one: {}", text.strip_prefix("store: ").unwrap_or(&text)).into();
    match last {
        StoreError::Refused { cause, .. } => StoreError::Refused { cause: *cause, why },
        _ => StoreError::Unavailable { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn down() -> StoreError {
        StoreError::Unavailable { why: "connection refused".into() }
    }

    /// Asks at an instant, with that result; what it changed, or `None` if the store was not asked.
    fn asked(breaker: &Breaker, now_us: u64, failure: Option<&StoreError>) -> Option<Change> {
        Some(breaker.permit(|| now_us).ok()?.report(|| now_us, failure))
    }

    fn opened(now_us: u64) -> Breaker {
        let breaker = Breaker::new();
        for _ in 1..FAILURES_MAX {
            assert_eq!(asked(&breaker, now_us, Some(&down())), Some(Change::None));
        }
        assert_eq!(asked(&breaker, now_us, Some(&down())), Some(Change::Opened));
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_an_answer_in_between_does_not() {
        let breaker = Breaker::new();
        for round in 0..10 {
            for _ in 1..FAILURES_MAX {
                assert_eq!(asked(&breaker, round, Some(&down())), Some(Change::None));
            }
            assert_eq!(asked(&breaker, round, None), Some(Change::None));
        }
        assert!(!breaker.is_open());
        assert!(opened(5).is_open());
    }

    #[test]
    fn an_open_breaker_names_the_last_failure_and_charges_nothing() {
        let breaker = opened(0);
        let lost = StoreError::Ambiguous { why: "no reply".into() };
        let error = breaker.permit(|| 1).unwrap_err();
        assert!(error.to_string().contains("circuit breaker is open"), "{error}");
        assert!(error.to_string().contains("connection refused"), "{error}");
        assert_eq!(asked(&breaker, 100 * MS, Some(&lost)), Some(Change::None));
        let error = breaker.permit(|| 100 * MS).unwrap_err();
        assert!(!error.maybe_charged(), "it was not asked: {error}");
    }

    #[test]
    fn pauses_between_probes_double_up_to_a_second() {
        let breaker = opened(0);
        let mut now_us = 0;
        for pause_ms in [100, 200, 400, 800, 1_000, 1_000, 1_000] {
            assert!(breaker.permit(|| now_us + pause_ms * MS - 1).is_err(), "{pause_ms}");
            now_us += pause_ms * MS;
            assert_eq!(asked(&breaker, now_us, Some(&down())), Some(Change::None), "{pause_ms}");
        }
        assert_eq!(asked(&breaker, now_us + 1_000 * MS, None), Some(Change::Closed));
        assert!(!breaker.is_open());
        let again = opened(now_us);
        assert!(again.permit(|| now_us + 100 * MS).is_ok(), "pauses start over");
    }

    #[test]
    fn one_call_at_a_time_is_the_probe() {
        let breaker = opened(0);
        let probe = breaker.permit(|| 100 * MS).unwrap();
        assert!(breaker.permit(|| 100 * MS).is_err());
        // A cancelled call says nothing about the store, and the next one probes.
        drop(probe);
        assert_eq!(asked(&breaker, 100 * MS, None), Some(Change::Closed));
    }

    /// A readiness probe comes when it comes, and must show that the store is back although nobody else asks.
    #[test]
    fn a_call_that_always_asks_is_the_probe_if_there_is_none() {
        let breaker = opened(0);
        let (probe, beside) = (breaker.permit_always(), breaker.permit_always());
        assert!(breaker.permit(|| 100 * MS).is_err(), "one call at a time");
        assert_eq!(beside.report(|| 1, None), Change::None, "it is not the probe");
        assert_eq!(probe.report(|| 1, None), Change::Closed);
        assert_eq!(breaker.permit_always().report(|| 2, None), Change::None);

        let breaker = opened(0);
        assert_eq!(breaker.permit_always().report(|| 50 * MS, Some(&down())), Change::None);
        assert!(breaker.permit(|| 249 * MS).is_err(), "the second pause, from then on");
        assert!(breaker.permit(|| 250 * MS).is_ok());
    }

    #[test]
    fn a_refusal_keeps_its_cause_while_it_is_open() {
        let breaker = Breaker::new();
        let refused = StoreError::Refused { cause: RefusalCause::ReadOnly, why: "a replica".into() };
        for _ in 0..FAILURES_MAX {
            asked(&breaker, 0, Some(&refused));
        }
        let error = breaker.permit(|| 1).unwrap_err();
        assert!(matches!(error, StoreError::Refused { cause: RefusalCause::ReadOnly, .. }), "{error}");
    }

    #[test]
    fn calls_from_before_it_opened_change_nothing() {
        let breaker = Breaker::new();
        let [early, late] = [breaker.permit(|| 0).unwrap(), breaker.permit(|| 0).unwrap()];
        for _ in 0..FAILURES_MAX {
            asked(&breaker, 0, Some(&down()));
        }
        assert_eq!(early.report(|| 0, None), Change::None);
        assert_eq!(late.report(|| 0, Some(&down())), Change::None);
        assert!(breaker.permit(|| 99 * MS).is_err(), "the probe decides");
        assert!(breaker.permit(|| 100 * MS).is_ok());
    }

    #[test]
    fn a_refused_request_was_answered() {
        let breaker = Breaker::new();
        let refused = |cause| StoreError::Refused { cause, why: "no".into() };
        let full = StoreError::Full { budget_bytes: 1 };
        for _ in 0..3 * FAILURES_MAX {
            for error in [&full, &refused(RefusalCause::ForeignValue), &refused(RefusalCause::OutOfMemory)] {
                assert_eq!(asked(&breaker, 0, Some(error)), Some(Change::None));
            }
        }
        for _ in 0..FAILURES_MAX {
            asked(&breaker, 0, Some(&refused(RefusalCause::ReadOnly)));
        }
        assert!(breaker.is_open(), "a replica refuses every charge");
    }
}
