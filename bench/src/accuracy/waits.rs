//! Whether the announced wait is the truth: refused one microsecond before its end, admitted at it.

use slidegate::testing::Rng;

use crate::subjects::Subject;

/// What became of announced waits.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) probed: u64,
    /// Admitted one microsecond before the end.
    pub(crate) too_long: u64,
    /// Still refused at the end.
    pub(crate) too_short: u64,
}

/// Asks at random instants; at every refusal goes to the end of the wait and looks.
pub(crate) fn probe(subject: &mut dyn Subject, limit: u64, window_us: u64, probes: u64) -> Waits {
    let mut rng = Rng::new(limit);
    let mut waits = Waits::default();
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
