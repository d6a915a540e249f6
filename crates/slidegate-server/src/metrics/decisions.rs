//! Decisions and units per rule.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use slidegate::Rule;

use super::exposition::Exposition;
use super::striped::Striped;

/// Most rules with a label of their own; the rest share [`OTHER`], so that labels are bounded.
pub(super) const RULES_MAX: usize = 1_000;

/// The label of all inline rules, which are unbounded.
pub(super) const INLINE: &str = "inline";
/// The label of rules beyond [`RULES_MAX`].
pub(super) const OTHER: &str = "other";

/// The wire that a request came in on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
}

impl Transport {
    /// Each with its label, in their order.
    pub(super) const ALL: [(Self, &'static str); 1] = [(Self::Http, "http")];
}

/// How a charge was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChargeOutcome {
    Allowed,
    Denied,
    /// A shadow rule would have denied it.
    ShadowDenied,
    /// The store failed, and the outage policy allowed it.
    ErrorAllowed,
    /// The store failed, and the outage policy denied it.
    ErrorDenied,
}

impl ChargeOutcome {
    /// Each with its label, in their order.
    const ALL: [(Self, &'static str); 5] = [
        (Self::Allowed, "allowed"),
        (Self::Denied, "denied"),
        (Self::ShadowDenied, "shadow_denied"),
        (Self::ErrorAllowed, "error_allowed"),
        (Self::ErrorDenied, "error_denied"),
    ];
}

/// Index of the counter of units, after those of decisions.
const UNITS: usize = Transport::ALL.len() * ChargeOutcome::ALL.len();

/// The counters of one rule.
type Counters = Striped<{ UNITS + 1 }>;

fn counter_index(transport: Transport, outcome: ChargeOutcome) -> usize {
    transport as usize * ChargeOutcome::ALL.len() + outcome as usize
}

/// Counters by label. Removed rules keep their counters, because a counter must never decrease.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    by_rule: ArcSwap<HashMap<Box<str>, Arc<Counters>, RandomState>>,
    inline: Arc<Counters>,
    other: Arc<Counters>,
}

impl Decisions {
    /// Counts a charge under its rule, and its units if they were charged. Inline rules share a label. Neither locks
    /// nor allocates, except for the first charge of a rule.
    #[inline]
    pub(crate) fn count(&self, transport: Transport, rule: &str, outcome: ChargeOutcome, units: u64) {
        let add = |counters: &Counters| {
            counters.add(counter_index(transport, outcome), 1);
            if outcome == ChargeOutcome::Allowed {
                counters.add(UNITS, units);
            }
        };
        match self.by_rule.load().get(rule) {
            Some(counters) => add(counters),
            None => add(&self.register_counters(rule)),
        }
    }

    /// Creates the counters of a rule, so that they read 0 before its first decision.
    pub(super) fn register(&self, rule: &str) {
        if !self.by_rule.load().contains_key(rule) {
            self.register_counters(rule);
        }
    }

    #[cold]
    fn register_counters(&self, rule: &str) -> Arc<Counters> {
        if Rule::is_inline_name(rule) {
            return Arc::clone(&self.inline);
        }
        let fresh = Arc::new(Counters::default());
        self.by_rule.rcu(|known| {
            if known.len() >= RULES_MAX || known.contains_key(rule) {
                return Arc::clone(known);
            }
            let mut more = HashMap::clone(known);
            more.insert(rule.into(), Arc::clone(&fresh));
            Arc::new(more)
        });
        // Another thread may have inserted it first.
        let known = self.by_rule.load();
        Arc::clone(known.get(rule).unwrap_or(&self.other))
    }

    /// Whether a rule has a label of its own.
    pub(super) fn has_label(&self, rule: &str) -> bool {
        self.by_rule.load().contains_key(rule)
    }

