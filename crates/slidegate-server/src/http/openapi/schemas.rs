//! The schemas of bodies.

use serde_json::{Map, Value, json};
use slidegate::Algorithm;
use slidegate::rate::LIMIT_MAX;
use slidegate::rule::{BUCKETS_MAX, ENTRIES_MAX, ENTRIES_MIN};

use super::reference;
use crate::config::RATE_PATTERN;

/// All of them, by name.
pub(super) fn all() -> Value {
    let groups = [requests(), decisions(), reports()];
    groups.into_iter().filter_map(|group| group.as_object().cloned()).flatten().collect::<Map<_, _>>().into()
}

/// What is asked.
fn requests() -> Value {
    let text = json!({ "type": "string" });
    let whole = json!({ "type": "integer", "minimum": 0 });
    json!({
        "Request": { "oneOf": [reference("One"), reference("Several")] },
        "One": object(
            &[("rule", reference("RuleOrName")), ("key", reference("Key"))],
            &[("cost", reference("Cost")), ("tag", reference("Key")), ("on_store_error", reference("OnStoreError"))],
        ),
        "Several": object(
            &[("checks", json!({ "type": "array", "items": reference("Charge"), "minItems": 1, "maxItems": 64 }))],
            &[("tag", reference("Key")), ("on_store_error", reference("OnStoreError"))],
        ),
        "Charge": object(
            &[("rule", reference("RuleOrName")), ("key", reference("Key"))],
            &[("cost", reference("Cost"))],
        ),
        "Batch": object(
            &[("checks", json!({ "type": "array", "items": reference("Request"), "minItems": 1 }))],
            &[],
        ),
        "Refund": object(&[("receipt", text.clone())], &[]),
        "Settlement": object(&[("receipt", text.clone()), ("actual", whole.clone())], &[]),
        "Credit": object(
            &[("rule", reference("RuleOrName")), ("key", reference("Key")), ("units", reference("Cost"))],
            &[],
        ),
        "Reset": object(&[("rule", reference("RuleOrName")), ("key", reference("Key"))], &[]),
        "RuleOrName": { "oneOf": [text.clone(), reference("InlineRule")] },
        "InlineRule": inline_rule(),
        "Key": {
            "type": "string", "minLength": 1, "maxLength": 512,
            "description": "Who is limited: at most 512 bytes, no control characters, bidirectional overrides or line separators",
        },
        "Cost": { "type": "integer", "minimum": 1, "maximum": u64::MAX },
        "OnStoreError": { "enum": ["allow", "deny"] },
    })
}

/// What is answered to those who ask for units or give them back.
fn decisions() -> Value {
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let whole = json!({ "type": "integer", "minimum": 0 });
    let whole_or_null = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "Decision": object(
            &[
                ("allowed", flag.clone()),
                ("rule", text.clone()),
                ("limit", whole_or_null.clone()),
                ("used", whole_or_null.clone()),
                ("remaining", whole_or_null.clone()),
                ("retry_after_ms", whole_or_null.clone()),
                ("reset_after_ms", whole_or_null.clone()),
                ("degraded", flag.clone()),
                ("receipt", json!({ "type": ["string", "null"] })),
            ],
            &[("checks", list("Verdict"))],
        ),
        "Verdict": object(
            &[
                ("rule", text.clone()),
                ("key", text.clone()),
                ("allowed", flag.clone()),
                ("limit", whole_or_null.clone()),
                ("used", whole_or_null.clone()),
                ("remaining", whole_or_null.clone()),
                ("retry_after_ms", whole_or_null.clone()),
                ("reset_after_ms", whole_or_null.clone()),
            ],
            &[("shadow", flag.clone())],
        ),
        "Answers": object(
            &[("answers", json!({ "type": "array", "items": { "oneOf": [reference("Decision"), reference("Problem")] } }))],
            &[],
        ),
        "Applied": object(&[("applied", flag.clone()), ("units", whole.clone())], &[]),
    })
}

