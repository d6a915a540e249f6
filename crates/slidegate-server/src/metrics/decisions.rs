//! Decisions and units per rule.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use slidegate::Rule;

use super::exposition::Exposition;
use super::striped::Striped;

/// Most rules that have a label of their own; the rest share [`OTHER`]. A program
/// that writes more rules than this must not flood the system that watches.
pub(super) const RULES_MAX: usize = 1_000;

/// The label of all rules that requests bring along: there is no end to them.
const INLINE: &str = "inline";
/// The label of rules beyond [`RULES_MAX`].
const OTHER: &str = "other";

/// On which wire a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
}

impl Transport {
    /// Each with its label, in their order.
    pub(super) const ALL: [(Self, &'static str); 1] = [(Self::Http, "http")];
}

/// What became of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Allowed,
    Denied,
    /// A shadow rule would have denied it.
    ShadowDenied,
    /// The store failed, and the outage policy allowed it.
    ErrorAllowed,
    /// The store failed, and the outage policy denied it.
    ErrorDenied,
}

impl Outcome {
    /// Each with its label, in their order.
    const ALL: [(Self, &'static str); 5] = [
        (Self::Allowed, "allowed"),
        (Self::Denied, "denied"),
        (Self::ShadowDenied, "shadow_denied"),
        (Self::ErrorAllowed, "error_allowed"),
        (Self::ErrorDenied, "error_denied"),
    ];
}

/// Where the units of a rule are counted, behind its decisions.
const UNITS: usize = Transport::ALL.len() * Outcome::ALL.len();

/// The counters of one rule.
type Counters = Striped<{ UNITS + 1 }>;

fn place(transport: Transport, outcome: Outcome) -> usize {
    transport as usize * Outcome::ALL.len() + outcome as usize
}

/// Counters by label. Rules that are no longer in force keep theirs, as counters must not fall.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    by_rule: ArcSwap<HashMap<Box<str>, Arc<Counters>, RandomState>>,
    inline: Arc<Counters>,
    other: Arc<Counters>,
}

impl Decisions {
    /// Counts a charge under its rule; the units only if they were charged. Inline rules share a label. Neither locks
    /// nor allocates, but for the first of a rule.
    #[inline]
    pub(crate) fn count(&self, transport: Transport, rule: &str, outcome: Outcome, units: u64) {
        let add = |counters: &Counters| {
            counters.add(place(transport, outcome), 1);
            if outcome == Outcome::Allowed {
                counters.add(UNITS, units);
            }
        };
        match self.by_rule.load().get(rule) {
            Some(counters) => add(counters),
            None => add(&self.first(rule)),
        }
    }

    /// Sees to it that a rule has counters, so that what has not happened yet shows as 0.
    pub(super) fn know(&self, rule: &str) {
        if !self.by_rule.load().contains_key(rule) {
            self.first(rule);
        }
    }

    #[cold]
    fn first(&self, rule: &str) -> Arc<Counters> {
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
        // Another thread may have been first.
        let known = self.by_rule.load();
        Arc::clone(known.get(rule).unwrap_or(&self.other))
    }

    /// Whether a rule is shown under its own name.
    pub(super) fn has_label(&self, rule: &str) -> bool {
        self.by_rule.load().contains_key(rule)
    }

    pub(super) fn expose(&self, to: &mut Exposition) {
        let all = self.read();
        to.family("slidegate_decisions_total", "counter", "Charges that were decided, by rule and result.");
        for (rule, counters) in &all {
            for (transport, on) in Transport::ALL {
                for (outcome, result) in Outcome::ALL {
                    let labels = [("rule", rule.as_ref()), ("result", result), ("transport", on)];
                    to.sample("", &labels, counters[place(transport, outcome)]);
                }
            }
        }
        to.family("slidegate_hits_total", "counter", "Units that were charged, by rule.");
        for (rule, counters) in &all {
            to.sample("", &[("rule", rule)], counters[UNITS]);
        }
    }

    /// In the order of the labels, each once; those that stand for many only where they counted something.
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
            // A rule may have the very name; its counts then include the others'.
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
    fn units_are_counted_where_they_were_charged() {
        let decisions = Decisions::default();
        for (outcome, _) in Outcome::ALL {
            decisions.count(Transport::Http, "api", outcome, 7);
        }
        decisions.count(Transport::Http, "api", Outcome::Allowed, 1);
        decisions.know("idle");
        assert_eq!(counted(&decisions, "api"), Some([2, 1, 1, 1, 1, 8]));
        assert_eq!(counted(&decisions, "idle"), Some([0; 6]));
        assert_eq!(counted(&decisions, INLINE), None);
    }

    #[test]
    fn rules_of_requests_share_a_label_and_so_do_too_many() {
        let decisions = Decisions::default();
        for window in 0..2 * RULES_MAX {
            decisions.count(Transport::Http, &format!("gcra/{window}s"), Outcome::Denied, 1);
        }
        for number in 0..2 * RULES_MAX {
            decisions.count(Transport::Http, &format!("rule-{number}"), Outcome::Denied, 1);
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
        decisions.count(Transport::Http, INLINE, Outcome::Allowed, 2);
        decisions.count(Transport::Http, "gcra/1s", Outcome::Allowed, 3);
        assert_eq!(decisions.read(), [(INLINE.into(), [2, 0, 0, 0, 0, 5])]);
    }

    #[test]
    fn the_first_of_many_at_once_loses_no_count() {
        let decisions = Decisions::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..200 {
                        decisions.count(Transport::Http, &format!("rule-{number}"), Outcome::Allowed, 1);
                    }
                });
            }
        });
        assert!(decisions.read().iter().all(|(_, counters)| *counters == [4, 0, 0, 0, 0, 4]));
    }
}
