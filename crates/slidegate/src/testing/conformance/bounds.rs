//! The limit holds, and the wait is exact.

use super::subject::{BOUNDARY_US, Subject, retry_us, rule};
use crate::rule::Algorithm;
use crate::store::Store;
use crate::testing::{Auditor, Rng, attack, trace};

/// Decisions per algorithm and rate.
const DECISIONS: u64 = 250;

/// Random traffic stays within the documented bound of its algorithm, checked by an auditor that sees only
/// (time, cost, allowed). The exact log refuses nothing that would have fitted.
pub async fn bounds_hold<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        for rate in ["3/1s", "50/10s", "1000/1ms", "1000000000000/400d"] {
            let (subject, rule) = (Subject::new(fresh).await, rule("api", &[rate], algorithm));
            let limit = rule.limits()[0];
            let (mut rng, mut at_us) = (Rng::new(limit.units()), BOUNDARY_US - limit.window_us() / 3);
            let mut auditor = Auditor::new(limit.units(), limit.window_us());
            for _ in 0..DECISIONS {
                let cost = rng.between(1, limit.units().div_ceil(4));
                let decision = subject.ask(at_us, &rule, cost).await?;
                auditor.saw(at_us, cost, decision.allowed());
                at_us += match rng.below(8) {
                    0..4 => 0,
                    4..6 => rng.below(limit.window_us() / 8 + 2),
                    6 => limit.bucket_us() - rng.below(2),
                    _ => retry_us(&decision),
                };
            }
            let (found, bound) = (auditor.findings(), attack::attainable_max(&limit));
            ensure!(
                found.most_in_window <= bound,
                "{algorithm} {rate}: above its bound of {bound}: {found:?}"
            );
            let judged = found.admitted > 0 && found.admitted < found.decisions;
            ensure!(judged, "{algorithm} {rate}: the traffic was all admitted or all denied: {found:?}");
            let exact = algorithm != Algorithm::SlidingLog || found.early_refusals == 0;
            ensure!(exact, "{algorithm} {rate}: refused what would have fitted: {found:?}");
        }
    }
    Ok(())
}

/// At the instant that a denial announces the same request passes; one microsecond earlier it does not.
pub async fn waits_are_exact<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        for rates in [&["10/10s"][..], &["3/7s"], &["4/1s", "20/10s", "60/1m"], &["1000000000000/400d"]] {
            let (subject, rule) = (Subject::new(fresh).await, rule("api", rates, algorithm));
            let (mut rng, mut at_us, mut denials) = (Rng::new(7), BOUNDARY_US - 1, 0);
            while denials < 20 {
                let cost = rng.between(1, rule.cost_max());
                let decision = subject.ask(at_us, &rule, cost).await?;
                if decision.allowed() {
                    ensure_eq!(retry_us(&decision), 0, "{algorithm} {rates:?}: the wait of an admission");
                } else {
                    denials += 1;
                    subject.wait_is_exact(at_us, &[(&rule, "alice", cost)], &decision).await?;
                }
                at_us += match rng.below(3) {
                    0 => 0,
                    1 => rng.below(rule.limits()[0].window_us() / 5),
                    _ => retry_us(&decision) / 2,
                };
            }
        }
    }
    Ok(())
}
