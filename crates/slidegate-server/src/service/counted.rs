//! What a service counts of every answer: per rule for metrics, per key for the list of the busiest.
//!
//! A charge counts under its own rule. Of a request that was allowed all charges are; of one that was denied, those
//! whose rules denied it: a rule that would have admitted it has neither allowed nor denied anything.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use slidegate::store::{CheckError, LimitUsage, StoreError, UpdateError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Decision};

use crate::metrics::{Metrics, Outcome, Transport};
use crate::top::Top;

/// All that is counted.
pub(crate) struct Counted {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) top: Top,
    clock: Arc<dyn Clock>,
    /// Whether calls of the store are timed. One in this process answers at once, and a clock would cost more than
    /// it tells.
    times_store: bool,
    /// Whether the last that was heard of the store is that it does not answer.
    store_is_down: AtomicBool,
}

impl Counted {
    /// Nothing yet. `store` is the kind of store.
    pub(super) fn new(store: &'static str, clock: Arc<dyn Clock>) -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            metrics: Arc::new(Metrics::new(store, Arc::clone(&clock))),
            top: Top::new(workers),
            clock,
            times_store: store != "memory",
            store_is_down: AtomicBool::new(false),
        }
    }

    /// Counts the decision on a request that came in on `transport`, the store's or the outage policy's.
    pub(super) fn decided(&self, transport: Transport, decision: &Decision<'_>) {
        let (allowed, degraded) = (decision.allowed(), decision.degraded());
        for verdict in decision.states() {
            let (outcome, units) = match verdict.allowed() {
                // What an override lets pass counts where the request passes.
                true if verdict.unlimited() => (Outcome::Allowed, 0),
                _ if degraded => (Outcome::ErrorAllowed, 0),
                false if verdict.shadow() => (Outcome::ShadowDenied, verdict.cost()),
                _ if allowed => (Outcome::Allowed, verdict.cost()),
                false => (Outcome::Denied, verdict.cost()),
                true => continue,
            };
            if allowed || !verdict.unlimited() {
                self.charge(transport, verdict.rule(), verdict.key(), outcome, units);
            }
        }
    }

    /// Counts a request that was refused because the store failed.
    pub(super) fn refused(&self, transport: Transport, admission: &Admission<'_>) {
        for ask in admission.asks() {
            self.charge(transport, ask.rule().name(), ask.key().as_str(), Outcome::ErrorDenied, 0);
        }
    }

    /// Counts one charge.
    pub(super) fn charge(&self, transport: Transport, rule: &str, key: &str, outcome: Outcome, units: u64) {
        self.metrics.decisions.count(transport, rule, outcome, units);
        match outcome {
            Outcome::Allowed | Outcome::ErrorAllowed => self.top.decided(rule, key, true),
            Outcome::Denied | Outcome::ErrorDenied => self.top.decided(rule, key, false),
            // It passed, and was not charged.
            Outcome::ShadowDenied => {}
        }
    }

    /// Asks the store, and counts how long that takes and whether it fails.
    pub(super) async fn asked<T: StoreAnswer, E: StoreAnswer>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = self.timed(operation, call).await;
        self.heard(operation, &answer);
        answer
    }

    /// Notes whether the store has answered, or the outage policy in its place.
    pub(super) fn heard<T: StoreAnswer, E: StoreAnswer>(
        &self,
        operation: &'static str,
        answer: &Result<T, E>,
    ) {
        match answer {
            Ok(answer) if answer.store_error().is_none() => self.answered(),
            Ok(answer) => self.failed(operation, answer.store_error()),
            Err(error) => self.failed(operation, error.store_error()),
        }
    }

    /// Waits for a call of the store, and counts how long that takes.
    pub(super) async fn timed<T>(&self, operation: &'static str, call: impl Future<Output = T>) -> T {
        if !self.times_store {
            return call.await;
        }
        let begun_us = self.clock.now_us();
        let answer = call.await;
        self.metrics.operations.took(operation, self.clock.now_us().saturating_sub(begun_us));
        answer
    }

    /// Counts a call that the store did not answer, if that is why it failed.
    #[cold]
    fn failed(&self, operation: &'static str, error: Option<&StoreError>) {
        let Some(error) = error else { return };
        let kind = match error {
            StoreError::Full { .. } => "full",
            StoreError::Unavailable { .. } => "unavailable",
            StoreError::Ambiguous { .. } => "ambiguous",
            StoreError::Refused { .. } => "refused",
            _ => "other",
        };
        self.metrics.operations.failed(operation, kind);
        // Once, however many requests find it so: the metric counts them.
        let is_down = matches!(error, StoreError::Unavailable { .. } | StoreError::Ambiguous { .. });
        if is_down && !self.store_is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(operation, kind, %error, "the store does not answer");
        }
    }

    #[inline]
    fn answered(&self) {
        let was_down = self.store_is_down.load(Ordering::Relaxed);
        if was_down && self.store_is_down.swap(false, Ordering::Relaxed) {
            tracing::info!("the store answers again");
        }
    }
}