    pub(super) fn expose(&self, to: &mut Exposition) {
        let all = self.read();
        to.family("slidegate_decisions_total", "counter", "Charges that were decided, by rule and result.");
        for (rule, counters) in &all {
            for (transport, on) in Transport::ALL {
                for (outcome, result) in ChargeOutcome::ALL {
                    let labels = [("rule", rule.as_ref()), ("result", result), ("transport", on)];
                    to.sample("", &labels, counters[counter_index(transport, outcome)]);
                }
            }
        }
        to.family("slidegate_hits_total", "counter", "Units that were charged, by rule.");
        for (rule, counters) in &all {
            to.sample("", &[("rule", rule)], counters[UNITS]);
        }
    }

    /// Every label once, sorted; the shared labels last, and only if they counted something.
    fn read(&self) -> Vec<(Box<str>, [u64; UNITS + 1])> {
        let known = self.by_rule.load();
        let mut all: Vec<(Box<str>, [u64; UNITS + 1])> =
            known.iter().map(|(rule, counters)| (rule.clone(), counters.read())).collect();
        all.sort_unstable();
        for (label, shared) in [(INLINE, &self.inline), (OTHER, &self.other)] {
            let counters = shared.read();
            if counters.iter().all(|&counter| counter == 0) {
                continue;
            }
            // A rule may have the name of a shared label; its counts then include the shared ones.
            match all.iter_mut().find(|(rule, _)| rule.as_ref() == label) {
                Some((_, own)) => own.iter_mut().zip(counters).for_each(|(own, more)| *own += more),
                None => all.push((label.into(), counters)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(decisions: &Decisions, rule: &str) -> Option<[u64; UNITS + 1]> {
        decisions.read().into_iter().find(|(label, _)| label.as_ref() == rule).map(|(_, counters)| counters)
    }

    #[test]
    fn units_count_only_if_charged() {
        let decisions = Decisions::default();
        for (outcome, _) in ChargeOutcome::ALL {
            decisions.count(Transport::Http, "api", outcome, 7);
        }
        decisions.count(Transport::Http, "api", ChargeOutcome::Allowed, 1);
        decisions.register("idle");
        assert_eq!(counted(&decisions, "api"), Some([2, 1, 1, 1, 1, 8]));
        assert_eq!(counted(&decisions, "idle"), Some([0; 6]));
        assert_eq!(counted(&decisions, INLINE), None);
    }

    #[test]
    fn inline_rules_share_a_label_and_so_do_rules_beyond_the_bound() {
        let decisions = Decisions::default();
        for window in 0..2 * RULES_MAX {
            decisions.count(Transport::Http, &format!("gcra/{window}s"), ChargeOutcome::Denied, 1);
        }
        for number in 0..2 * RULES_MAX {
            decisions.count(Transport::Http, &format!("rule-{number}"), ChargeOutcome::Denied, 1);
        }
        assert_eq!(decisions.read().len(), RULES_MAX + 2);
        assert_eq!(counted(&decisions, INLINE), Some([0, 2_000, 0, 0, 0, 0]));
        assert_eq!(counted(&decisions, OTHER), Some([0, 1_000, 0, 0, 0, 0]));
        assert_eq!(counted(&decisions, "rule-999"), Some([0, 1, 0, 0, 0, 0]));
        assert!(decisions.has_label("rule-999") && !decisions.has_label("rule-1000"));
    }

    #[test]
    fn a_rule_with_the_name_of_a_shared_label_appears_once() {
        let decisions = Decisions::default();
        decisions.count(Transport::Http, INLINE, ChargeOutcome::Allowed, 2);
        decisions.count(Transport::Http, "gcra/1s", ChargeOutcome::Allowed, 3);
        assert_eq!(decisions.read(), [(INLINE.into(), [2, 0, 0, 0, 0, 5])]);
    }

    #[test]
    fn concurrent_first_charges_of_a_rule_lose_no_count() {
        let decisions = Decisions::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..200 {
                        decisions.count(
                            Transport::Http,
                            &format!("rule-{number}"),
                            ChargeOutcome::Allowed,
                            1,
                        );
                    }
                });
            }
        });
        assert!(decisions.read().iter().all(|(_, counters)| *counters == [4, 0, 0, 0, 0, 4]));
    }
}
