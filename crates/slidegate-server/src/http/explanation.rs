//! Why a charge would pass or not: the rule, what stands in its place, what is used, and how long to wait.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use slidegate::rule::OnStoreError;
use slidegate::{ChargeRequest, Decision, Resolved, Rule};

use super::reply::whole_ms;
use crate::service::{Explained, Failure, Kind, LimitUsage};

/// What is used of one limit.
#[derive(Debug, Serialize)]
struct Usage {
    limit: u64,
    window_ms: u64,
    used: u64,
    remaining: u64,
    reset_after_ms: u64,
}

impl From<&LimitUsage> for Usage {
    fn from(LimitUsage { limit, used, reset_after, .. }: &LimitUsage) -> Self {
        Self {
            limit: limit.units(),
            window_ms: limit.window_us().div_ceil(1_000),
            used: *used,
            remaining: limit.units().saturating_sub(*used),
            reset_after_ms: whole_ms(*reset_after),
        }
    }
}

/// What a check of all charges would say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    Allowed,
    Denied {
        retry_after: Duration,
    },
    /// However long one waits.
    Never,
}

impl Together {
    /// What a peek said.
    pub(super) fn of(peeked: Result<Decision<'_>, Failure>) -> Result<Self, Failure> {
        match peeked {
            Ok(decision) if !decision.allowed() => {
                Ok(Self::Denied { retry_after: decision.retry_after().unwrap_or_default() })
            }
            Ok(_) => Ok(Self::Allowed),
            Err(failure) if matches!(failure.kind, Kind::Never | Kind::Blocked) => Ok(Self::Never),
            Err(failure) => Err(failure),
        }
    }
}

/// What is used of every limit of a rule.
pub(super) fn usages_written(rule: &Rule, key: &str, usages: &[LimitUsage]) -> Vec<u8> {
    let limits: Vec<_> = usages.iter().map(Usage::from).collect();
    json!({ "rule": rule.name(), "key": key, "algorithm": rule.algorithm().to_string(), "limits": limits })
        .to_string()
        .into_bytes()
}

/// The explanation of one or several charges, of which a check would say `together`.
pub(super) fn written(explained: &[(&ChargeRequest<'_>, Explained<'_>)], together: Together) -> Vec<u8> {
    let checks: Vec<_> = explained.iter().map(|(request, explained)| one(request, explained)).collect();
    let (allowed, retry_after_ms) = match together {
        Together::Allowed => (true, json!(0)),
        Together::Denied { retry_after } => (false, json!(whole_ms(retry_after))),
        Together::Never => (false, Value::Null),
    };
    json!({ "allowed": allowed, "retry_after_ms": retry_after_ms, "checks": checks }).to_string().into_bytes()
}

fn one(request: &ChargeRequest<'_>, explained: &Explained<'_>) -> Value {
    let rule = explained.resolved.rule();
    let means = match explained.resolved {
        Resolved::Limited(_) => "limited",
        Resolved::Unlimited(_) => "unlimited",
        Resolved::Blocked(_) => "blocked",
    };
    let limits: Vec<_> = explained.usages.iter().map(Usage::from).collect();
    let (allowed, retry_after_ms, why) = match (&explained.resolved, &explained.decision) {
        (_, Some(decision)) => {
            let verdict = decision.verdicts().next().unwrap_or_else(|| decision.binding());
            let wait_ms = verdict.retry_after().map_or(0, whole_ms);
            // A store that answers knows its numbers.
            let (remaining, limit) = (verdict.remaining().unwrap_or(0), verdict.limit().unwrap_or(0));
            let why = match (verdict.allowed(), verdict.shadow()) {
                (true, _) => format!("{remaining} units of {limit} are left"),
                (false, true) => "it would be refused, but the rule is a shadow and never refuses".to_owned(),
                (false, false) => format!(
                    "{remaining} units of {limit} are left, {} are asked for; they are there in {wait_ms} ms if nobody \
                     else spends",
                    request.cost,
                ),
            };
            (decision.allowed(), json!(wait_ms), why)
        }
        (Resolved::Unlimited(_), None) => (true, json!(0), "an override makes the key unlimited".to_owned()),
        (Resolved::Blocked(_), None) => (false, Value::Null, "an override blocks the key".to_owned()),
        (Resolved::Limited(_), None) => {
            let why = format!("{} units are more than the limit of {}: never", request.cost, rule.cost_max());
            (false, Value::Null, why)
        }
    };
    let on_store_error = match rule.on_store_error() {
        OnStoreError::Deny => "deny",
        OnStoreError::Allow => "allow",
        OnStoreError::Local(_) => "local",
    };
    json!({
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
        "limits": limits,
    })
}