/// What a call came to: an answer, in whose place the outage policy may have answered, or an error.
pub(super) trait StoreAnswer {
    /// What the store failed with.
    fn store_error(&self) -> Option<&StoreError> {
        None
    }
}

impl StoreAnswer for Applied {}

impl StoreAnswer for Vec<LimitUsage> {}

impl StoreAnswer for Decision<'_> {
    fn store_error(&self) -> Option<&StoreError> {
        self.store_error()
    }
}

impl StoreAnswer for CheckError {
    fn store_error(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }
}

impl StoreAnswer for UpdateError {
    fn store_error(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use slidegate::time::ManualClock;
    use slidegate::{Limiter, Rule, RuleSet};

    use super::*;
    use crate::top::{TopKey, TopKeys};

    fn counted(text: &str, rule: &str, result: &str) -> u64 {
        let sample =
            format!("slidegate_decisions_total{{rule=\"{rule}\",result=\"{result}\",transport=\"http\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&sample)).map_or(0, |value| value.parse().unwrap())
    }

    #[test]
    fn a_charge_counts_under_the_rule_that_decided_it() {
        let rule = |name: &str, rate: &str, shadow| {
            Rule::builder(name).limit(rate.parse().unwrap()).shadow(shadow).build().unwrap()
        };
        let rules =
            [rule("wide", "10/1m", false), rule("narrow", "4/1m", false), rule("shadow", "2/1m", true)];
        let clock = Arc::new(ManualClock::at_us(1));
        let (limiter, count) = (Limiter::in_memory(), Counted::new("memory", clock));
        for _ in 0..5 {
            let charges = [&rules[0], &rules[1], &rules[2]].map(|rule| rule.charge("alice", 2).unwrap());
            count.decided(Transport::Http, &limiter.check_all(&charges).unwrap());
        }
        let text = count.metrics.expose(&RuleSet::new(), None);
        assert_eq!(["allowed", "denied"].map(|result| counted(&text, "wide", result)), [2, 0]);
        assert_eq!(["allowed", "denied"].map(|result| counted(&text, "narrow", result)), [2, 3]);
        assert_eq!(["allowed", "shadow_denied"].map(|result| counted(&text, "shadow", result)), [1, 4]);
        assert!(text.contains("slidegate_hits_total{rule=\"narrow\"} 4\n"), "{text}");
        let TopKeys { allowed, denied } = count.top.read(10);
        let listed = |keys: &[TopKey]| -> Vec<(String, u64)> {
            keys.iter().map(|key| (key.rule.clone(), key.count)).collect()
        };
        assert_eq!(listed(&allowed), [("narrow".into(), 2), ("wide".into(), 2), ("shadow".into(), 1)]);
        assert_eq!(listed(&denied), [("narrow".into(), 3)]);
    }
}
