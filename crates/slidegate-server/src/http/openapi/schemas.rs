//! The schemas of bodies, in a notation like TypeScript types.

use serde_json::{Map, Value, json};
use slidegate::Algorithm;
use slidegate::rate::LIMIT_MAX;
use slidegate::rule::{BUCKETS_MAX, ENTRIES_MAX, ENTRIES_MIN};

use crate::config::RATE_PATTERN;
use crate::metrics::StoreCause;

/// Objects and their fields.
const OBJECTS: &[(&str, &str)] = &[
    // Requests.
    ("One", "rule: RuleOrName, key: Key, cost?: Cost, tag?: Tag, on_store_error?: OnStoreError"),
    ("Several", "checks: Charge[], tag?: Tag, on_store_error?: OnStoreError"),
    ("Charge", "rule: RuleOrName, key: Key, cost?: Cost, tag?: Tag"),
    ("Batch", "checks: Request[]"),
    ("Refund", "receipt: string"),
    ("Settlement", "receipt: string, actual: integer"),
    ("Credit", "rule: RuleOrName, key: Key, units: Cost, tag?: Tag"),
    ("Reset", "rule: RuleOrName, key: Key, tag?: Tag"),
    // Answers to charges and returns.
    (
        "Decision",
        "allowed: boolean, rule: string, limit: integer|null, used: integer|null, remaining: integer|null, \
         retry_after_ms: integer|null, reset_after_ms: integer|null, degraded: boolean, cause?: Cause, atomic?: boolean, \
         receipt: string|null, checks?: Verdict[]",
    ),
    (
        "Verdict",
        "rule: string, key: string, allowed: boolean, limit: integer|null, used: integer|null, \
         remaining: integer|null, retry_after_ms: integer|null, reset_after_ms: integer|null, shadow?: boolean, tag?: string",
    ),
    ("Answers", "answers: (Decision|Problem)[]"),
    ("Applied", "applied: boolean, units: integer"),
    // Answers to reads.
    ("Explanation", "allowed: boolean, retry_after_ms: integer|null, checks: Explained[]"),
    (
        "Explained",
        "rule: string, key: string, cost: integer, means: 'limited'|'unlimited'|'blocked', override: string|null, \
         algorithm: string, shadow: boolean, on_store_error: string, allowed: boolean, \
         retry_after_ms: integer|null, why: string, limits: Usage[], tag?: string",
    ),
    (
        "Usage",
        "limit: integer, window_ms: integer, used: integer, remaining: integer, reset_after_ms: integer",
    ),
    ("KeyUsage", "rule: string, key: string, algorithm: string, limits: Usage[], tag?: string"),
    ("Rules", "rules: Rule[], inline_rules: boolean"),
    (
        "Rule",
        "rule: string, algorithm: string, limits: Limit[], headroom: string, shadow: boolean, \
         on_store_error: string|object, at_budget: 'refuse'|'evict-oldest', shards: integer",
    ),
    ("Limit", "rate: string, limit: integer, window_ms: integer"),
    ("Rlaas", "allowed: boolean, currentCount: integer|null, ttl: integer"),
    ("TopKeys", "allowed: TopKey[], denied: TopKey[]"),
    ("TopKey", "rule: string, key: string, count: integer, error: integer"),
    (
        "Reloaded",
        "result: 'applied'|'unchanged', added: string[], changed: string[], removed: string[], \
         needs_restart: string[], warnings: string[]",
    ),
    (
        "Problem",
        "type: string, title: string, status: integer, detail: string, field?: string, remedy?: string, \
         degraded?: boolean, cause?: Cause, maybe_charged?: boolean",
    ),
];

