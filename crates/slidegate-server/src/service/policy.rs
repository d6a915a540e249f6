//! The outage policy: whether a request passes while the store does not answer.

use slidegate::Admission;
use slidegate::rule::OnStoreError;

/// What the caller says about a store that does not answer; it wins over the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Allow,
    Deny,
}

/// Whether a request passes while the store does not answer: by the caller's word, else by the strictest rule.
/// Shadow rules take no part, unless there are no others.
pub(crate) fn passes_without_store(policy: Option<Policy>, admission: &Admission<'_>) -> bool {
    if let Some(policy) = policy {
        return policy == Policy::Allow;
    }
    let mut enforced = admission.asks().iter().filter(|ask| !ask.rule.shadow());
    enforced.all(|ask| ask.rule.on_store_error() == OnStoreError::Allow)
}

#[cfg(test)]
mod tests {
    use slidegate::{Charge, Key, Rule};

    use super::*;

    fn rule(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
        let rule = Rule::builder(name).limit("5/1m".parse().unwrap()).shadow(shadow);
        rule.on_store_error(policy).build().unwrap()
    }

    #[test]
    fn the_caller_s_word_wins_and_then_the_strictest_rule() {
        let allow = rule("allow", OnStoreError::Allow, false);
        let deny = rule("deny", OnStoreError::Deny, false);
        let local = rule("local", OnStoreError::Local("0.25".parse().unwrap()), false);
        let shadow = rule("shadow", OnStoreError::Deny, true);
        let key = Key::new("alice").unwrap();
        for (rules, passes) in [
            (&[&allow][..], true),
            (&[&deny], false),
            (&[&local], false),
            (&[&allow, &deny], false),
            (&[&deny, &allow], false),
            (&[&allow, &shadow], true),
            (&[&shadow], true),
        ] {
            let charges: Vec<_> = rules.iter().map(|&rule| Charge { rule, key, cost: 1 }).collect();
            let admission = Admission::new(&charges).unwrap();
            assert_eq!(passes_without_store(None, &admission), passes, "{rules:?}");
            assert!(passes_without_store(Some(Policy::Allow), &admission));
            assert!(!passes_without_store(Some(Policy::Deny), &admission));
        }
    }
}
