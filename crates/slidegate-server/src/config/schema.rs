//! The JSON schema of a configuration file, for editors.
//!
//! A schema checks the shape of each field. `slidegate validate` also checks fields together and explains numbers.

use serde_json::{Value, json};
use slidegate::Algorithm;
use slidegate::rule::{
    BUCKETS_MAX, ENTRIES_MAX, ENTRIES_MIN, Edge, LIMITS_MAX, NAME_BYTES_MAX, SHARDS_MAX, TakeOver,
};
use slidegate::ruleset::PATTERNS_MAX;
use slidegate_redis::{CONNECTIONS_MAX, LogLayout, TEMPLATE_BYTES_MAX};

use super::token::{NAME_BYTES_MAX as TOKEN_NAME_BYTES_MAX, TOKENS_MAX};
use crate::tokens::Scope;

/// Printable ASCII without `" \ { }`.
const NAME: &str = r"^[!#-\[\]-z|~]+$";
/// The start of names of inline rules. Negated by `not`, because not every validator supports look-ahead.
const INLINE_NAME: &str = "^(sliding-log|compact-log|sliding-buckets|sliding-counter|fixed-window|gcra)/";
/// `LIMIT/WINDOW`, with short and long names of units.
pub(crate) const RATE_PATTERN: &str =
    "^[0-9]{1,13}/[0-9]{0,12}(ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)$";
const DURATION: &str = "^[0-9]+(ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)$";
/// Only the beginnings: the stores check the rest.
const STORE: &str = "^(memory|sqlite:.+|(rediss?|valkeys?|unix|(redis|valkey)\\+unix)://.+|(rediss?|valkeys?)\\+(cluster://.+|sentinel://[^/]+/.+))$";
const BYTES: &str = "^[0-9]+(KiB|MiB|GiB)?$";

/// The schema.
pub(crate) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "slidegate configuration",
        "description": "The file that `slidegate serve --config FILE` reads. `slidegate validate FILE` checks more than this schema.",
        "type": "object",
        "additionalProperties": false,
        "anyOf": [{ "required": ["rules"] }, { "required": ["rate-limiter"] }],
        "properties": {
            "rules": {
                "description": "The rules, by name.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": {
                    "minLength": 1, "maxLength": NAME_BYTES_MAX, "pattern": NAME,
                    "not": { "pattern": INLINE_NAME },
                },
                "additionalProperties": { "$ref": "#/$defs/rule" },
            },
            "rate-limiter": rate_limiter_form(),
            "http": {
                "description": "Address and port on which HTTP is served.",
                "type": "string",
                "pattern": "^(\\[[0-9A-Fa-f:.%]+\\]|[0-9.]+):[0-9]{1,5}$",
                "default": "127.0.0.1:8080",
            },
            "store": store(),
            "threads": {
                "description": "Threads that serve HTTP. Without it, one fewer than there are cores, and at least one.",
                "type": "integer", "minimum": 1, "maximum": 1_024,
            },
            "deadline": duration("How long a store may take before on_store_error answers in its place.", "50ms"),
            "memory_budget": bytes("Bytes that states in this process may take.", "1GiB"),
            "token_file": {
                "description": "A file with a token that has all scopes; callers send it as `Authorization: Bearer ...`.",
                "type": "string",
                "minLength": 1,
            },
            "tokens": tokens(),
            "hash_keys_secret_file": {
                "description": "A file with a secret. With it, the store gets a keyed hash of every key and no key in clear.",
                "type": "string",
                "minLength": 1,
            },
            "hosts": list(
                "Names besides localhost by which callers may address a server on loopback.",
                &json!({ "type": "string", "pattern": "^[A-Za-z0-9.:_\\[\\]-]{1,253}$" }),
                &json!([]),
            ),
            "headers": list(
                "Sets of headers that are sent with a decision; `none` alone for none.",
                &json!({ "enum": ["draft-11", "x-ratelimit", "github", "none"] }),
                &json!(["draft-11"]),
            ),
            "inline_rules": flag("Whether requests may contain inline rules."),
            "bounds": bounds(),
            "tls": tls(),
        },
        "$defs": { "rate": rate(), "rule": rule() },
    })
}