/// All schemas, by name.
pub(super) fn all() -> Value {
    let mut all = json!({
        "Request": schema("One|Several"),
        "RuleOrName": schema("string|InlineRule"),
        "InlineRule": inline_rule(),
        "Key": {
            "type": "string", "minLength": 1, "maxLength": 512,
            "description": "Who is limited: at most 512 bytes, no control characters, bidirectional overrides or line separators",
        },
        "Tag": {
            "type": "string", "minLength": 1, "maxLength": 511,
            "description": "States of another tag, or without one, are other states; keys of one tag are in one slot of a \
                            Redis Cluster. Together with the key at most 512 bytes, with the characters of a key",
        },
        "Cost": { "type": "integer", "minimum": 1, "maximum": u64::MAX },
        "OnStoreError": schema("'allow'|'deny'"),
        "Cause": {
            "enum": StoreCause::ALL.map(StoreCause::name),
            "description": "Why the store did not answer",
        },
        "Document": { "type": "object" },
    });
    for &(name, fields) in OBJECTS {
        all[name] = object(fields);
    }
    // Constraints that the notation cannot express.
    for (name, field, keyword, value) in [
        ("Several", "checks", "minItems", json!(1)),
        ("Several", "checks", "maxItems", json!(64)),
        ("Batch", "checks", "minItems", json!(1)),
        ("Problem", "type", "pattern", json!("^urn:slidegate:problem:[a-z-]+$")),
        ("Problem", "status", "minimum", json!(400)),
        ("Problem", "status", "maximum", json!(599)),
    ] {
        all[name]["properties"][field][keyword] = value;
    }
    all
}

/// A limit and a window, or both as one rate.
fn inline_rule() -> Value {
    let algorithms: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let form = |required: &[&str], mut properties: Value| {
        properties["algorithm"] = json!({ "enum": algorithms });
        properties["buckets"] = json!({ "type": "integer", "minimum": 1, "maximum": BUCKETS_MAX });
        properties["edge"] = schema("'full'|'interpolated'|'dropped'");
        properties["entries"] = json!({ "type": "integer", "minimum": ENTRIES_MIN, "maximum": ENTRIES_MAX });
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX });
    let window = "A number and a unit: ms, s, m, h or d";
    let window = json!({ "type": "string", "description": window, "examples": ["60s"] });
    let examples = ["60/1m", "5/minute"];
    let rate = json!({ "type": "string", "description": "LIMIT/WINDOW", "pattern": RATE_PATTERN, "examples": examples });
    let parts = form(&["limit", "window"], json!({ "limit": limit, "window": window }));
    json!({ "oneOf": [parts, form(&["limit"], json!({ "limit": rate }))] })
}

/// An object with exactly these fields: `name: type`, or `name?: type` for an optional one.
fn object(fields: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields.split(", ") {
        let (name, of_type) = field.split_once(": ").expect("a name and a type");
        let optional = name.strip_suffix('?');
        if optional.is_none() {
            required.push(name);
        }
        properties.insert(optional.unwrap_or(name).to_owned(), schema(of_type));
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema of a type: `integer` (from 0 on), `string|null`, `'one'|'other'`, the name of a schema, or a list,
/// `Key[]`.
pub(super) fn schema(of_type: &str) -> Value {
    if let Some(items) = of_type.strip_suffix("[]") {
        return json!({ "type": "array", "items": schema(items.trim_matches(['(', ')'])) });
    }
    let is_name = |one: &str| one.starts_with(|first: char| first.is_ascii_uppercase());
    let any: Vec<&str> = of_type.split('|').collect();
    match any[..] {
        [name] if is_name(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
        _ if any.iter().any(|one| is_name(one)) => {
            json!({ "oneOf": any.into_iter().map(schema).collect::<Vec<_>>() })
        }
        _ if of_type.starts_with('\'') => {
            json!({ "enum": any.into_iter().map(|text| text.trim_matches('\'')).collect::<Vec<_>>() })
        }
        ["integer"] => json!({ "type": "integer", "minimum": 0 }),
        [one] => json!({ "type": one }),
        ["integer", ..] => json!({ "type": any, "minimum": 0 }),
        _ => json!({ "type": any }),
    }
}
