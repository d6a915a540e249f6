//! The decisions of the model store, and how verdicts are joined.

use crate::algorithm::Usage;
use crate::decision::{Decision, Verdict};
use crate::rule::Limit;

/// One rule's verdict on one charge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the accessor of that name of `Verdict`")]
pub struct ModelVerdict {
    pub rule: String,
    pub shadow: bool,
    pub allowed: bool,
    pub limit: u64,
    pub window_us: u64,
    pub used: u64,
    pub remaining: u64,
    pub retry_after_us: u64,
    pub reset_after_us: u64,
}

/// The model's decision; compare it with [`ModelDecision::of`] a real one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the accessor of that name of `Decision`")]
pub struct ModelDecision {
    pub allowed: bool,
    pub rule: String,
    pub limit: u64,
    pub window_us: u64,
    pub used: u64,
    pub remaining: u64,
    pub retry_after_us: u64,
    pub reset_after_us: u64,
    pub verdicts: Vec<ModelVerdict>,
}

impl ModelVerdict {
    /// The verdict of one limit. A denial without a wait is of a cost that can never pass.
    pub(super) fn of_limit(
        rule: &str,
        shadow: bool,
        limit: &Limit,
        usage: Usage,
        wait_us: Option<u64>,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            shadow,
            allowed: wait_us == Some(0),
            limit: limit.units(),
            window_us: limit.window_us(),
            used: usage.used,
            remaining: limit.units().saturating_sub(usage.used),
            retry_after_us: wait_us.unwrap_or(0),
            reset_after_us: usage.reset_after_us,
        }
    }

    /// Joins verdicts, of which there is at least one, that must all admit.
    ///
    /// If any denies, one that denies binds: the one with the latest wait. If all admit, the one with the
    /// least remaining binds. Ties: the longest window, then the first.
    pub(super) fn joined(verdicts: &[Self]) -> Self {
        let allowed = verdicts.iter().all(|verdict| verdict.allowed);
        let mut candidates: Vec<&Self> =
            verdicts.iter().filter(|verdict| verdict.allowed == allowed).collect();
        // The sorts are stable, so each keeps the order of the one before it among equals.
        candidates.sort_by_key(|verdict| std::cmp::Reverse(verdict.window_us));
        if allowed {
            candidates.sort_by_key(|verdict| verdict.remaining);
        } else {
            candidates.sort_by_key(|verdict| std::cmp::Reverse(verdict.retry_after_us));
        }
        let latest = |wait_us: fn(&Self) -> u64| verdicts.iter().map(wait_us).max().unwrap_or(0);
        Self {
            retry_after_us: latest(|verdict| verdict.retry_after_us),
            reset_after_us: latest(|verdict| verdict.reset_after_us),
            ..candidates[0].clone()
        }
    }

    fn of(verdict: &Verdict<'_>) -> Self {
        Self {
            rule: verdict.rule().to_owned(),
            shadow: verdict.shadow(),
            allowed: verdict.allowed(),
            limit: known(verdict.limit()),
            window_us: micros(known(verdict.window())),
            used: known(verdict.used()),
            remaining: known(verdict.remaining()),
            retry_after_us: verdict.retry_after().map_or(0, micros),
            reset_after_us: micros(known(verdict.reset_after())),
        }
    }
}

impl ModelDecision {
    /// The numbers of a real decision, from its accessors.
    #[must_use]
    pub fn of(decision: &Decision<'_>) -> Self {
        Self {
            allowed: decision.allowed(),
            rule: decision.rule().to_owned(),
            limit: known(decision.limit()),
            window_us: micros(known(decision.window())),
            used: known(decision.used()),
            remaining: known(decision.remaining()),
            retry_after_us: decision.retry_after().map_or(0, micros),
            reset_after_us: micros(known(decision.reset_after())),
            verdicts: decision.verdicts().map(|verdict| ModelVerdict::of(&verdict)).collect(),
        }
    }

