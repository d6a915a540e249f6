//! The rules in force, as `GET /v1/rules` lists them.

use serde_json::{Value, json};
use slidegate::rule::{AtBudget, Limit, OnStoreError};
use slidegate::{Rule, RuleSet};

/// All rules, in the order of their names.
pub(super) fn listed(rules: &RuleSet) -> Value {
    let listed: Vec<_> = rules.iter().map(one).collect();
    json!({ "rules": listed, "inline_rules": rules.allows_inline() })
}

fn one(rule: &Rule) -> Value {
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
    })
}