/// What is answered to those who look.
fn reports() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let whole = json!({ "type": "integer", "minimum": 0 });
    let whole_or_null = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "Explanation": object(
            &[("allowed", flag.clone()), ("retry_after_ms", whole_or_null.clone()), ("checks", list("Explained"))],
            &[],
        ),
        "Explained": object(
            &[
                ("rule", text.clone()),
                ("key", text.clone()),
                ("cost", whole.clone()),
                ("means", json!({ "enum": ["limited", "unlimited", "blocked"] })),
                ("override", json!({ "type": ["string", "null"] })),
                ("algorithm", text.clone()),
                ("shadow", flag.clone()),
                ("on_store_error", text.clone()),
                ("allowed", flag.clone()),
                ("retry_after_ms", whole_or_null),
                ("why", text.clone()),
                ("limits", list("Usage")),
            ],
            &[],
        ),
        "Usage": object(
            &[
                ("limit", whole.clone()),
                ("window_ms", whole.clone()),
                ("used", whole.clone()),
                ("remaining", whole.clone()),
                ("reset_after_ms", whole.clone()),
            ],
            &[],
        ),
        "KeyUsage": object(
            &[("rule", text.clone()), ("key", text.clone()), ("algorithm", text.clone()), ("limits", list("Usage"))],
            &[],
        ),
        "Rules": object(&[("rules", list("Rule")), ("inline_rules", flag.clone())], &[]),
        "Rule": object(
            &[
                ("rule", text.clone()),
                ("algorithm", text.clone()),
                ("limits", list("Limit")),
                ("headroom", text.clone()),
                ("shadow", flag.clone()),
                ("on_store_error", json!({ "type": ["string", "object"] })),
                ("at_budget", json!({ "enum": ["refuse", "evict-oldest"] })),
            ],
            &[],
        ),
        "Limit": object(&[("rate", text.clone()), ("limit", whole.clone()), ("window_ms", whole.clone())], &[]),
        "Rlaas": object(
            &[
                ("allowed", flag),
                ("currentCount", json!({ "type": ["integer", "null"], "minimum": 0 })),
                ("ttl", whole.clone()),
            ],
            &[],
        ),
        "TopKeys": object(&[("allowed", list("TopKey")), ("denied", list("TopKey"))], &[]),
        "TopKey": object(
            &[("rule", text.clone()), ("key", text.clone()), ("count", whole.clone()), ("error", whole)],
            &[],
        ),
        "Reloaded": object(
            &[
                ("result", json!({ "enum": ["applied", "unchanged"] })),
                ("added", texts.clone()),
                ("changed", texts.clone()),
                ("removed", texts.clone()),
                ("needs_restart", texts.clone()),
                ("warnings", texts),
            ],
            &[],
        ),
        "Document": { "type": "object" },
        "Problem": problem(),
    })
}

/// A limit and a window, or both as one rate.
fn inline_rule() -> Value {
    let algorithms: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let optional = [
        ("algorithm", json!({ "enum": algorithms })),
        ("buckets", json!({ "type": "integer", "minimum": 1, "maximum": BUCKETS_MAX })),
        ("edge", json!({ "enum": ["full", "interpolated", "dropped"] })),
        ("entries", json!({ "type": "integer", "minimum": ENTRIES_MIN, "maximum": ENTRIES_MAX })),
    ];
    let parts = [
        ("limit", json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX })),
        (
            "window",
            json!({ "type": "string", "description": "A number and a unit: ms, s, m, h or d", "examples": ["60s"] }),
        ),
    ];
    let rate = json!({
        "type": "string",
        "description": "LIMIT/WINDOW",
        "pattern": RATE_PATTERN,
        "examples": ["60/1m", "5/minute"],
    });
    json!({ "oneOf": [object(&parts, &optional), object(&[("limit", rate)], &optional)] })
}

fn problem() -> Value {
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    object(
        &[
            ("type", json!({ "type": "string", "pattern": "^urn:slidegate:problem:[a-z-]+$" })),
            ("title", text.clone()),
            ("status", json!({ "type": "integer", "minimum": 400, "maximum": 599 })),
            ("detail", text.clone()),
        ],
        &[("field", text.clone()), ("remedy", text), ("degraded", flag.clone()), ("maybe_charged", flag)],
    )
}

/// An object of these fields and no others.
fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let fields = required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "properties": fields.collect::<Map<_, _>>(),
        "required": names,
        "additionalProperties": false,
    })
}

fn list(schema: &str) -> Value {
    json!({ "type": "array", "items": reference(schema) })
}
