//! The charges of a request, resolved: those that are made become one admission.

use slidegate::charge::CHARGES_MAX;
use slidegate::{Admission, Charge, ChargeError, ChargeRequest, ResolveError, Resolved, Rule, RuleSet};
use thiserror::Error;

use crate::text::shown;

/// What becomes of the charges of a request.
#[derive(Debug)]
pub(crate) enum Resolution<'a> {
    /// Some are made, as one admission.
    Charged {
        admission: Admission<'a>,
        /// For every charge whether an override lets it pass for free; empty if none is.
        is_free: Vec<bool>,
    },
    /// Overrides let all of them pass for free; the rule is that of the first.
    Free { rule: &'a Rule },
}

/// Why charges cannot be asked for together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolutionError {
    /// Which charge it is about, if it is about one.
    pub(crate) at: Option<usize>,
    pub(crate) reason: Reason,
}

/// What is wrong with one or several charges.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Reason {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("key: `{key}` is blocked by an override of rule `{rule}`; remove the override")]
    Blocked { key: String, rule: String },
    #[error(transparent)]
    Charge(#[from] ChargeError),
}

impl<'a> Resolution<'a> {
    pub(crate) fn new(
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
    ) -> Result<Self, ResolutionError> {
        if let [request] = requests {
            let first = |reason: Reason| reason.at(Some(0));
            return match charge(rules, request).map_err(first)? {
                Ok(charge) => {
                    let admission = Admission::new(&[charge]).map_err(|error| first(error.into()))?;
                    Ok(Self::Charged { admission, is_free: Vec::new() })
                }
                Err(rule) => Ok(Self::Free { rule }),
            };
        }
        Self::of_several(rules, requests)
    }

    /// What is asked of the store, if anything is.
    pub(crate) fn admission(&self) -> Option<&Admission<'a>> {
        match self {
            Self::Charged { admission, .. } => Some(admission),
            Self::Free { .. } => None,
        }
    }

    fn of_several(rules: &'a RuleSet, requests: &'a [ChargeRequest<'a>]) -> Result<Self, ResolutionError> {
        if requests.len() > CHARGES_MAX {
            return Err(Reason::from(ChargeError::Count { count: requests.len() }).at(None));
        }
        let mut charges = Vec::with_capacity(requests.len());
        let mut is_free = Vec::new();
        let mut first_free = None;
        for (index, request) in requests.iter().enumerate() {
            match charge(rules, request).map_err(|reason| reason.at(Some(index)))? {
                Ok(charge) => charges.push(charge),
                Err(rule) => {
                    first_free.get_or_insert(rule);
                    is_free.resize(requests.len(), false);
                    is_free[index] = true;
                }
            }
        }
        if let (Some(rule), true) = (first_free, charges.is_empty()) {
            return Ok(Self::Free { rule });
        }
        let admission = Admission::new(&charges).map_err(|error| {
            let is_charged = |index: usize| !is_free.get(index).copied().unwrap_or(false);
            let mut guilty = requests.iter().enumerate().filter(|(_, request)| is_guilty(&error, request));
            let at = guilty.find(|(index, _)| is_charged(*index)).map(|(index, _)| index);
            Reason::from(error).at(at)
        })?;
        Ok(Self::Charged { admission, is_free })
    }
}

/// The charge to make, or the rule whose override lets the key pass for free.
fn charge<'a>(
    rules: &'a RuleSet,
    request: &'a ChargeRequest<'a>,
) -> Result<Result<Charge<'a>, &'a Rule>, Reason> {
    match rules.resolve(request)? {
        Resolved::Limited(charge) => Ok(Ok(charge)),
        Resolved::Unlimited { rule } if request.cost == 0 => {
            Err(ChargeError::Zero { rule: rule.name().to_owned() }.into())
        }
        Resolved::Unlimited { rule } => Ok(Err(rule)),
        Resolved::Blocked { rule } => {
            Err(Reason::Blocked { key: shown(&request.key), rule: rule.name().to_owned() })
        }
    }
}

/// Whether a charge alone is what an admission was refused for.
fn is_guilty(error: &ChargeError, request: &ChargeRequest<'_>) -> bool {
    match error {
        ChargeError::Zero { .. } => request.cost == 0,
        ChargeError::Never { rule, limit, .. } => request.rule.name() == rule && request.cost > *limit,
        _ => false,
    }
}

impl Reason {
    fn at(self, at: Option<usize>) -> ResolutionError {
        ResolutionError { at, reason: self }
    }
}

#[cfg(test)]
mod tests {
    use slidegate::Algorithm;
    use slidegate::ruleset::{Override, Overrides};

    use super::super::failure::{Failure, Kind};
    use super::*;

    /// A free charge of a high cost was named for another that could never pass.
    #[test]
    fn a_free_charge_is_not_named_for_the_excess_of_another() {
        let api = Rule::builder("api").limit("5/1m".parse().unwrap()).build().unwrap();
        let mut overrides = Overrides::default();
        overrides.add("ci-*", Override::Unlimited).unwrap();
        let mut rules = RuleSet::new();
        rules.insert_with(api, overrides);
        let requests = [ChargeRequest::named("api", "ci-1", 9), ChargeRequest::named("api", "bob", 6)];
        let error = Resolution::new(&rules, &requests).unwrap_err();
        assert!(matches!(error.reason, Reason::Charge(ChargeError::Never { .. })));
        assert_eq!(error.at, Some(1));
    }

    #[test]
    fn mistakes_name_the_charge() {
        let api = Rule::builder("api").limit("5/1m".parse().unwrap()).build().unwrap();
        let rules: RuleSet = [api].into_iter().collect();
        let ask = |rule, key, cost| ChargeRequest::named(rule, key, cost);
        let failure = |requests: &[ChargeRequest<'static>]| {
            let error = Resolution::new(&rules, requests).map(|_| ()).unwrap_err();
            Failure::of(error, requests.len())
        };
        let good = ask("api", "alice", 1);
        for (bad, kind) in [
            (ask("apy", "alice", 1), Kind::UnknownRule),
            (ask("api", "", 1), Kind::Malformed),
            (ask("api", "bob", 0), Kind::Malformed),
            (ask("api", "bob", 6), Kind::Never),
        ] {
            let alone = failure(std::slice::from_ref(&bad));
            assert_eq!((alone.kind, alone.at), (kind, None));
            let beside = failure(&[good.clone(), bad]);
            assert_eq!((beside.kind, beside.at), (kind, Some(1)));
        }
        assert!(failure(&[]).text.starts_with("checks: 0 given"));
        let mut forbidding = RuleSet::new();
        forbidding.forbid_inline("rules.yaml");
        let inline = [ChargeRequest::inline("5/1m".parse().unwrap(), Algorithm::default(), "alice", 1)];
        let error = Resolution::new(&forbidding, &inline).unwrap_err();
        assert_eq!(Failure::of(error, 1).kind, Kind::InlineForbidden);
    }
}
