//! Makes an admission of the charges of a line.

use slidegate::ruleset::{AdmissionError, AdmissionErrorKind as Reason};
use slidegate::{Admission, ChargeError, ChargeRequest, ResolveError, Resolved, RuleSet};

use super::line_error::LineError;
use crate::text::excerpt;

/// All charges as one admission.
pub(super) fn admission<'a>(
    rules: &'a RuleSet,
    requests: &'a [ChargeRequest<'a>],
) -> Result<Admission<'a>, LineError> {
    rules.admission(requests).map_err(|AdmissionError { at, reason }| {
        let which = at.map_or_else(String::new, |index| which(index, requests));
        match reason {
            // An error of a key always names its charge, as an error of a type does.
            Reason::Resolve(ResolveError::Key(error)) => {
                LineError::new("key", &format!("{}{error}", at.map_or_else(String::new, prefix)))
            }
            Reason::Resolve(error) => LineError::of(&which, &error),
            blocked @ Reason::Blocked { .. } => LineError::new("blocked", &format!("{which}{blocked}")),
            Reason::Charge(error @ ChargeError::Zero { .. }) => {
                LineError::new("cost", &format!("{which}{error}"))
            }
            Reason::Charge(ChargeError::Never { ref rule, cost, .. }) => {
                LineError::new("never", &never(rules, requests, rule, cost, &reason.to_string()))
            }
            Reason::Charge(error @ ChargeError::NeverInShard { .. }) => LineError::new("never", &error),
            Reason::Charge(error) => error.into(),
            other => LineError::new("malformed", &format!("{which}{other}")),
        }
    })
}

/// The prefix of the fields of a charge.
fn prefix(index: usize) -> String {
    format!("charges[{index}].")
}

/// The prefix of the fields of a charge; empty if it is the only charge.
fn which(index: usize, requests: &[ChargeRequest<'_>]) -> String {
    if requests.len() > 1 { prefix(index) } else { String::new() }
}

/// `text`, prefixed with the first of the charges that together ask for `cost` units of one key, more than `rule` can
/// ever admit. Unlimited charges do not count.
fn never(rules: &RuleSet, requests: &[ChargeRequest<'_>], rule: &str, cost: u64, text: &str) -> String {
    let is_of_rule = |request: &&ChargeRequest<'_>| request.rule.name() == rule;
    for (first, request) in requests.iter().enumerate().filter(|(_, request)| is_of_rule(request)) {
        let same_key = requests
            .iter()
            .filter(is_of_rule)
            .filter(|other| (&other.key, other.tag()) == (&request.key, request.tag()));
        let total = same_key.clone().fold(0_u64, |sum, other| sum.saturating_add(other.cost));
        if total == cost && matches!(rules.resolve(request), Ok(Resolved::Limited(_))) {
            let (which, key) = (which(first, requests), excerpt(&request.key));
            return match text.strip_prefix("cost: ").filter(|_| same_key.count() > 1) {
                Some(text) => format!("{which}cost: with the other charges of key `{key}`, {text}"),
                None => format!("{which}{text}"),
            };
        }
    }
    text.to_owned()
}