fn rule() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "oneOf": [{ "required": ["limit"] }, { "required": ["limits"] }],
        "properties": {
            "limit": { "$ref": "#/$defs/rate" },
            "limits": {
                "description": "Several rates; all must admit.",
                "type": "array",
                "items": { "$ref": "#/$defs/rate" },
                "minItems": 1,
                "maxItems": LIMITS_MAX,
            },
            "algorithm": {
                "description": "The algorithm that counts within the window.",
                "enum": Algorithm::ALL.map(Algorithm::name),
                "default": Algorithm::default().name(),
            },
            "buckets": {
                "description": "Sub-buckets of sliding-buckets.",
                "type": "integer", "minimum": 1, "maximum": BUCKETS_MAX, "default": 60,
            },
            "edge": {
                "description": "How sliding-buckets counts the bucket that lies partly outside the window.",
                "enum": Edge::ALL.map(Edge::name),
                "default": Edge::default().name(),
            },
            "entries": {
                "description": "Most entries of a compact-log.",
                "type": "integer", "minimum": ENTRIES_MIN, "maximum": ENTRIES_MAX, "default": 128,
            },
            "headroom": {
                "description": "The share of each limit that is kept in reserve.",
                "anyOf": [
                    { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
                    { "type": "string", "pattern": "^0(\\.[0-9]{1,6})?$" },
                ],
                "default": 0,
            },
            "shadow": flag("Whether the rule decides and counts without refusing."),
            "on_store_error": on_store_error(),
            "at_budget": {
                "description": "What happens to a new key, or a log that has to grow, when memory_budget is spent.",
                "enum": ["refuse", "evict-oldest"],
                "default": "refuse",
            },
            "shards": {
                "description": "Shards of each key on a Redis, each with an equal part of every limit; elsewhere without effect.",
                "type": "integer", "minimum": 1, "maximum": SHARDS_MAX, "default": 1,
            },
            "take_over": {
                "description": "The unit of the times in the sorted sets of another limiter, which a Redis with log_layout: sorted-set takes over.",
                "enum": TakeOver::NAMES,
            },
            "overrides": overrides(),
        },
    })
}

fn on_store_error() -> Value {
    json!({
        "description": "The outage policy: the answer when the store fails.",
        "anyOf": [
            { "enum": ["deny", "allow"] },
            {
                "type": "object",
                "additionalProperties": false,
                "required": ["local"],
                "properties": { "local": {
                    "description": "An in-process limiter at this share of the limit.",
                    "type": "number", "exclusiveMinimum": 0, "maximum": 1,
                } },
            },
        ],
        "default": "deny",
    })
}

/// The URL of a store, or its URL and what the URL of a Redis would give as parameters.
fn store() -> Value {
    let url = json!({
        "description": "Where states live: memory, a SQLite file, or a Redis that several servers share.",
        "type": "string",
        "pattern": STORE,
        "default": "memory",
    });
    json!({
        "description": "Where states live: memory, a SQLite file, or a Redis that several servers share.",
        "anyOf": [
            url,
            {
                "type": "object",
                "additionalProperties": false,
                "not": { "required": ["key_prefix", "key_template"] },
                "properties": {
                    "url": url,
                    "key_prefix": {
                        "description": "The beginning of the names of keys in a Redis.",
                        "anyOf": [{ "type": "string", "pattern": "^[^{}]+$", "maxLength": TEMPLATE_BYTES_MAX }, { "type": "integer", "minimum": 0 }],
                        "default": "sg",
                    },
                    "key_template": {
                        "description": "The names of keys in a Redis. Without {rule} only one rule may use it.",
                        "type": "string", "pattern": "\\{key\\}", "maxLength": TEMPLATE_BYTES_MAX,
                        "default": "sg:{{key}}:{rule}",
                    },
                    "log_layout": {
                        "description": "How a Redis keeps sliding-log: packed in a string, or in a sorted set with a member per unit.",
                        "enum": LogLayout::NAMES,
                        "default": LogLayout::default().name(),
                    },
                    "connections": {
                        "description": "Connections to a Redis, which all calls share.",
                        "type": "integer", "minimum": 1, "maximum": CONNECTIONS_MAX, "default": 2,
                    },
                    "connect_timeout": duration("How long connecting to a Redis may take.", "1s"),
                    "deny_cache": {
                        "description": "How long a denial of a Redis is answered without asking it; off for not at all.",
                        "anyOf": [{ "type": "string", "pattern": DURATION }, { "enum": ["off", 0] }],
                        "default": "1s",
                    },
                },
            },
        ],
        "default": "memory",
    })
}

