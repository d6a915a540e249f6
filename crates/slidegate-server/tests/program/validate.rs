//! `validate`, `schema` and `config example`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::program::{Run, file_of, run};
use crate::schemathesis::tool;

const SCHEMA: &str = include_str!("../../../../docs/config.schema.json");
const EXAMPLE: &str = include_str!("../../../../examples/slidegate.yaml");
const REFERENCE: &str = include_str!("../../../../docs/configuration.md");

fn validate(config: &str) -> Run {
    let file = file_of("validate.yaml", config);
    let mut run = run(&["validate", &file], "");
    run.out = run.out.replace(&file, "FILE");
    run.err = run.err.replace(&file, "FILE");
    run
}

#[test]
fn a_valid_file_is_explained() {
    let config = "\
rules:
  yt-quota: { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
  api: { limit: 60/1m, shadow: true, overrides: { alice: 600/1m, 'ci-*': unlimited, mallory: blocked } }
";
    let run = validate(config);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let expected = "\
rule api: 60/1m, shadow
  sliding-log, up to 1064 bytes per key, without the store: deny
  alice: 600/1m
  mallory: blocked
  ci-*: unlimited
rule yt-quota: 10000/1d of which 9500 after headroom 0.05
  sliding-log, up to 152104 bytes per key, without the store: allow
http 127.0.0.1:8080, store memory, inline rules not allowed
valid, 0 warnings
";
    assert_eq!(run.out, expected);
}

#[test]
fn a_bad_file_exits_with_2_and_lists_all_mistakes_in_one_form() {
    let run = validate("rules: { api: { limt: 5/1m } }\nstoer: memory\n");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines[0].starts_with("error: FILE:1:10: rule `api`: limit: is missing"), "{}", run.err);
    assert!(
        lines[1].starts_with("error: FILE:1:17: rule `api`: limt: is not a field of a rule; did you mean"),
        "{}",
        run.err
    );
    assert!(
        lines[2].starts_with("error: FILE:2:1: stoer: is not a field; did you mean `store`?"),
        "{}",
        run.err
    );
}

#[test]
fn valid_and_bad_files_are_reported_as_json() {
    let good =
        file_of("good.yaml", "rules: { api: { limit: 60/1m, headroom: 0.5, overrides: { a: blocked } } }\n");
    let meant = run(&["validate", "--json", &good], "");
    assert_eq!(meant.code, 0);
    let meant = &meant.answers()[0];
    assert_eq!((&meant["valid"], &meant["warnings"]), (&json!(true), &json!([])));
    let limits = json!([{ "rate": "60/1m", "enforced": 30, "window_ms": 60_000 }]);
    assert_eq!(
        (&meant["rules"][0]["limits"], &meant["rules"][0]["overrides"]),
        (&limits, &json!({ "a": "blocked" }))
    );

    let bad = file_of("bad.yaml", "rules: { api: { limit: 60 } }\n");
    let refused = run(&["validate", "--json", &bad], "");
    assert_eq!((refused.code, refused.err.as_str()), (2, ""));
    let mistake = &refused.answers()[0]["mistakes"][0];
    assert_eq!(
        (&mistake["file"], &mistake["line"], &mistake["column"]),
        (&json!(bad), &json!(1), &json!(24))
    );
}

