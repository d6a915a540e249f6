//! Answers of the outage policy, by rule, policy and cause.
//!
//! One lock for all of them: there are none while the store is well, and a degraded answer takes much longer than the
//! lock.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use slidegate::Rule;
use slidegate::rule::OnStoreError;

use super::decisions::{INLINE, OTHER, RULES_MAX};
use super::exposition::Exposition;
use super::store_cause::StoreCause;

/// Names of the policies, in the order of their counters.
const POLICIES: [&str; 3] = ["allow", "deny", "local"];
const CAUSES: usize = StoreCause::ALL.len();

type Counts = [[u64; CAUSES]; POLICIES.len()];

/// The counters of every rule that had such an answer.
#[derive(Debug, Default)]
pub(crate) struct OutageAnswers(Mutex<HashMap<Box<str>, Counts, RandomState>>);

impl OutageAnswers {
    /// Counts the answer to a charge. Inline rules share a label.
    pub(crate) fn count(&self, rule: &str, policy: OnStoreError, cause: StoreCause) {
        let label = if Rule::is_inline_name(rule) { INLINE } else { rule };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let label = if all.len() < RULES_MAX || all.contains_key(label) { label } else { OTHER };
        if !all.contains_key(label) {
            all.insert(label.into(), Counts::default());
        }
        if let Some(counts) = all.get_mut(label) {
            counts[index(policy)][cause as usize] += 1;
        }
    }

    pub(super) fn expose(&self, to: &mut Exposition) {
        let help = "Charges and peeks that the outage policy answered in place of the store, by rule, policy and cause.";
        to.family("slidegate_outage_answers_total", "counter", help);
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = all.iter().map(|(rule, counts)| (rule.clone(), *counts)).collect();
        all.sort_unstable();
        for (rule, counts) in &all {
            for (policy, counts) in POLICIES.iter().zip(counts) {
                for (cause, count) in StoreCause::ALL.iter().zip(counts).filter(|(_, count)| **count > 0) {
                    let labels = [("rule", rule.as_ref()), ("policy", policy), ("cause", cause.name())];
                    to.sample("", &labels, count);
                }
            }
        }
    }
}

fn index(policy: OnStoreError) -> usize {
    match policy {
        OnStoreError::Allow => 0,
        OnStoreError::Deny => 1,
        OnStoreError::Local(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_rule_policy_and_cause() {
        let answers = OutageAnswers::default();
        let local = OnStoreError::Local("0.5".parse().unwrap());
        for (rule, policy, cause) in [
            ("api", OnStoreError::Allow, StoreCause::Unavailable),
            ("api", OnStoreError::Allow, StoreCause::Unavailable),
            ("api", OnStoreError::Deny, StoreCause::Ambiguous),
            ("api", local, StoreCause::ReadOnly),
            ("gcra/60s", OnStoreError::Deny, StoreCause::Unavailable),
            ("gcra/61s", OnStoreError::Deny, StoreCause::Unavailable),
        ] {
            answers.count(rule, policy, cause);
        }
        let mut to = Exposition::default();
        answers.expose(&mut to);
        let samples: Vec<&str> = to.text.lines().filter(|line| !line.starts_with('#')).collect();
        let name = "slidegate_outage_answers_total";
        assert_eq!(
            samples,
            [
                format!(r#"{name}{{rule="api",policy="allow",cause="unavailable"}} 2"#),
                format!(r#"{name}{{rule="api",policy="deny",cause="ambiguous"}} 1"#),
                format!(r#"{name}{{rule="api",policy="local",cause="read-only"}} 1"#),
                format!(r#"{name}{{rule="inline",policy="deny",cause="unavailable"}} 2"#),
            ]
        );
    }

    #[test]
    fn rules_beyond_the_bound_share_a_label() {
        let answers = OutageAnswers::default();
        for number in 0..2 * RULES_MAX {
            answers.count(&format!("rule-{number}"), OnStoreError::Allow, StoreCause::Full);
        }
        let all = answers.0.lock().unwrap();
        assert_eq!(all.len(), RULES_MAX + 1);
        assert_eq!(all[OTHER].as_flattened().iter().sum::<u64>(), 1_000);
    }
}
