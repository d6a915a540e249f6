//! The outage policy: how a check is answered when the store fails.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::rule::OnStoreError;
use crate::store::CheckError;

/// Applies the outage policy to store failures, and counts them.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    failures: AtomicU64,
    degraded: AtomicU64,
}

impl Guard {
    /// The store's decision. If the store failed, the call's policy answers or, without one, that of the strictest rule
    /// of the admission. `Deny` returns the store's error.
    #[inline]
    pub(crate) fn answer<'a>(
        &self,
        policy: Option<OnStoreError>,
        admission: &Admission<'a>,
        decided: Result<Decision<'a>, StoreError>,
    ) -> Result<Decision<'a>, CheckError> {
        match decided {
            Ok(decision) => Ok(decision),
            Err(error) => self.without_store(policy, admission, error),
        }
    }

    /// The same, replacing a failure in place, for callers that must not copy a decision.
    #[cold]
    pub(crate) fn replace_failure<'a>(
        &self,
        policy: Option<OnStoreError>,
        admission: &Admission<'a>,
        decided: &mut Result<Decision<'a>, CheckError>,
    ) {
        if let Err(CheckError::Store(error)) = decided {
            let error = error.clone();
            *decided = self.without_store(policy, admission, error);
        }
    }

    #[cold]
    fn without_store<'a>(
        &self,
        policy: Option<OnStoreError>,
        admission: &Admission<'a>,
        error: StoreError,
    ) -> Result<Decision<'a>, CheckError> {
        self.failures.fetch_add(1, Ordering::Relaxed);
        // `Local` is not implemented yet: it denies.
        if policy.unwrap_or_else(|| strictest(admission)) != OnStoreError::Allow {
            return Err(error.into());
        }
        self.degraded.fetch_add(1, Ordering::Relaxed);
        Ok(Decision::degraded_admission(admission, error))
    }

    /// Calls that the store did not answer, and how many of them the policy admitted.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.failures.load(Ordering::Relaxed), self.degraded.load(Ordering::Relaxed))
    }
}

/// The policy of the strictest rule. Shadow rules take no part: if there are no others it is `Allow`, because a shadow
/// rule never denies.
fn strictest(admission: &Admission<'_>) -> OnStoreError {
    let enforced = admission.asks().iter().filter(|ask| !ask.rule.shadow());
    let strictness = |policy: &OnStoreError| match policy {
        OnStoreError::Allow => 0,
        OnStoreError::Local(_) => 1,
        OnStoreError::Deny => 2,
    };
    enforced.map(|ask| ask.rule.on_store_error()).max_by_key(strictness).unwrap_or(OnStoreError::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::Charge;
    use crate::rule::Rule;

    fn rule(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
        let rule = Rule::builder(name).limit("5/1m".parse().unwrap()).shadow(shadow);
        rule.on_store_error(policy).build().unwrap()
    }

    #[test]
    fn the_policy_of_the_call_wins_and_then_the_strictest_rule() {
        let allow = rule("allow", OnStoreError::Allow, false);
        let deny = rule("deny", OnStoreError::Deny, false);
        let local = rule("local", OnStoreError::Local("0.25".parse().unwrap()), false);
        let shadow = rule("shadow", OnStoreError::Deny, true);
        let guard = Guard::default();
        let failed = || Err(StoreError::Unavailable { why: "connection refused".into() });
        for (rules, passes) in [
            (&[&allow][..], true),
            (&[&deny], false),
            (&[&local], false),
            (&[&allow, &deny], false),
            (&[&deny, &allow], false),
            (&[&allow, &shadow], true),
            (&[&shadow], true),
        ] {
            let charges: Vec<Charge<'_>> =
                rules.iter().map(|rule| rule.charge("alice", 1).unwrap()).collect();
            let admission = Admission::new(&charges).unwrap();
            assert_eq!(guard.answer(None, &admission, failed()).is_ok(), passes, "{rules:?}");
            let degraded = guard.answer(Some(OnStoreError::Allow), &admission, failed()).unwrap();
            assert!(degraded.allowed() && degraded.degraded() && degraded.receipt().is_none());
            assert_eq!((degraded.used(), degraded.remaining(), degraded.reset_after()), (None, None, None));
            assert_eq!(degraded.verdicts().count(), rules.len());
            assert!(guard.answer(Some(OnStoreError::Deny), &admission, failed()).is_err());
        }
        assert_eq!(guard.counts(), (21, 10));
    }
}
