//! The auditor: counts the true window from the admissions alone, without knowing the algorithm.

use std::collections::VecDeque;

/// The findings of an [`Auditor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Findings {
    /// Decisions seen.
    pub decisions: u64,
    /// Decisions that admitted.
    pub admitted: u64,
    /// Most units that any window held.
    pub most_in_window: u64,
    /// Refusals of a cost that would have fitted the true window.
    pub early_refusals: u64,
    /// The most units by which a refusal was early: with as many more in the true window it would have
    /// been right.
    pub early_units_max: u64,
}

/// Sees only (time, cost, allowed) and units that were given back, and keeps the true trailing window
/// `(now - W, now]`.
///
/// ```
/// use slidegate::testing::Auditor;
///
/// let mut auditor = Auditor::new(1, 10);
/// auditor.saw(100, 1, true);
/// auditor.saw(109, 1, true);
/// assert_eq!(auditor.findings().most_in_window, 2, "both lie in (99, 109]");
/// ```
#[derive(Debug, Clone)]
pub struct Auditor {
    limit: u64,
    window_us: u64,
    /// Admitted (time, units), oldest first.
    live: VecDeque<(u64, u64)>,
    sum: u64,
    findings: Findings,
}

impl Auditor {
    /// An auditor of a limit of `limit` units in `window_us` microseconds.
    #[must_use]
    pub fn new(limit: u64, window_us: u64) -> Self {
        Self { limit, window_us, live: VecDeque::new(), sum: 0, findings: Findings::default() }
    }

    /// Records a decision, at a time not earlier than the last.
    pub fn saw(&mut self, now_us: u64, cost: u64, allowed: bool) {
        let truth = self.truth(now_us);
        self.findings.decisions += 1;
        if allowed {
            self.findings.admitted += 1;
            self.sum += cost;
            match self.live.back_mut() {
                Some((time, units)) if *time == now_us => *units += cost,
                _ => self.live.push_back((now_us, cost)),
            }
            self.findings.most_in_window = self.findings.most_in_window.max(self.sum);
        } else if truth + cost <= self.limit {
            self.findings.early_refusals += 1;
            let lacked = self.limit - cost + 1 - truth;
            self.findings.early_units_max = self.findings.early_units_max.max(lacked);
        }
    }

    /// Records that `units` of the charge made at `charged_us` were given back.
    ///
    /// If that instant holds fewer, because a credit has taken them already, the rest is taken from
    /// the oldest charges: the limiter has given them all back.
    pub fn refunded(&mut self, now_us: u64, charged_us: u64, units: u64) {
        self.truth(now_us);
        let index = self.live.partition_point(|(time, _)| *time < charged_us);
        let held = self.live.get_mut(index).filter(|(time, _)| *time == charged_us);
        let taken = held.map_or(0, |(_, held)| {
            let taken = units.min(*held);
            *held -= taken;
            taken
        });
        self.sum -= taken;
        self.credited(now_us, units - taken);
    }

    /// Records that `units` were given back from the oldest charges.
    pub fn credited(&mut self, now_us: u64, units: u64) {
        self.truth(now_us);
        let mut rest = units;
        for (_, held) in &mut self.live {
            let taken = rest.min(*held);
            *held -= taken;
            self.sum -= taken;
            rest -= taken;
        }
    }

    /// Units in the true window at `now_us`.
    pub fn truth(&mut self, now_us: u64) -> u64 {
        while let Some(&(time, units)) = self.live.front() {
            if time + self.window_us > now_us {
                break;
            }
            self.sum -= units;
            self.live.pop_front();
        }
        self.sum
    }

    /// The findings so far.
    #[must_use]
    pub fn findings(&self) -> Findings {
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_half_open() {
        let mut auditor = Auditor::new(1, 10);
        auditor.saw(100, 1, true);
        assert_eq!(auditor.truth(109), 1);
        assert_eq!(auditor.truth(110), 0, "exactly W old counts no more");
        auditor.saw(110, 1, true);
        assert_eq!(auditor.findings().most_in_window, 1);
    }

    #[test]
    fn over_admission_is_found() {
        let mut auditor = Auditor::new(5, 10);
        auditor.saw(9, 5, true);
        auditor.saw(10, 5, true);
        assert_eq!(auditor.findings().most_in_window, 10);
    }

    #[test]
    fn early_refusals_are_found_and_measured() {
        let mut auditor = Auditor::new(5, 10);
        auditor.saw(0, 3, true);
        auditor.saw(1, 3, false);
        assert_eq!(auditor.findings().early_refusals, 0, "3 + 3 > 5: right");
        auditor.saw(2, 1, false);
        assert_eq!((auditor.findings().early_refusals, auditor.findings().early_units_max), (1, 2));
    }

    #[test]
    fn units_given_back_do_not_count() {
        let mut auditor = Auditor::new(5, 10);
        auditor.saw(0, 2, true);
        auditor.saw(1, 3, true);
        auditor.refunded(2, 1, 3);
        assert_eq!(auditor.truth(2), 2);
        auditor.credited(2, 1);
        assert_eq!(auditor.truth(2), 1);
        auditor.refunded(3, 0, 2);
        assert_eq!(auditor.truth(3), 0);
    }
}
