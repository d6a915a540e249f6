//! Live changes of rules whose keys are in use.

use serde_json::{Value, json};

use crate::program::replay;

const ALGORITHMS: [&str; 6] =
    ["sliding-log", "compact-log", "sliding-buckets", "sliding-counter", "fixed-window", "gcra"];
/// The start of a minute.
const NOW_US: u64 = 1_745_000_100_000_000;

fn check(cost: u64) -> String {
    json!({ "at_us": NOW_US, "op": "check", "charges": [{ "rule": "api", "key": "alice", "cost": cost }] })
        .to_string()
}

fn change(limit: &str) -> String {
    json!({ "at_us": NOW_US, "op": "limit", "rule": "api", "limit": limit }).to_string()
}

fn inspect() -> String {
    json!({ "at_us": NOW_US, "op": "inspect", "rule": "api", "key": "alice" }).to_string()
}

fn answers(algorithm: &str, lines: &[String]) -> Vec<Value> {
    let replayed = replay(&format!("rules:\n  api: {{ limit: 5/1m, algorithm: {algorithm} }}\n"), lines);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    replayed.answers()
}

#[test]
fn a_changed_limit_keeps_the_used_units() {
    for algorithm in ALGORITHMS {
        let lines = [check(5), check(1), change("7/1m"), check(1), change("3/1m"), inspect(), check(1)];
        let answers = answers(algorithm, &lines);
        assert_eq!(answers[1]["allowed"], false, "{algorithm}");
        assert_eq!(answers[2], json!({ "line": 3, "applied": true, "rule": "api", "limits": ["7/1m"] }));
        assert_eq!(
            (&answers[3]["allowed"], &answers[3]["limit"], &answers[3]["used"]),
            (&json!(true), &json!(7), &json!(6))
        );
        let usage = &answers[5]["limits"][0];
        assert_eq!(
            (&usage["limit"], &usage["used"], &usage["remaining"]),
            (&json!(3), &json!(6), &json!(0)),
            "{algorithm}"
        );
        assert_eq!(answers[6]["allowed"], false, "{algorithm}");
    }
}

#[test]
fn a_changed_window_starts_with_the_used_units() {
    for algorithm in ALGORITHMS {
        let answers = answers(algorithm, &[check(4), change("5/10m"), inspect(), check(2), check(1)]);
        let usage = &answers[2]["limits"][0];
        assert_eq!((&usage["window_us"], &usage["used"]), (&json!(600_000_000), &json!(4)), "{algorithm}");
        assert_eq!(
            (&answers[3]["allowed"], &answers[4]["allowed"]),
            (&json!(false), &json!(true)),
            "{algorithm}"
        );
    }
}

#[test]
fn one_limit_may_become_several() {
    let change =
        json!({ "at_us": NOW_US, "op": "limit", "rule": "api", "limits": ["2/1s", "60/1h", "5/60s"] });
    let answers = answers("sliding-log", &[check(3), change.to_string(), inspect(), check(1)]);
    assert_eq!(answers[1]["limits"], json!(["2/1s", "60/1h", "5/1m"]));
    let used: Vec<_> =
        answers[2]["limits"].as_array().unwrap().iter().map(|limit| limit["used"].clone()).collect();
    assert_eq!(used, [3, 3, 3]);
    assert_eq!((&answers[3]["allowed"], &answers[3]["retry_after_us"]), (&json!(false), &json!(1_000_000)));
}

#[test]
fn headroom_stays_with_the_rule() {
    let lines = [check(4), change("10/1m"), inspect()];
    let replayed = replay("rules:\n  api: { limit: 5/1m, headroom: 0.2 }\n", &lines);
    let answers = replayed.answers();
    assert_eq!((&answers[0]["limit"], &answers[2]["limits"][0]["limit"]), (&json!(4), &json!(8)));
    assert_eq!(answers[1]["limits"], json!(["10/1m"]), "a change is answered as it was written");
}

#[test]
fn a_refund_after_a_change_gives_back_at_most_the_cost() {
    for algorithm in ALGORITHMS {
        let refund = json!({ "at_us": NOW_US, "op": "refund", "receipt": "#1" }).to_string();
        let answers = answers(algorithm, &[check(4), change("5/10m"), refund, inspect()]);
        let given = answers[2]["units"].as_u64().unwrap();
        let used = answers[3]["limits"][0]["used"].as_u64().unwrap();
        assert_eq!(given + used, 4, "{algorithm}");
    }
}
