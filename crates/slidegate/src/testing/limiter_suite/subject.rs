//! Helpers of the promises: rules whose windows do not end during the suite, and short calls.

use std::fmt::Display;
use std::time::Duration;

use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::rule::{Algorithm, OnStoreError, Rule};
use crate::store::Store;

/// Longer than any run of the suite: a fixed window is unlikely to end during it.
pub(super) const WINDOW: Duration = Duration::from_secs(400 * 86_400);

/// A rule of ten units in [`WINDOW`].
pub(super) fn ten(name: &str) -> Rule {
    limited(name, "10/400d", Algorithm::default())
}

pub(super) fn limited(name: &str, rate: &str, algorithm: Algorithm) -> Rule {
    let rate = rate.parse().expect("the rates of the suite are well formed");
    Rule::builder(name).limit(rate).algorithm(algorithm).build().expect("the rules of the suite are valid")
}

/// A shadow rule of ten units.
pub(super) fn shadow(name: &str) -> Rule {
    with_policy(name, OnStoreError::default(), true)
}

/// A rule of ten units with that outage policy.
pub(super) fn with_policy(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
    let rate = "10/400d".parse().expect("a rate");
    let rule = Rule::builder(name).limit(rate).on_store_error(policy).shadow(shadow);
    rule.build().expect("the rules of the suite are valid")
}

/// The answer; an error as text if there is none.
pub(super) fn answered<T, E: Display>(answer: Result<T, E>) -> Result<T, String> {
    answer.map_err(|error| format!("no answer: {error}"))
}

/// Alice's use of a rule's first limit.
pub(super) async fn used<S: Store>(limiter: &Limiter<S>, rule: &Rule) -> Result<u64, String> {
    used_by(limiter, rule, "alice").await
}

pub(super) async fn used_by<S: Store>(limiter: &Limiter<S>, rule: &Rule, key: &str) -> Result<u64, String> {
    let usages = answered(limiter.inspect_async(rule, key).await)?;
    ensure_eq!(usages.len(), rule.limits().len(), "usages of a rule");
    Ok(usages[0].used)
}

/// `allowed`, `used` and `remaining`.
pub(super) fn shown(decision: &Decision<'_>) -> (bool, Option<u64>, Option<u64>) {
    (decision.allowed(), decision.used(), decision.remaining())
}
