//! The charges of a line, resolved and made into an admission.

use slidegate::ruleset::{AdmissionError, AdmissionErrorKind as Reason};
use slidegate::{Admission, ChargeError, ChargeRequest, ResolveError, Resolved, RuleSet};

use super::failure::Failure;
use crate::text::excerpt;

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
                Failure::new("never", &never(rules, requests, rule, cost, &reason.to_string()))
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

/// `text`, with the place of the charges that together ask for `cost` units of one key, which is more than `rule` can ever
/// give. Those that are free ask for nothing.
fn never(rules: &RuleSet, requests: &[ChargeRequest<'_>], rule: &str, cost: u64, text: &str) -> String {
    let is_of_rule = |request: &&ChargeRequest<'_>| request.rule.name() == rule;
    for (first, request) in requests.iter().enumerate().filter(|(_, request)| is_of_rule(request)) {
        let twins = requests.iter().filter(is_of_rule).filter(|twin| twin.key == request.key);
        let asked = twins.clone().fold(0_u64, |sum, twin| sum.saturating_add(twin.cost));
        if asked == cost && matches!(rules.resolve(request), Ok(Resolved::Limited(_))) {
            let (which, key) = (which(first, requests), excerpt(&request.key));
            return match text.strip_prefix("cost: ").filter(|_| twins.count() > 1) {
                Some(text) => format!("{which}cost: with the other charges of key `{key}`, {text}"),
                None => format!("{which}{text}"),
            };
        }
    }
    text.to_owned()
}
