//! Resolves the charges of a request into one admission.

use thiserror::Error;

use super::{ChargeRequest, ResolveError, Resolved, RuleSet};
use crate::charge::{Admission, CHARGES_MAX, Charge, ChargeError};
use crate::rate::truncated;

/// Why requests cannot be an admission. Nothing was charged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct AdmissionError {
    /// Index of the offending request, if it is a single one.
    pub at: Option<usize>,
    /// The error.
    pub reason: AdmissionErrorKind,
}

/// The kinds of [`AdmissionError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionErrorKind {
    /// A request does not resolve.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// An override says that the key never passes.
    #[error("key: `{key}` is blocked by an override of rule `{rule}`; remove the override")]
    Blocked {
        /// The first characters of the key.
        key: String,
        /// The rule that has the override.
        rule: String,
    },
    /// The charges cannot be made together.
    #[error(transparent)]
    Charge(#[from] ChargeError),
}

impl RuleSet {
    /// Resolves requests that are admitted together or not at all.
    ///
    /// Keys that an override makes unlimited keep their position in the decision and are charged nowhere; a blocked key
    /// is an error.
    ///
    /// ```
    /// use slidegate::ruleset::{ChargeRequest, Override, Overrides, RuleSet};
    /// use slidegate::{Limiter, Rule};
    ///
    /// let mut overrides = Overrides::default();
    /// overrides.add("ci-*", Override::Unlimited)?;
    /// let mut rules = RuleSet::new();
    /// rules.insert_with(Rule::new("api", "60/1m")?, overrides);
    ///
    /// let limiter = Limiter::in_memory();
    /// let requests = [ChargeRequest::named("api", "alice", 1), ChargeRequest::named("api", "ci-7", 1)];
    /// let decision = limiter.decide(&rules.admission(&requests)?)?;
    /// let remaining: Vec<_> = decision.verdicts().map(|verdict| verdict.remaining()).collect();
    /// assert_eq!(remaining, [Some(59), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn admission<'a>(
        &'a self,
        requests: &'a [ChargeRequest<'a>],
    ) -> Result<Admission<'a>, AdmissionError> {
        if let [request] = requests {
            let first = |reason| AdmissionError { at: Some(0), reason };
            if let Resolved::Limited(charge) = self.resolve_unblocked(request).map_err(first)? {
                return Admission::of_one(charge).map_err(|error| first(error.into()));
            }
        }
        // Checked before any lookup: the list may be as long as a body allows.
        if requests.len() > CHARGES_MAX {
            let reason = ChargeError::Count { count: requests.len() }.into();
            return Err(AdmissionError { at: None, reason });
        }
        let mut charges = Vec::with_capacity(requests.len());
        let mut unlimited = Vec::with_capacity(requests.len());
        for (index, request) in requests.iter().enumerate() {
            let here = |reason| AdmissionError { at: Some(index), reason };
            let resolved = self.resolve_unblocked(request).map_err(here)?;
            unlimited.push(matches!(resolved, Resolved::Unlimited(_)));
            charges.push(resolved.charge());
        }
        Admission::partly_unlimited(&charges, |index| unlimited[index]).map_err(|error| {
            let cause = |index: &usize| is_cause(&error, &charges[*index], unlimited[*index]);
            AdmissionError { at: (0..charges.len()).find(cause), reason: error.into() }
        })
    }

    /// Resolves a request; an error if an override blocks its key.
    fn resolve_unblocked<'a>(
        &'a self,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Resolved<'a>, AdmissionErrorKind> {
        match self.resolve(request)? {
            Resolved::Blocked(charge) => Err(AdmissionErrorKind::Blocked {
                key: truncated(charge.key.as_str()),
                rule: charge.rule.name().to_owned(),
            }),
            resolved => Ok(resolved),
        }
    }
}

/// Whether a single charge caused the error.
fn is_cause(error: &ChargeError, charge: &Charge<'_>, unlimited: bool) -> bool {
    match error {
        ChargeError::Zero { .. } => charge.cost == 0,
        ChargeError::Never { rule, limit, .. } => {
            !unlimited && charge.rule.name() == rule && charge.cost > *limit
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Override, Overrides};
    use super::*;
    use crate::charge::ChargeTreatment;
    use crate::rule::Rule;

    fn rules() -> RuleSet {
        let mut overrides = Overrides::default();
        overrides.add("ci-*", Override::Unlimited).unwrap();
        overrides.add("mallory", Override::Blocked).unwrap();
        let mut rules = RuleSet::new();
        rules.insert_with(Rule::new("api", "5/1m").unwrap(), overrides);
        rules
    }

    #[test]
    fn mistakes_name_the_request() {
        let rules = rules();
        let ask = ChargeRequest::named;
        let error = |requests: &[ChargeRequest<'_>]| rules.admission(requests).map(|_| ()).unwrap_err();
        let good = ask("api", "alice", 1);
        for bad in [
            ask("apy", "alice", 1),
            ask("api", "", 1),
            ask("api", "bob", 0),
            ask("api", "bob", 6),
            ask("api", "mallory", 1),
            ask("api", "ci-7", 0),
        ] {
            let alone = error(std::slice::from_ref(&bad));
            let beside = error(&[good.clone(), bad]);
            assert_eq!((alone.at, beside.at), (Some(0), Some(1)), "{alone}");
            assert_eq!(alone.reason, beside.reason);
        }
        let free = ask("api", "ci-7", 50);
        assert_eq!(error(&[free, ask("api", "bob", 6)]).at, Some(1), "an unlimited charge is not the cause");
        assert_eq!(error(&[]).reason, ChargeError::Count { count: 0 }.into());
        assert_eq!(error(&vec![good; 65]).reason, ChargeError::Count { count: 65 }.into());
    }

    #[test]
    fn unlimited_keys_are_not_sent_to_a_store() {
        let rules = rules();
        let requests = [("ci-7", 50), ("alice", 2)].map(|(key, cost)| ChargeRequest::named("api", key, cost));
        let admission = rules.admission(&requests).unwrap();
        assert_eq!(admission.asks().len(), 1);
        assert!(matches!(admission.treatments(), [ChargeTreatment::Unlimited(_), ChargeTreatment::Ask(0)]));
        assert!(rules.admission(&requests[..1]).unwrap().asks().is_empty());
    }
}