#[test]
fn legal_but_unwise_settings_get_warnings() {
    for (config, position, words) in [
        (
            "rules: { api: { limit: 20000/1m } }\n",
            "1:10",
            "rule `api`: sliding-log keeps up to 20000 requests of a key, 320104 bytes; algorithm: compact-log",
        ),
        (
            "rules: { api: { limit: 5/1m, overrides: { a: 20000/1m } } }\n",
            "1:10",
            "rule `api`: overrides: `a`: sliding-log keeps up to 20000 requests",
        ),
        (
            "rules: { api: { limit: 5/1m } }\nstore: redis://db\n",
            "1:10",
            "rule `api`: on_store_error: is not given, so everything is denied while the store does not answer",
        ),
        (
            "rules: { a: { limit: 5/1m } }\nhttp: 0.0.0.0:80\n",
            "2:7",
            "http: anybody who can reach 0.0.0.0:80 can charge",
        ),
        (
            "rules: { a: { limit: 5/1m, shadow: true } }\n",
            "1:10",
            "every rule is a shadow, so nothing is ever refused",
        ),
        (
            "rules: { hot: { limit: 100/1s, shards: 4 } }\n",
            "1:10",
            "rule `hot`: shards: has no effect, as only a Redis splits keys",
        ),
        (
            "rules: { a: { limit: 5/1m, on_store_error: deny } }\nstore: redis://db\nmemory_budget: 1GiB\n",
            "3:16",
            "memory_budget: has no effect",
        ),
    ] {
        let run = validate(config);
        assert_eq!(run.code, 0, "{config}: {}", run.err);
        assert!(run.err.starts_with(&format!("warning: FILE:{position}: ")), "{config}: {}", run.err);
        assert!(run.err.contains(words), "{config}: {}", run.err);
        assert!(run.out.ends_with("valid, 1 warning\n"), "{config}: {}", run.out);
    }
    let token = file_of("token", "0123456789abcdef\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let guarded =
        validate(&format!("rules: {{ a: {{ limit: 5/1m }} }}\nhttp: 0.0.0.0:80\ntoken_file: {token}\n"));
    assert_eq!((guarded.code, guarded.err.as_str()), (0, ""));
}

#[test]
fn the_schema_is_checked_in() {
    let printed = run(&["schema"], "");
    assert_eq!(printed.code, 0);
    assert_eq!(printed.out, SCHEMA, "run `slidegate schema > docs/config.schema.json`");
}

#[test]
fn the_example_is_checked_in_valid_and_uses_every_field() {
    let printed = run(&["config", "example"], "");
    assert_eq!(
        (printed.code, printed.out.as_str()),
        (0, EXAMPLE),
        "examples/slidegate.yaml and the program differ"
    );
    let run = validate(EXAMPLE);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for (_, field) in fields() {
        let used = EXAMPLE
            .lines()
            .any(|line| line.trim_start_matches("# ").trim_start().starts_with(&format!("{field}:")));
        assert!(used || field == "local", "the example leaves out {field}");
    }
}

/// All fields of the schema, each with the path of its parent.
fn fields() -> BTreeSet<(String, String)> {
    fn collect(path: &str, node: &Value, found: &mut BTreeSet<(String, String)>) {
        match node {
            Value::Object(members) => {
                for (name, member) in members {
                    if let ("properties", Value::Object(fields)) = (name.as_str(), member) {
                        for (field, inside) in fields {
                            found.insert((path.to_owned(), field.clone()));
                            collect(field, inside, found);
                        }
                    } else {
                        collect(if name == "rule" { "rule" } else { path }, member, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(path, item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    collect("", &serde_json::from_str(SCHEMA).expect("it is JSON"), &mut found);
    assert!(found.len() > 30, "{found:?}");
    found
}

#[test]
fn the_reference_documents_every_field_and_default() {
    for (path, field) in fields() {
        assert!(REFERENCE.contains(&format!("`{field}`")), "docs/configuration.md leaves out {path} {field}");
    }
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let (rules, settings) = REFERENCE.split_once("## Settings").unwrap();
    let (settings, bounds) = settings.split_once("| field of `bounds` |").unwrap();
    let (_, store) = bounds.split_once("| field of `store` |").unwrap();
    let tables = [
        (settings, &schema["properties"]),
        (rules, &schema["$defs"]["rule"]["properties"]),
        (bounds, &schema["properties"]["bounds"]["properties"]),
        (store, &schema["properties"]["store"]["anyOf"][1]["properties"]),
    ];
    let fields = |(text, fields): &(&'static str, &Value)| {
        let fields = fields.as_object().unwrap().clone();
        let text = *text;
        fields.into_iter().map(move |(field, meaning)| (text, field, meaning))
    };
    for (text, field, meaning) in tables.iter().flat_map(fields) {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{field}` |")));
        let row = row.unwrap_or_else(|| panic!("{field} has no row"));
        let default = match &meaning["default"] {
            Value::String(text) => text.clone(),
            Value::Null | Value::Object(_) => continue,
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        assert!(row.contains(&default), "{field}: the default is {default}, but the row says {row}");
    }
}

/// YAML as JSON.
fn json_of(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("it is YAML")
}

/// The errors that the schema finds in each file, by the `jsonschema_rs` that schemathesis brings.
fn schema_errors(configs: &[&str]) -> Vec<Vec<String>> {
    let script = "
import json, sys, jsonschema_rs
validator = jsonschema_rs.validator_for(json.loads(sys.argv[1]))
print(json.dumps([[error.message for error in validator.iter_errors(file)] for file in json.loads(sys.argv[2])]))
";
    let files: Vec<Value> = configs.iter().map(|config| json_of(config)).collect();
    let files = serde_json::to_string(&files).expect("JSON values can be written");
    let output = tool("python3").args(["-c", script, SCHEMA, &files]).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let errors: Vec<Vec<String>> =
        serde_json::from_slice(&output.stdout).expect("the script prints lists of errors");
    assert_eq!(errors.len(), configs.len());
    errors
}

#[test]
fn the_schema_accepts_valid_and_refuses_bad_configurations() {
    let good = [
        EXAMPLE,
        "rules: { api: { limit: 60/m } }",
        "rules: { /login: { limit: 60/m }, a/b: { limit: 60/m }, sliding-log: { limit: 60/m } }",
        "rules: { a: { limits: [5/second, 9/2mins, 30/hour, 95/2days] } }",
        "{ rules: { a: { limit: 5/minute } }, deadline: 1sec }",
        "rules: { a: { limits: [5/1s, 60/30s], algorithm: gcra, headroom: '0.1', on_store_error: { local: 0.25 } } }",
        "rate-limiter: { window-size: 60, max-requests: 5 }",
        "{ rules: { a: { limit: 5/1m } }, store: memory }",
        "{ rules: { a: { limit: 5/1m } }, store: 'sqlite:quota.db' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'sqlite:///var/lib/quota.db?durability=normal' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'redis://db:6379/2' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'rediss://db' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'unix:///run/redis.sock' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'valkeys://db?key_prefix=app&deadline=20ms' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'redis+sentinel://h1,h2/main/2?connections=4' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'valkeys+cluster://h1:7000,h2?key_prefix=app' }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', key_prefix: app, log_layout: sorted-set, connections: 4 } }",
        "{ rules: { a: { limit: 5/1m, take_over: ms } }, store: { url: 'redis://db', key_template: 'a:{key}', connect_timeout: 2s, deny_cache: 'off' } }",
        "{ rules: { a: { limit: 5/1m, take_over: s } }, store: { url: 'redis://db', key_prefix: 7, deny_cache: 0 } }",
        "{ rules: { a: { limit: 5/1m } }, store: { log_layout: packed, deny_cache: 200ms } }",
        "{ rules: { a: { limit: 5/1m } }, hosts: a.example, headers: none, memory_budget: 1073741824, http: '[::1]:80' }",
        "{ rules: { a: { limit: 5/1m } }, tokens: { web: { sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef, scopes: [check, read] } } }",
        "{ rules: { a: { limit: 5/1m } }, tokens: { web: { sha256: 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef, scopes: admin } } }",
    ];
    for (config, errors) in good.iter().zip(schema_errors(&good)) {
        assert_eq!(errors, [""; 0], "{config}");
        assert_eq!(validate(config).code, 0, "{config}");
    }
    let bad = [
        "{}",
        "rules: {}",
        "rules: { a: {} }",
        "rules: { a: { limit: 60 } }",
        "rules: { 'a\"b': { limit: 60/1m } }",
        "rules: { sliding-log/login: { limit: 60/1m } }",
        "rules: { gcra/: { limit: 60/1m } }",
        "rules: { a: { limit: 60/fortnight } }",
        "{ rules: { a: { limit: 5/1m } }, deadline: second }",
        "rules: { a: { limit: 5/1m, limits: [5/1m] } }",
        "rules: { a: { limit: 5/1m, algorithm: leaky } }",
        "rules: { a: { limit: 5/1m, headroom: 1.5 } }",
        "rules: { a: { limit: 5/1m, shadow: 'yes' } }",
        "rules: { a: { limit: 5/1m, overrides: { b: block } } }",
        "rules: { a: { limit: 5/1m, on_store_error: open } }",
        "rules: { a: { limt: 5/1m } }",
        "{ rules: { a: { limit: 5/1m } }, stoer: memory }",
        "{ rules: { a: { limit: 5/1m } }, store: disk }",
        "{ rules: { a: { limit: 5/1m } }, store: 'sqlite:' }",
        "{ rules: { a: { limit: 5/1m } }, store: 'redis:db' }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: disk } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', deadline: 20ms } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', key_prefix: 'a{' } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', key_template: '{rule}' } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', key_prefix: a, key_template: '{key}{rule}' } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', log_layout: list } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', connections: 0 } }",
        "{ rules: { a: { limit: 5/1m } }, store: { url: 'redis://db', deny_cache: 'no' } }",
        "rules: { a: { limit: 5/1m, take_over: us } }",
        "rate-limiter: { window-size: 60, max-requests: 5, on_store_error: open }",
        "{ rules: { a: { limit: 5/1m } }, store: 'redis+sentinel://db' }",
        "{ rules: { a: { limit: 5/1m } }, http: 8080 }",
        "{ rules: { a: { limit: 5/1m } }, deadline: 50 }",
        "{ rules: { a: { limit: 5/1m } }, headers: [draft-7] }",
        "{ rules: { a: { limit: 5/1m } }, bounds: { connections: 0 } }",
        "{ rules: { a: { limit: 5/1m } }, token: x }",
        "{ rules: { a: { limit: 5/1m } }, tokens: {} }",
        "{ rules: { a: { limit: 5/1m } }, tokens: { web: { sha256: 0123, scopes: [check] } } }",
        "{ rules: { a: { limit: 5/1m } }, tokens: { web: { sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef } } }",
        "{ rules: { a: { limit: 5/1m } }, tokens: { web: { sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef, scopes: [write] } } }",
        "rate-limiter: { window-size: 60 }",
    ];
    for (config, errors) in bad.iter().zip(schema_errors(&bad)) {
        assert!(!errors.is_empty(), "the schema accepts {config}");
        assert_eq!(validate(config).code, 2, "{config}");
    }
}
