//! Overrides in replays: a trace has the same answers as a server.

use serde_json::{Value, json};

use crate::program::{file_of, replay, run};
use crate::server_process::ServerProcess;

const RULES: &str = r#"
inline_rules: true
rules:
  api:
    limit: 2/1h
    overrides: { alice: 4/1h, bob: [3/1h, 5/1d], mallory: blocked, ci-*: unlimited, "*-slow": 1/1h }
  wide: { limit: 100/1h, algorithm: fixed-window }
"#;

/// The fields that both answers have: the decision, its numbers, and every verdict.
fn comparable(answer: &Value) -> Value {
    let numbers = |of: &Value| json!([of["allowed"], of["rule"], of["used"], of["remaining"]]);
    let checks = answer["checks"]
        .as_array()
        .map(|checks| checks.iter().map(|check| json!([check["key"], numbers(check)])).collect::<Vec<_>>());
    json!([numbers(answer), answer["limit"], checks])
}

/// The kind of an answer.
fn kind(answer: &Value) -> &'static str {
    match (&answer["allowed"], &answer["limit"]) {
        (Value::Null, _) => "blocked",
        (_, Value::Null) => "unlimited",
        _ => "limited",
    }
}

fn charge(rule: &str, key: &str, cost: u64) -> Value {
    json!({ "rule": rule, "key": key, "cost": cost })
}

/// Requests in a fixed, shuffled order: every key several times, alone and with others.
fn requests() -> Vec<(&'static str, Vec<Value>)> {
    const KEYS: [&str; 7] = ["alice", "carol", "ci-1", "mallory", "my-slow", "bob", "ci-2-slow"];
    let inline = json!({ "rule": { "limit": 3, "window": "1h" }, "key": "alice", "cost": 1 });
    let mut requests = Vec::new();
    for number in 0..60 {
        let key = |offset: usize| KEYS[(number * 5 + offset * offset) % KEYS.len()];
        let charges = match number % 6 {
            0 => vec![charge("wide", "all", 1), charge("api", key(1), 1)],
            1 => vec![charge("api", key(2), 1), charge("api", key(3), 1), charge("wide", key(4), 2)],
            2 => vec![inline.clone(), charge("api", key(1), 1)],
            _ => vec![charge("api", key(0), 1)],
        };
        requests.push((if number % 7 == 6 { "peek" } else { "check" }, charges));
    }
    requests
}

fn ask(server: &ServerProcess, verb: &str, charges: &[Value]) -> Value {
    let body = if let [charge] = charges { charge.clone() } else { json!({ "checks": charges }) };
    server.ask("POST", &format!("/v1/{verb}"), &body.to_string()).json()
}

#[test]
fn a_replay_has_the_answers_of_a_server() {
    let file = file_of("rules.yaml", RULES);
    let server = ServerProcess::start(&["--config", &file]);
    let requests = requests();
    let lines: Vec<String> = requests
        .iter()
        .zip(1_745_000_145_000_000_u64..)
        .map(|((op, charges), at_us)| json!({ "at_us": at_us, "op": op, "charges": charges }).to_string())
        .collect();
    let replayed = run(&["replay", "--config", &file], lines.join("\n"));
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""), "a blocked key is an answer");
    let (mut kinds, mut verdicts) = (Vec::new(), Vec::new());
    for ((verb, charges), mut replayed) in requests.iter().zip(replayed.answers()) {
        let mut over_http = ask(&server, verb, charges);
        assert_eq!(kind(&replayed), kind(&over_http), "{verb} {charges:?}: {replayed} {over_http}");
        if kind(&replayed) == "blocked" {
            assert_eq!(replayed["error"], "blocked", "{replayed}");
            assert!(over_http["type"].as_str().is_some_and(|name| name.ends_with("blocked")), "{over_http}");
        } else if charges.len() == 1 {
            // A server shows a single verdict only if it differs from the answer.
            for answer in [&mut replayed, &mut over_http] {
                answer.as_object_mut().unwrap().remove("checks");
            }
        }
        assert_eq!(comparable(&replayed), comparable(&over_http), "{verb} {charges:?}");
        kinds.push(kind(&replayed));
        verdicts.push(replayed["allowed"].clone());
    }
    for expected in ["limited", "unlimited", "blocked"] {
        assert!(kinds.contains(&expected), "no answer is {expected}");
    }
    assert!(verdicts.contains(&json!(true)) && verdicts.contains(&json!(false)), "{verdicts:?}");
}

#[test]
fn the_answer_for_a_blocked_key_names_the_charge() {
    let line = |charges: Value| json!({ "at_us": 1, "op": "check", "charges": charges }).to_string();
    let lines = [
        line(json!([charge("api", "mallory", 1)])),
        line(json!([charge("api", "carol", 1), charge("api", "mallory", 1)])),
        json!({ "at_us": 1, "op": "inspect", "rule": "api", "key": "carol" }).to_string(),
        line(json!([charge("api", "ci-1", 1)])),
        json!({ "at_us": 2, "op": "refund", "receipt": "#1" }).to_string(),
        json!({ "at_us": 2, "op": "refund", "receipt": "#4" }).to_string(),
        line(json!([charge("api", "ci-1", 0)])).replace("\"at_us\":1", "\"at_us\":2"),
    ];
    let run = replay(RULES, &lines);
    let answers = run.answers();
    let text = "key: `mallory` is blocked by an override of rule `api`; remove the override";
    assert_eq!(answers[0], json!({ "line": 1, "error": "blocked", "message": text }));
    assert_eq!(answers[1]["message"], format!("charges[1].{text}"));
    assert_eq!(answers[2]["limits"][0]["used"], 0, "nothing was charged beside it");
    let free = json!({ "rule": "api", "key": "ci-1", "allowed": true, "used": null, "remaining": null, "retry_after_us": 0 });
    assert_eq!(
        answers[3],
        json!({ "line": 4, "allowed": true, "rule": "api", "limit": null, "used": null, "remaining": null,
                "retry_after_us": 0, "reset_after_us": 0, "checks": [free] })
    );
    for (line, fate) in [(1, "was blocked by an override"), (4, "overrides make its keys unlimited")] {
        let message = answers[if line == 1 { 4 } else { 5 }]["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("receipt: line {line} ")) && message.contains(fate),
            "{message}"
        );
    }
    assert_eq!(answers[6]["error"], "cost", "the cost of an unlimited charge is checked");
    assert_eq!((run.code, run.err.contains("3 of 7 lines")), (2, true), "{}", run.err);
}

/// A change of the rule keeps the units that a key used in the longer window of its override.
#[test]
fn a_changed_limit_keeps_the_used_units_of_an_override() {
    let at = |at_us: u64, rest: &str| format!("{{\"at_us\":{at_us},{rest}}}");
    let check = r#""op":"check","charges":[{"rule":"api","key":"alice"}]"#;
    let hour_us = 3_600_000_000;
    let lines = [
        at(1, check),
        at(2, r#""op":"limit","rule":"api","limit":"7/1s""#),
        at(hour_us, check),
        at(hour_us, r#""op":"inspect","rule":"api","key":"alice""#),
    ];
    let answers = replay("rules: { api: { limit: 2/1m, overrides: { alice: 4/1d } } }", &lines).answers();
    assert_eq!((&answers[0]["used"], &answers[2]["used"]), (&json!(1), &json!(2)), "{answers:?}");
    assert_eq!((&answers[3]["limits"][0]["limit"], &answers[3]["limits"][0]["used"]), (&json!(4), &json!(2)));
}