fn overrides() -> Value {
    json!({
        "description": format!(
            "Keys with their own limits: exact keys first, then at most {PATTERNS_MAX} patterns with `*` in file order."
        ),
        "type": "object",
        "propertyNames": { "minLength": 1, "maxLength": 1_024 },
        "additionalProperties": { "anyOf": [
            { "enum": ["unlimited", "blocked"] },
            { "$ref": "#/$defs/rate" },
            { "type": "array", "items": { "$ref": "#/$defs/rate" }, "minItems": 1, "maxItems": LIMITS_MAX },
        ] },
        "default": {},
    })
}

fn tokens() -> Value {
    let scope = json!({ "enum": Scope::NAMES });
    json!({
        "description": "The tokens that callers may send as `Authorization: Bearer ...`, by name: hashes and scopes.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": TOKENS_MAX,
        "propertyNames": { "minLength": 1, "maxLength": TOKEN_NAME_BYTES_MAX, "pattern": "^[!-~]+$" },
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "required": ["sha256", "scopes"],
            "properties": {
                "sha256": {
                    "description": "The SHA-256 hash of a random token of at least 16 bytes; `slidegate token` prints both.",
                    "type": "string", "pattern": "^[0-9A-Fa-f]{64}$",
                },
                "scopes": {
                    "description": "What the token permits. No scope includes another.",
                    "anyOf": [{ "type": "array", "items": scope, "minItems": 1, "uniqueItems": true }, scope],
                },
            },
        },
    })
}

fn rate_limiter_form() -> Value {
    json!({
        "description": "The small-service form of one rule, `default`.",
        "type": "object",
        "additionalProperties": false,
        "required": ["window-size", "max-requests"],
        "properties": {
            "use-algo": {
                "description": "The algorithm, by its small-service name or by its slidegate name.",
                "type": "string",
                "default": "sliding-window-algo",
            },
            "window-size": {
                "description": "The window in seconds.",
                "type": "integer", "minimum": 1, "maximum": 34_560_000,
            },
            "max-requests": {
                "description": "Units per window.",
                "type": "integer", "minimum": 1, "maximum": slidegate::rate::LIMIT_MAX,
            },
            "on_store_error": on_store_error(),
        },
    })
}

fn bounds() -> Value {
    json!({
        "description": "Bounds on requests and connections.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "body_bytes": bytes("Largest body of a request.", "64KiB"),
            "header_bytes": bytes("Largest head of a request.", "16KiB"),
            "connections": {
                "description": "Most connections at a time.",
                "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 16_384,
            },
            "buffer_bytes": bytes(
                "Bytes that all connections may buffer of requests that are still arriving; further ones get 503.",
                "64MiB",
            ),
            "request_time": duration("How long a request may take to arrive.", "10s"),
            "idle_time": duration("How long a connection may be idle.", "75s"),
            "drain_time": duration("How long requests in flight may take after the server is told to stop.", "10s"),
            "inline_rules": {
                "description": "Most different inline rules in use.",
                "type": "integer", "minimum": 1, "maximum": 100_000, "default": 1_000,
            },
            "inline_window": duration("Longest window of an inline rule.", "31d"),
        },
    })
}

fn tls() -> Value {
    let file = |description: &str| json!({ "description": description, "type": "string", "minLength": 1 });
    json!({
        "description": "TLS on HTTP. The files are PEM and are read again when they change.",
        "type": "object",
        "additionalProperties": false,
        "required": ["certificate", "key"],
        "properties": {
            "certificate": file("The certificate of the server, followed by those that issued it."),
            "key": file("The private key of the certificate."),
            "client_ca": file("Authorities: only clients with a certificate of theirs are served."),
        },
    })
}

fn rate() -> Value {
    json!({
        "description": "LIMIT/WINDOW: 60/1m, 10000/24h, 5/s, 5/minute.",
        "type": "string",
        "pattern": RATE_PATTERN,
    })
}

fn duration(description: &str, default: &str) -> Value {
    json!({ "description": description, "type": "string", "pattern": DURATION, "default": default })
}

fn bytes(description: &str, default: &str) -> Value {
    let forms = json!([{ "type": "string", "pattern": BYTES }, { "type": "integer", "minimum": 1_024 }]);
    json!({ "description": description, "anyOf": forms, "default": default })
}

fn flag(description: &str) -> Value {
    json!({ "description": description, "type": "boolean", "default": false })
}

fn list(description: &str, item: &Value, default: &Value) -> Value {
    json!({
        "description": description,
        "anyOf": [{ "type": "array", "items": item, "uniqueItems": true }, item],
        "default": default,
    })
}
