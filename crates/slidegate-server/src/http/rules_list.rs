//! The rules in force, as `GET /v1/rules` lists them.

use serde_json::{Value, json};
use slidegate::rule::{AtBudget, OnStoreError};
use slidegate::{Rule, RuleSet};

/// All rules, in the order of their names.
pub(super) fn written(rules: &RuleSet) -> Vec<u8> {
    let listed: Vec<_> = rules.iter().map(one).collect();
    json!({ "rules": listed, "inline_rules": rules.allows_inline() }).to_string().into_bytes()
}

fn one(rule: &Rule) -> Value {
    let limits: Vec<_> = rule
        .limits()
        .iter()
        .map(|limit| {
            json!({
                "rate": limit.rate().to_string(),
                "limit": limit.units(),
                "window_ms": limit.window_us().div_ceil(1_000),
            })
        })
        .collect();
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
        "limits": limits,
        "headroom": rule.headroom().to_string(),
        "shadow": rule.shadow(),
        "on_store_error": on_store_error,
        "at_budget": at_budget,
    })
}
