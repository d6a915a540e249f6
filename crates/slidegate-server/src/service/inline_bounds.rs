//! Bounds on inline rules, so that requests cannot fill the store with rules that they invent.
//!
//! Each window and algorithm, with its parameters, is another state of a key; the limit is not, so it does not count. A
//! rule is in use until two windows after its last check: all its states have expired by then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::time::Clock;
use slidegate::{Algorithm, ChargeRequest};

use super::error::{ServiceError, ServiceErrorKind};
use super::settings::Bounds;

/// The inline rules in use, and their bounds.
pub(super) struct InlineBounds {
    rules_max: usize,
    window_max: Duration,
    clock: Arc<dyn Clock>,
    in_use: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    /// By window in microseconds and algorithm: the end of its use.
    ends_us: HashMap<(u64, Algorithm), u64>,
    /// None of them ends before.
    first_end_us: u64,
}

impl InlineBounds {
    pub(super) fn new(bounds: &Bounds, clock: Arc<dyn Clock>) -> Self {
        Self {
            rules_max: bounds.inline_rules,
            window_max: bounds.inline_window,
            clock,
            in_use: Mutex::default(),
        }
    }

    /// Refuses requests with an inline rule whose window is too long.
    pub(super) fn check_windows(&self, requests: &[ChargeRequest<'_>]) -> Result<(), ServiceError> {
        each_inline(requests, |inline| {
            if inline.rate().window() <= self.window_max {
                return Ok(());
            }
            Err(format!(
                "rule: the window of `{}` is longer than {:?}, the bound for inline rules; shorten it, raise \
                 bounds.inline_window, or add a rule to the configuration",
                inline.rate(),
                self.window_max
            ))
        })
    }

    /// Refuses requests that would bring too many different inline rules into use; registers theirs otherwise.
    pub(super) fn register(&self, requests: &[ChargeRequest<'_>]) -> Result<(), ServiceError> {
        each_inline(requests, |inline| {
            let now_us = self.clock.now_us();
            let window_us = inline.rate().window_us();
            let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
            if in_use.register((window_us, inline.algorithm()), now_us, self.rules_max) {
                return Ok(());
            }
            Err(format!(
                "rule: {} other inline rules are in use, the maximum; use one of their windows and algorithms, raise \
                 bounds.inline_rules, or add a rule to the configuration",
                self.rules_max
            ))
        })
    }
}

impl InUse {
    /// Notes the use of a rule; false if there would be more than `rules_max`.
    fn register(&mut self, rule: (u64, Algorithm), now_us: u64, rules_max: usize) -> bool {
        let end_us = now_us.saturating_add(2 * rule.0);
        if let Some(known) = self.ends_us.get_mut(&rule) {
            *known = end_us.max(*known);
            return true;
        }
        // They are looked through only if one may have ended, so that a flood of new rules does not do it each time.
        if self.ends_us.len() >= rules_max && now_us >= self.first_end_us {
            self.ends_us.retain(|_, end_us| *end_us > now_us);
            self.first_end_us = self.ends_us.values().copied().min().unwrap_or(u64::MAX);
        }
        if self.ends_us.len() >= rules_max {
            return false;
        }
        self.first_end_us = if self.ends_us.is_empty() { end_us } else { self.first_end_us.min(end_us) };
        self.ends_us.insert(rule, end_us);
        true
    }
}

/// Calls `check` on every inline rule; its error names the charge where there are several.
#[inline]
fn each_inline(
    requests: &[ChargeRequest<'_>],
    check: impl Fn(&InlineRule) -> Result<(), String>,
) -> Result<(), ServiceError> {
    for (index, request) in requests.iter().enumerate() {
        let RuleRef::Inline(inline) = &request.rule else { continue };
        check(inline).map_err(|text| ServiceError {
            at: (requests.len() > 1).then_some(index),
            ..ServiceError::new(ServiceErrorKind::InlineBound, text)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use slidegate::time::ManualClock;

    use super::*;

    fn request(rate: &str, algorithm: Algorithm) -> [ChargeRequest<'static>; 1] {
        [ChargeRequest::inline(rate.parse().unwrap(), algorithm, "alice", 1)]
    }

    #[test]
    fn rules_in_use_are_bounded_until_they_end() {
        let clock = Arc::new(ManualClock::at_us(1_000_000));
        let bounds = Bounds { inline_rules: 3, ..Bounds::default() };
        let inline = InlineBounds::new(&bounds, Arc::clone(&clock) as _);
        let register = |rate: &str, algorithm| inline.register(&request(rate, algorithm));
        for rate in ["5/10s", "6/10s", "5/20s"] {
            register(rate, Algorithm::Gcra).unwrap();
        }
        register("5/10s", Algorithm::FixedWindow).unwrap();
        let full = register("5/30s", Algorithm::Gcra).unwrap_err();
        assert_eq!(full.kind, ServiceErrorKind::InlineBound);
        assert!(full.text.starts_with("rule: 3 other inline rules are in use"), "{}", full.text);
        assert!(full.text.contains("; use one of"), "{}", full.text);
        clock.advance(Duration::from_secs(19));
        register("5/10s", Algorithm::Gcra).unwrap();
        assert!(register("5/30s", Algorithm::Gcra).is_err());
        clock.advance(Duration::from_secs(1));
        register("5/30s", Algorithm::Gcra).expect("fixed-window/10s has ended");
        assert!(register("5/10s", Algorithm::FixedWindow).is_err());
        register("5/10s", Algorithm::Gcra).expect("it was used since");
    }

    #[test]
    fn the_window_is_bounded() {
        let clock = Arc::new(ManualClock::at_us(1));
        let inline = InlineBounds::new(&Bounds::default(), clock);
        assert_eq!(inline.check_windows(&request("9500/31d", Algorithm::SlidingLog)), Ok(()));
        let [first] = request("5/1m", Algorithm::SlidingLog);
        let [long] = request("5/32d", Algorithm::SlidingLog);
        let error = inline.check_windows(&[first, long]).unwrap_err();
        assert_eq!((error.kind, error.at), (ServiceErrorKind::InlineBound, Some(1)));
        assert!(error.text.contains("raise bounds.inline_window"), "{}", error.text);
    }
}
