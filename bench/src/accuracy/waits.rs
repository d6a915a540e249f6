//! Checks announced waits: the request must be refused one microsecond before the end, and admitted at the end.

use slidegate::testing::Rng;

use crate::subjects::Subject;

/// Counts of probed waits.
#[derive(Default)]
pub(crate) struct WaitCounts {
    pub(crate) probed: u64,
    /// Admitted one microsecond before the end.
    pub(crate) too_long: u64,
    /// Still refused at the end.
    pub(crate) too_short: u64,
}

/// Asks at random instants, and after every refusal again at the end of the wait.
pub(crate) fn probe(subject: &mut dyn Subject, limit: u64, window_us: u64, probes: u64) -> WaitCounts {
    let mut rng = Rng::new(limit);
    let mut waits = WaitCounts::default();
    let mut now_us = 1_745_000_100_000_000;
    while waits.probed < probes {
        now_us += rng.below(window_us / limit);
        let answer = subject.ask(now_us);
        if answer.allowed {
            continue;
        }
        waits.probed += 1;
        if answer.retry_after_us > 1 {
            now_us += answer.retry_after_us - 1;
            if subject.ask(now_us).allowed {
                waits.too_long += 1;
                continue;
            }
            now_us += 1;
        } else {
            now_us += answer.retry_after_us;
        }
        waits.too_short += u64::from(!subject.ask(now_us).allowed);
    }
    waits
}
