//! Counts every answer: per rule for the metrics, per key for the list of the busiest keys.
//!
//! A charge counts under its own rule. An allowed request counts all its charges as allowed; a denied request counts
//! only the charges whose rules denied it, because a rule that would have admitted it decided nothing.

use std::fmt::Display;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use slidegate::guard::GuardEvent;
use slidegate::store::{CheckError, LimitUsage, UpdateError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Decision, ReceiptError};

use super::store_health::StoreHealth;
use super::verbs::PROBE;
use crate::metrics::{ChargeOutcome, Metrics, StoreCause, Transport};
use crate::top::Top;

/// The counters of a service.
pub(crate) struct ServiceCounters {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) top: Top,
    pub(crate) store_health: Arc<StoreHealth>,
    clock: Arc<dyn Clock>,
    /// Whether calls to the store are timed. The memory store answers faster than a clock can be read twice.
    times_store: bool,
}

impl ServiceCounters {
    /// All counters at zero. `store` is the kind of store.
    pub(super) fn new(store: &'static str, clock: Arc<dyn Clock>) -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            metrics: Arc::new(Metrics::new(store, Arc::clone(&clock))),
            top: Top::new(workers),
            store_health: Arc::new(StoreHealth::new(Arc::clone(&clock))),
            clock,
            times_store: store != "memory",
        }
    }

    /// Counts and logs what the guard of a limiter does.
    pub(super) fn observer(&self) -> impl Fn(GuardEvent<'_>) + Send + Sync + 'static {
        let (metrics, health) = (Arc::clone(&self.metrics), Arc::clone(&self.store_health));
        move |event| match event {
            GuardEvent::Opened { .. } => health.breaker_changed(true),
            GuardEvent::Closed => health.breaker_changed(false),
            GuardEvent::Degraded { admission, policy, error, .. } => {
                let cause = StoreCause::of(error);
                // Probes are nobody's requests.
                for ask in admission.asks().iter().filter(|ask| ask.rule().name() != PROBE) {
                    metrics.outage_answers.count(ask.rule().name(), policy, cause);
                }
            }
            _ => {}
        }
    }

    /// Counts a decision, made by the store or by the outage policy, on a request that came in on `transport`.
    pub(super) fn count_decision(&self, transport: Transport, decision: &Decision<'_>) {
        let (allowed, degraded) = (decision.allowed(), decision.degraded());
        for verdict in decision.state_verdicts() {
            let (outcome, units) = match verdict.allowed() {
                // An unlimited key counts only if the whole request passes.
                true if verdict.unlimited() => (ChargeOutcome::Allowed, 0),
                // By limits within this process.
                false if degraded => (ChargeOutcome::ErrorDenied, 0),
                true if degraded && allowed => (ChargeOutcome::ErrorAllowed, 0),
                false if verdict.shadow() => (ChargeOutcome::ShadowDenied, verdict.cost()),
                _ if allowed => (ChargeOutcome::Allowed, verdict.cost()),
                false => (ChargeOutcome::Denied, verdict.cost()),
                true => continue,
            };
            if allowed || !verdict.unlimited() {
                self.count_charge(transport, verdict.rule(), verdict.key(), outcome, units);
            }
        }
    }

    /// Counts a request that was refused because the store failed.
    pub(super) fn count_refusal(&self, transport: Transport, admission: &Admission<'_>) {
        for ask in admission.asks() {
            self.count_charge(
                transport,
                ask.rule().name(),
                ask.key().as_str(),
                ChargeOutcome::ErrorDenied,
                0,
            );
        }
    }

    /// Counts one charge.
    pub(super) fn count_charge(
        &self,
        transport: Transport,
        rule: &str,
        key: &str,
        outcome: ChargeOutcome,
        units: u64,
    ) {
        self.metrics.decisions.count(transport, rule, outcome, units);
        match outcome {
            ChargeOutcome::Allowed | ChargeOutcome::ErrorAllowed => self.top.decided(rule, key, true),
            ChargeOutcome::Denied | ChargeOutcome::ErrorDenied => self.top.decided(rule, key, false),
            // The request passed without this charge.
            ChargeOutcome::ShadowDenied => {}
        }
    }

    /// Calls the store, and counts the duration and a failure.
    pub(super) async fn call_store<T: StoreAnswer, E: HasStoreFailure>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = self.timed(operation, call).await;
        self.record_store_health(operation, &answer);
        answer
    }

    /// Records whether the store answered, or the outage policy in its place.
    pub(super) fn record_store_health<T: StoreAnswer, E: HasStoreFailure>(
        &self,
        operation: &'static str,
        answer: &Result<T, E>,
    ) {
        let failure = match answer {
            Ok(answer) => answer.failure(),
            Err(error) => error.failure(),
        };
        match (failure, answer) {
            (Some((cause, error)), _) => {
                self.metrics.operations.failed(operation, cause);
                self.store_health.failed(operation, cause, error);
            }
            (None, Ok(answer)) if self.store_health.is_failing() => {
                self.store_health.answered(answer.wrote());
            }
            // An error of the caller says nothing about the store.
            (None, _) => {}
        }
    }

    /// Waits for a call to the store, and counts its duration.
    pub(super) async fn timed<T>(&self, operation: &'static str, call: impl Future<Output = T>) -> T {
        if !self.times_store {
            return call.await;
        }
        let begun_us = self.clock.now_us();
        let answer = call.await;
        self.metrics.operations.observe_call(operation, self.clock.now_us().saturating_sub(begun_us));
        answer
    }
}

