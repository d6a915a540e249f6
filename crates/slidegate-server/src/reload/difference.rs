//! The difference between two sets of rules, and the rules whose states must be migrated.

use std::collections::BTreeMap;

use slidegate::rule::{LIMITS_MAX, Limit};
use slidegate::ruleset::{Override, Overrides};
use slidegate::{Rate, Rule, RuleSet};

/// The difference between two sets of rules, by name.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Every rule whose limits differ, its own or those of an override, with the windows that its states must keep.
    pub(super) rules_to_migrate: Vec<Rule>,
}

impl Difference {
    pub(super) fn between(before: &RuleSet, after: &RuleSet) -> Self {
        let mut found = Self::default();
        let old: BTreeMap<_, _> =
            before.with_overrides().map(|(rule, overrides)| (rule.name(), (rule, overrides))).collect();
        for (rule, overrides) in after.with_overrides() {
            let name = rule.name();
            match old.get(name) {
                None => found.added.push(name.to_owned()),
                Some((old, old_overrides)) => {
                    if *old != rule || *old_overrides != overrides {
                        found.changed.push(name.to_owned());
                    }
                    let is_other = old.limits() != rule.limits() || old.shards() != rule.shards();
                    if is_other || *old_overrides != overrides {
                        found.rules_to_migrate.push(with_override_windows(rule, overrides));
                    }
                }
            }
        }
        let gone = old.keys().filter(|name| after.get(name).is_err());
        found.removed.extend(gone.map(ToString::to_string));
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The rule with the windows of its overrides added to its own.
///
/// A store does not know the keys of its states, nor which override applies to which key. A migration to this rule
/// keeps every window that any key of the rule can need, and each state lasts as long as the longest window; the next
/// charge of a key drops the windows that the key does not need. Beyond [`LIMITS_MAX`], the shortest windows are left
/// out, because their states expire soonest.
pub(crate) fn with_override_windows(rule: &Rule, overrides: &Overrides) -> Rule {
    let rates = |rule: &Rule| rule.limits().iter().map(Limit::rate).collect::<Vec<Rate>>();
    let own = rates(rule);
    let limited = overrides.iter().filter_map(|(_, key_override)| match key_override {
        Override::Limited(rule) => Some(rule),
        Override::Unlimited | Override::Blocked => None,
    });
    let mut others: BTreeMap<u64, Rate> = BTreeMap::new();
    for rate in limited.flat_map(rates) {
        others.entry(rate.window_us()).or_insert(rate);
    }
    for rate in &own {
        others.remove(&rate.window_us());
    }
    let longest_first = others.into_values().rev();
    let all: Vec<Rate> = own.into_iter().chain(longest_first).take(LIMITS_MAX).collect();
    rule.with_rates(&all).unwrap_or_else(|_| rule.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rates: &[&str]) -> Rule {
        let rates = rates.iter().map(|rate| rate.parse().unwrap());
        rates.fold(Rule::builder("api"), slidegate::RuleBuilder::limit).build().unwrap()
    }

    fn rates(rule: &Rule) -> Vec<String> {
        rule.limits().iter().map(|limit| limit.rate().to_string()).collect()
    }

    fn overrides(rule: &Rule, given: &[&str]) -> Overrides {
        let mut overrides = Overrides::default();
        for (number, rate) in given.iter().enumerate() {
            let own = rule.with_rates(&[rate.parse().unwrap()]).unwrap();
            overrides.add(&format!("key-{number}"), Override::Limited(own)).unwrap();
        }
        overrides
    }

    #[test]
    fn every_window_appears_once() {
        let own = rule(&["5/1m", "60/1h"]);
        let all = with_override_windows(&own, &overrides(&own, &["7/1s", "600/1h", "9/1d", "8/1d"]));
        assert_eq!(rates(&all), ["5/1m", "60/1h", "9/1d", "7/1s"]);
        let many: Vec<String> = (1..=20).map(|seconds| format!("5/{seconds}s")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let all = with_override_windows(&own, &overrides(&own, &many));
        assert_eq!((all.limits().len(), rates(&all)[2].as_str()), (LIMITS_MAX, "5/20s"), "the longest stay");
    }

    #[test]
    fn a_changed_override_migrates_states() {
        let own = rule(&["5/1m"]);
        let rules = |given: &[&str]| {
            let mut rules = RuleSet::new();
            rules.insert_with(own.clone(), overrides(&own, given));
            rules
        };
        let migrated = |before: &[&str], after: &[&str]| {
            let difference = Difference::between(&rules(before), &rules(after));
            difference.rules_to_migrate.iter().map(rates).collect::<Vec<_>>()
        };
        assert_eq!(migrated(&["7/1h"], &["7/1h"]), Vec::<Vec<String>>::new());
        assert_eq!(migrated(&["7/1h"], &[]), [["5/1m"]]);
        assert_eq!(migrated(&[], &["7/1h"]), [["5/1m", "7/1h"]]);
    }
}
