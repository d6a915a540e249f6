//! JSON that explains: the rules in force, what is used of them, and why a charge would pass or not.

use serde_json::{Value, json};
use slidegate::rule::{AtBudget, Limit, OnStoreError};
use slidegate::{ChargeRequest, Decision, Resolved, Rule, RuleSet};

use crate::service::{Explained, LimitUsage};
use crate::text::whole_ms;

/// All rules, ordered by name.
pub(super) fn rules(rules: &RuleSet) -> Value {
    let listed: Vec<_> = rules.iter().map(listed).collect();
    json!({ "rules": listed, "inline_rules": rules.allows_inline() })
}

fn listed(rule: &Rule) -> Value {
    let limit = |limit: &Limit| {
        let window_ms = limit.window_us().div_ceil(1_000);
        json!({ "rate": limit.rate().to_string(), "limit": limit.units(), "window_ms": window_ms })
    };
    let on_store_error = match rule.on_store_error() {
        OnStoreError::Deny => json!("deny"),
        OnStoreError::Allow => json!("allow"),
        OnStoreError::Local(share) => json!({ "local": share.to_string() }),
    };
    let at_budget = match rule.at_budget() {
        AtBudget::Refuse => "refuse",
        AtBudget::EvictOldest => "evict-oldest",
    };
    json!({
        "rule": rule.name(),
        "algorithm": rule.algorithm().to_string(),
        "limits": rule.limits().iter().map(limit).collect::<Vec<_>>(),
        "headroom": rule.headroom().to_string(),
        "shadow": rule.shadow(),
        "on_store_error": on_store_error,
        "at_budget": at_budget,
        "shards": rule.shards(),
    })
}

/// What is used of every limit.
fn limits(usages: &[LimitUsage]) -> Vec<Value> {
    let usage = |LimitUsage { limit, used, reset_after, .. }: &LimitUsage| {
        json!({
            "limit": limit.units(),
            "window_ms": limit.window_us().div_ceil(1_000),
            "used": used,
            "remaining": limit.units().saturating_sub(*used),
            "reset_after_ms": whole_ms(*reset_after),
        })
    };
    usages.iter().map(usage).collect()
}

/// What a key has used of every limit of a rule.
pub(super) fn used(rule: &Rule, request: &ChargeRequest<'_>, usages: &[LimitUsage]) -> Value {
    let algorithm = rule.algorithm().to_string();
    let used =
        json!({ "rule": rule.name(), "key": request.key, "algorithm": algorithm, "limits": limits(usages) });
    with_tag(used, request)
}

/// The answer about a request, with its tag if it has one.
fn with_tag(mut answer: Value, request: &ChargeRequest<'_>) -> Value {
    if let Some(tag) = request.tag() {
        answer["tag"] = json!(tag);
    }
    answer
}

/// The explanation of one or several charges, and the decision on all together: `None` if they can never pass.
pub(super) fn explained(
    charges: &[(&ChargeRequest<'_>, Explained<'_>)],
    together: Option<&Decision<'_>>,
) -> Value {
    let checks: Vec<_> = charges.iter().map(|(request, explained)| one(request, explained)).collect();
    let wait = |decision: &Decision<'_>| decision.retry_after().filter(|_| !decision.allowed());
    let retry_after_ms = together.map(|decision| wait(decision).map_or(0, whole_ms));
    let allowed = together.is_some_and(Decision::allowed);
    json!({ "allowed": allowed, "retry_after_ms": retry_after_ms, "checks": checks })
}

fn one(request: &ChargeRequest<'_>, explained: &Explained<'_>) -> Value {
    let rule = explained.resolved.rule();
    let means = match explained.resolved {
        Resolved::Limited(_) => "limited",
        Resolved::Unlimited(_) => "unlimited",
        Resolved::Blocked(_) => "blocked",
    };
    let (allowed, retry_after_ms, why) = match (&explained.resolved, &explained.decision) {
        (_, Some(decision)) => {
            let verdict = decision.verdicts().next().unwrap_or_else(|| decision.binding());
            let wait_ms = verdict.retry_after().map_or(0, whole_ms);
            // Decisions of a store always have these numbers.
            let (remaining, limit) = (verdict.remaining().unwrap_or(0), verdict.limit().unwrap_or(0));
            let why = match (verdict.allowed(), verdict.shadow()) {
                (true, _) => format!("{remaining} units of {limit} are left"),
                (false, true) => "it would be refused, but the rule is a shadow and never refuses".to_owned(),
                (false, false) => format!(
                    "{remaining} units of {limit} are left, {} are requested; they are available in {wait_ms} ms if \
                     nobody else spends",
                    request.cost,
                ),
            };
            (decision.allowed(), json!(wait_ms), why)
        }
        (Resolved::Unlimited(_), None) => (true, json!(0), "an override makes the key unlimited".to_owned()),
        (Resolved::Blocked(_), None) => (false, Value::Null, "an override blocks the key".to_owned()),
        (Resolved::Limited(_), None) => {
            // With a limit of the whole that admits it, a shard of a Redis refused it.
            let limit = if request.cost > rule.cost_max() { rule } else { rule.of_shard().unwrap_or(rule) };
            let why =
                format!("{} units are more than the limit of {}: never", request.cost, limit.cost_max());
            (false, Value::Null, why)
        }
    };
    let on_store_error = match rule.on_store_error() {
        OnStoreError::Deny => "deny",
        OnStoreError::Allow => "allow",
        OnStoreError::Local(_) => "local",
    };
    let explanation = json!({
        "rule": rule.name(),
        "key": request.key,
        "cost": request.cost,
        "means": means,
        "override": explained.overridden_by,
        "algorithm": rule.algorithm().to_string(),
        "shadow": rule.shadow(),
        "on_store_error": on_store_error,
        "allowed": allowed,
        "retry_after_ms": retry_after_ms,
        "why": why,
        "limits": limits(&explained.usages),
    });
    with_tag(explanation, request)
}