/// Why the store failed, and its error.
type StoreFailure<'a> = (StoreCause, &'a dyn Display);

/// An answer or an error of a call, which knows whether the store failed.
pub(super) trait HasStoreFailure {
    /// The failure of the store, if it failed.
    fn failure(&self) -> Option<StoreFailure<'_>> {
        None
    }
}

/// An answer of a call.
pub(super) trait StoreAnswer: HasStoreFailure {
    /// Whether the call changed anything in the store.
    fn wrote(&self) -> bool;
}

impl HasStoreFailure for Applied {}

impl StoreAnswer for Applied {
    fn wrote(&self) -> bool {
        self.applied
    }
}

impl HasStoreFailure for Vec<LimitUsage> {}

impl StoreAnswer for Vec<LimitUsage> {
    fn wrote(&self) -> bool {
        false
    }
}

impl HasStoreFailure for Decision<'_> {
    #[inline]
    fn failure(&self) -> Option<StoreFailure<'_>> {
        self.store_error().map(|error| (StoreCause::of(error), error as &dyn Display))
    }
}

impl StoreAnswer for Decision<'_> {
    fn wrote(&self) -> bool {
        self.is_charged()
    }
}

impl HasStoreFailure for CheckError {
    fn failure(&self) -> Option<StoreFailure<'_>> {
        if let Self::Store(error) = self { Some((StoreCause::of(error), error)) } else { None }
    }
}

impl HasStoreFailure for UpdateError {
    fn failure(&self) -> Option<StoreFailure<'_>> {
        match self {
            Self::Store(error) => Some((StoreCause::of(error), error)),
            Self::Receipt(error @ (ReceiptError::RecordsFull { .. } | ReceiptError::ShareFull { .. })) => {
                Some((StoreCause::ReceiptsFull, error))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use slidegate::time::ManualClock;
    use slidegate::{Limiter, Rule, RuleSet};

    use super::*;
    use crate::metrics::StoreFigures;
    use crate::top::{TopKey, TopKeys};

    fn decisions(text: &str, rule: &str, result: &str) -> u64 {
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
        let (limiter, counters) = (Limiter::in_memory(), ServiceCounters::new("memory", clock));
        for _ in 0..5 {
            let charges = [&rules[0], &rules[1], &rules[2]].map(|rule| rule.charge("alice", 2).unwrap());
            counters.count_decision(Transport::Http, &limiter.check_all(&charges).unwrap());
        }
        let text = counters.metrics.expose(&RuleSet::new(), &StoreFigures::default());
        assert_eq!(["allowed", "denied"].map(|result| decisions(&text, "wide", result)), [2, 0]);
        assert_eq!(["allowed", "denied"].map(|result| decisions(&text, "narrow", result)), [2, 3]);
        assert_eq!(["allowed", "shadow_denied"].map(|result| decisions(&text, "shadow", result)), [1, 4]);
        assert!(text.contains("slidegate_hits_total{rule=\"narrow\"} 4\n"), "{text}");
        let TopKeys { allowed, denied } = counters.top.read(10);
        let listed = |keys: &[TopKey]| -> Vec<(String, u64)> {
            keys.iter().map(|key| (key.rule.clone(), key.count)).collect()
        };
        assert_eq!(listed(&allowed), [("narrow".into(), 2), ("wide".into(), 2), ("shadow".into(), 1)]);
        assert_eq!(listed(&denied), [("narrow".into(), 3)]);
    }
}
