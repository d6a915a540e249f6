//! The charges of a line, resolved and made into an admission.

use slidegate::ruleset::{AdmissionError, AdmissionErrorKind as Reason};
use slidegate::{Admission, ChargeError, ChargeRequest, ResolveError, Resolved, RuleSet};

use super::failure::Failure;
use crate::text::shown;

/// All charges as one admission.
pub(super) fn admission<'a>(
    rules: &'a RuleSet,
    requests: &'a [ChargeRequest<'a>],
) -> Result<Admission<'a>, Failure> {
    rules.admission(requests).map_err(|AdmissionError { at, reason }| {
        let which = at.map_or_else(String::new, |index| which(index, requests));
        match reason {
            // A key is always named with its place, as a field of a wrong type is.
            Reason::Resolve(ResolveError::Key(error)) => {
                Failure::new("key", &format!("{}{error}", at.map_or_else(String::new, prefix)))
            }
            Reason::Resolve(error) => Failure::of(&which, &error),
            blocked @ Reason::Blocked { .. } => Failure::new("blocked", &format!("{which}{blocked}")),
            Reason::Charge(error @ ChargeError::Zero { .. }) => {
                Failure::new("cost", &format!("{which}{error}"))
            }
            Reason::Charge(ChargeError::Never { ref rule, cost, .. }) => {
                let excess = Excess::find(rules, requests, rule, cost);
                let text = reason.to_string();
                Failure::new("never", &excess.map_or(text.clone(), |excess| excess.said(requests, &text)))
            }
            Reason::Charge(error) => error.into(),
            other => Failure::new("malformed", &format!("{which}{other}")),
        }
    })
}

/// What stands before the names of a charge's fields.
fn prefix(index: usize) -> String {
    format!("charges[{index}].")
}

/// Which of several charges it is, to stand before a field's name; empty if it is the only one.
fn which(index: usize, requests: &[ChargeRequest<'_>]) -> String {
    if requests.len() > 1 { prefix(index) } else { String::new() }
}

/// The charges of one key that together ask for more than their rule can ever give.
struct Excess<'a> {
    key: &'a str,
    /// The first of them, by its index.
    first: usize,
    is_sum: bool,
}

impl<'a> Excess<'a> {
    /// Finds the charges that ask for `cost` units of `rule`. Those that are free ask for nothing.
    fn find(rules: &'a RuleSet, requests: &'a [ChargeRequest<'a>], rule: &str, cost: u64) -> Option<Self> {
        let is_of_rule = |request: &&ChargeRequest<'_>| request.rule.name() == rule;
        let is_limited =
            |request: &'a ChargeRequest<'a>| matches!(rules.resolve(request), Ok(Resolved::Limited(_)));
        requests.iter().enumerate().find_map(|(first, request)| {
            let twins = requests.iter().filter(is_of_rule).filter(|twin| twin.key == request.key);
            let asked = twins.clone().fold(0_u64, |sum, twin| sum.saturating_add(twin.cost));
            let found = Self { key: &request.key, first, is_sum: twins.count() > 1 };
            Some(found).filter(|_| is_of_rule(&request) && asked == cost && is_limited(request))
        })
    }

    fn said(&self, requests: &[ChargeRequest<'_>], text: &str) -> String {
        let which = which(self.first, requests);
        match text.strip_prefix("cost: ").filter(|_| self.is_sum) {
            Some(text) => {
                format!("{which}cost: with the other charges of key `{}`, {text}", shown(self.key))
            }
            None => format!("{which}{text}"),
        }
    }
}
