//! The worst case, by attack, for limiters that only answer yes or no.

use slidegate::testing::{Auditor, Findings};

use crate::subjects::Subject;

const START_US: u64 = 1_745_000_100_000_000;

/// Takes all that the limiter admits at one instant, then at the last instant of the same window, and again when the
/// window is truly empty.
pub(crate) fn straddle_and_echo(subject: &mut dyn Subject, limit: u64, window_us: u64) -> Findings {
    let mut auditor = Auditor::new(limit, window_us);
    for now_us in [START_US, START_US + window_us - 1, START_US + 2 * window_us - 1] {
        loop {
            let allowed = subject.ask(now_us).allowed;
            auditor.saw(now_us, 1, allowed);
            if !allowed {
                break;
            }
        }
    }
    auditor.findings()
}