    /// Joins the verdicts of every charge. Shadow rules take no part unless there are no others; then the answer is an
    /// admission with their numbers.
    pub(super) fn joined(verdicts: Vec<ModelVerdict>) -> Self {
        let enforced: Vec<_> = verdicts.iter().filter(|verdict| !verdict.shadow).cloned().collect();
        let binding = if enforced.is_empty() {
            ModelVerdict { allowed: true, retry_after_us: 0, ..ModelVerdict::joined(&verdicts) }
        } else {
            ModelVerdict::joined(&enforced)
        };
        Self {
            allowed: binding.allowed,
            rule: binding.rule,
            limit: binding.limit,
            window_us: binding.window_us,
            used: binding.used,
            remaining: binding.remaining,
            retry_after_us: binding.retry_after_us,
            reset_after_us: binding.reset_after_us,
            verdicts,
        }
    }
}

/// Only decisions of stores are compared, and these have all numbers.
fn known<T>(number: Option<T>) -> T {
    number.expect("a store knows its numbers")
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("made from microseconds in u64")
}

#[cfg(test)]
mod tests {
    use super::super::samples::limit;
    use super::*;
    use crate::rule::Algorithm;

    fn verdict(rule: &str, rate: &str, used: u64, wait_us: Option<u64>) -> ModelVerdict {
        let usage = Usage { used, reset_after_us: 100 * used };
        ModelVerdict::of_limit(rule, false, &limit(rate, Algorithm::SlidingLog), usage, wait_us)
    }

    fn binding(verdicts: &[ModelVerdict]) -> (String, u64, u64) {
        let joined = ModelVerdict::joined(verdicts);
        (joined.rule, joined.retry_after_us, joined.reset_after_us)
    }

    #[test]
    fn the_binding_verdict_gives_the_numbers_and_the_latest_gives_the_waits() {
        let (a, b) = (verdict("a", "10/1s", 3, Some(0)), verdict("b", "20/1m", 15, Some(0)));
        assert_eq!(binding(&[a.clone(), b.clone()]), ("b".into(), 0, 1_500));
        let (c, d) = (verdict("c", "10/1s", 9, Some(7)), verdict("d", "90/1s", 2, Some(9)));
        assert_eq!(binding(&[a.clone(), c.clone(), b.clone(), d]), ("d".into(), 9, 1_500));
        let never = verdict("n", "1/1s", 0, None);
        assert_eq!(
            binding(&[b, never.clone()]),
            ("n".into(), 0, 1_500),
            "a denial binds before an admission"
        );
        assert_eq!(binding(&[never, c]), ("c".into(), 7, 900));
    }

    #[test]
    fn ties_go_to_the_longest_window_then_to_the_first() {
        for wait_us in [Some(0), Some(5)] {
            let [a, b, c] = [("a", "9/1s"), ("b", "9/1m"), ("c", "9/1m")]
                .map(|(rule, rate)| verdict(rule, rate, 4, wait_us));
            assert_eq!(binding(&[a.clone(), b.clone(), c.clone()]).0, "b");
            assert_eq!(binding(&[c, a, b]).0, "c");
        }
    }

    #[test]
    fn shadow_rules_bind_only_alone() {
        let shadow = ModelVerdict { shadow: true, ..verdict("s", "5/1h", 5, Some(900)) };
        let alone = ModelDecision::joined(vec![shadow.clone()]);
        assert_eq!(
            (alone.allowed, alone.used, alone.retry_after_us, alone.reset_after_us),
            (true, 5, 0, 500)
        );
        assert!(!alone.verdicts[0].allowed);
        let beside = ModelDecision::joined(vec![shadow, verdict("a", "10/1s", 1, Some(0))]);
        assert_eq!((beside.allowed, beside.rule.as_str(), beside.reset_after_us), (true, "a", 100));
    }
}
