//! Typical error: a limiter's estimate compared with the truth, on ordinary traffic.

use slidegate::testing::Auditor;

use crate::subjects::Subject;

/// The error of one limiter on one workload.
pub(crate) struct TypicalError {
    /// Mean and 95th percentile of |estimate - truth|, in millionths of the limit.
    pub(crate) mean_ppm: u64,
    pub(crate) p95_ppm: u64,
    /// Most units in any window.
    pub(crate) most_in_window: u64,
    /// Decisions that the true window contradicts, in millionths of all.
    pub(crate) wrongly_allowed_ppm: u64,
    pub(crate) wrongly_refused_ppm: u64,
    /// Units admitted, in millionths of the most that the limit allows over the whole run.
    pub(crate) utilisation_ppm: u64,
}

/// Asks `subject` at every arrival and audits it.
pub(crate) fn measure(
    subject: &mut dyn Subject,
    arrivals: &[u64],
    limit: u64,
    window_us: u64,
    windows: u64,
) -> TypicalError {
    let mut auditor = Auditor::new(limit, window_us);
    let mut errors_ppm = Vec::with_capacity(arrivals.len());
    let mut wrongly_allowed = 0;
    for &now_us in arrivals {
        let truth = auditor.truth(now_us);
        let answer = subject.ask(now_us);
        errors_ppm.push(answer.estimate.abs_diff(truth) * 1_000_000 / limit);
        wrongly_allowed += u64::from(answer.allowed && truth + 1 > limit);
        auditor.saw(now_us, 1, answer.allowed);
    }
    errors_ppm.sort_unstable();
    let findings = auditor.findings();
    let decisions = arrivals.len() as u64;
    TypicalError {
        mean_ppm: errors_ppm.iter().sum::<u64>() / decisions,
        p95_ppm: errors_ppm[errors_ppm.len() * 95 / 100],
        most_in_window: findings.most_in_window,
        wrongly_allowed_ppm: wrongly_allowed * 1_000_000 / decisions,
        wrongly_refused_ppm: findings.early_refusals * 1_000_000 / decisions,
        utilisation_ppm: findings.admitted * 1_000_000 / (windows * limit),
    }
}
