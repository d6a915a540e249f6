//! Overrides of a rule for single keys.

use serde_json::{Value, json};

use super::test_server::TestServer;

const RULES: &str = "
rules:
  api:
    limit: 2/1h
    overrides: { alice: 4/1h, mallory: blocked, ci-*: unlimited, '*-slow': 1/1h }
  wide: { limit: 100/1h }
";

fn statuses(server: &TestServer, key: &str) -> Vec<u16> {
    let body = json!({ "rule": "api", "key": key }).to_string();
    (0..5).map(|_| server.post("/v1/check", &body).status).collect()
}

#[test]
fn exact_keys_come_before_patterns_and_patterns_in_their_order() {
    let server = TestServer::start(RULES);
    assert_eq!(statuses(&server, "bob"), [200, 200, 429, 429, 429]);
    assert_eq!(statuses(&server, "alice"), [200, 200, 200, 200, 429]);
    assert_eq!(statuses(&server, "mallory"), [403; 5]);
    assert_eq!(statuses(&server, "ci-1-slow"), [200; 5], "the first pattern that matches");
    assert_eq!(statuses(&server, "my-slow"), [200, 429, 429, 429, 429]);
    let blocked = server.post("/v1/check", r#"{"rule":"api","key":"mallory"}"#);
    assert_eq!((blocked.problem().as_str(), blocked.header("retry-after")), ("blocked", None));
    let free = server.post("/v1/check", r#"{"rule":"api","key":"ci-1"}"#).json();
    assert_eq!((&free["limit"], &free["receipt"]), (&Value::Null, &Value::Null), "nothing is counted");
}

/// Beside a limited charge, an unlimited one is free, and a blocked one refuses both.
#[test]
fn an_override_applies_to_its_own_charge_among_several() {
    let server = TestServer::start(RULES);
    let both = |key: &str| {
        let body = json!({ "checks": [{ "rule": "wide", "key": "all" }, { "rule": "api", "key": key }] })
            .to_string();
        server.post("/v1/check", &body)
    };
    let used = || server.ask("GET", "/v1/keys/wide/all", "").json()["limits"][0]["used"].clone();
    assert_eq!((both("ci-1").status, used()), (200, json!(1)));
    assert_eq!((both("mallory").status, used()), (403, json!(1)));
}

/// An unlimited charge is checked like any other: its cost, the number of charges, and a verdict for each.
#[test]
fn unlimited_charges_are_validated_too() {
    let server = TestServer::start(RULES);
    let zero = server.post("/v1/check", r#"{"rule":"api","key":"ci-1","cost":0}"#);
    assert_eq!((zero.status, zero.problem().as_str()), (400, "malformed"));
    let several = |count: usize| {
        let checks: Vec<_> =
            (0..count).map(|number| json!({ "rule": "api", "key": format!("ci-{number}") })).collect();
        server.post("/v1/check", &json!({ "checks": checks }).to_string())
    };
    assert_eq!(several(65).status, 400);
    let both = several(2).json();
    assert_eq!(both["checks"][1]["key"], "ci-1", "{both}");
}

/// An explanation sums charges on one state, as a check does.
#[test]
fn an_explanation_of_several_charges_agrees_with_a_check() {
    let server = TestServer::start(RULES);
    let ask = |path: &str, costs: [u64; 2]| {
        let checks = costs.map(|cost| json!({ "rule": "api", "key": "alice", "cost": cost }));
        server.post(path, &json!({ "checks": checks }).to_string())
    };
    let explained = ask("/v1/explain", [3, 2]).json();
    assert_eq!(
        (&explained["allowed"], &explained["retry_after_ms"]),
        (&json!(false), &Value::Null),
        "{explained}"
    );
    assert_eq!(ask("/v1/check", [3, 2]).status, 422);
    assert_eq!(ask("/v1/explain", [2, 2]).json()["allowed"], json!(true));
    assert_eq!(ask("/v1/check", [2, 2]).status, 200);
}

#[test]
fn an_explanation_names_the_override() {
    let server = TestServer::start(RULES);
    for (key, means, by) in [
        ("bob", "limited", Value::Null),
        ("alice", "limited", json!("alice")),
        ("mallory", "blocked", json!("mallory")),
        ("ci-1-slow", "unlimited", json!("ci-*")),
        ("my-slow", "limited", json!("*-slow")),
    ] {
        let body = json!({ "rule": "api", "key": key }).to_string();
        let check = server.post("/v1/explain", &body).json()["checks"][0].clone();
        assert_eq!((&check["means"], &check["override"]), (&json!(means), &by), "{key}");
    }
}
