//! The answers of every route to valid requests.

use serde_json::{Value, json};

use super::test_server::TestServer;

const RULES: &str = "
rules:
  api: { limit: 5/1m }
  search: { limits: [3/1m, 4/24h] }
  watched: { limit: 1/1m, shadow: true }
  default: { limit: 5/60s }
inline_rules: true
";

/// The answer with the fields that differ from run to run masked.
fn masked(mut json: Value) -> Value {
    for field in ["receipt", "reset_after_ms", "retry_after_ms"] {
        if let Some(value) = json.get_mut(field).filter(|value| !value.is_null()) {
            *value = json!("some");
        }
    }
    json
}

#[test]
fn a_check_answers_with_every_field_of_the_contract() {
    let server = TestServer::start(RULES);
    let body = r#"{"rule":"api","key":"alice","cost":4}"#;
    let answer = server.post("/v1/check", body);
    assert_eq!((answer.status, answer.header("content-type").as_deref()), (200, Some("application/json")));
    assert!(answer.header("date").is_some_and(|date| date.ends_with(" GMT")));
    let json = answer.json();
    assert!(json["receipt"].as_str().is_some_and(|receipt| receipt.len() > 40), "{json}");
    assert!(json["reset_after_ms"].as_u64().is_some_and(|ms| (1..=60_000).contains(&ms)), "{json}");
    assert_eq!(
        masked(json),
        json!({"allowed":true,"rule":"api","limit":5,"used":4,"remaining":1,"retry_after_ms":"some",
               "reset_after_ms":"some","degraded":false,"receipt":"some"})
    );
    let denied = server.post("/v1/check", body);
    assert_eq!(denied.status, 429);
    let json = denied.json();
    assert!(json["retry_after_ms"].as_u64().is_some_and(|ms| (1..=60_000).contains(&ms)), "{json}");
    assert_eq!(
        masked(json),
        json!({"allowed":false,"rule":"api","limit":5,"used":4,"remaining":1,"retry_after_ms":"some",
               "reset_after_ms":"some","degraded":false,"receipt":null})
    );
    assert_eq!(server.post("/v1/check", r#"{"rule":"api","key":"alice"}"#).json()["used"], 5, "cost 1");
}

#[test]
fn the_order_of_fields_is_that_of_the_contract() {
    let server = TestServer::start(RULES);
    let body = server.post("/v1/check", r#"{"rule":"api","key":"alice"}"#).body;
    let mut at = 0;
    for field in [
        "allowed",
        "rule",
        "limit",
        "used",
        "remaining",
        "retry_after_ms",
        "reset_after_ms",
        "degraded",
        "receipt",
    ] {
        let next = body.find(&format!("\"{field}\":")).unwrap_or_else(|| panic!("{field}: {body}"));
        assert!(next > at || at == 0, "{field}: {body}");
        at = next;
    }
}

#[test]
fn inline_rules_are_named_after_algorithm_and_window() {
    let server = TestServer::start(RULES);
    let body = r#"{"rule":{"limit":2,"window":"60s","algorithm":"sliding-counter"},"key":"alice"}"#;
    let json = server.post("/v1/check", body).json();
    assert_eq!((&json["rule"], &json["limit"]), (&json!("sliding-counter/60s"), &json!(2)));
    let body = r#"{"rule":{"limit":"2/minute","algorithm":"sliding-counter"},"key":"alice"}"#;
    let json = server.post("/v1/check", body).json();
    assert_eq!((&json["rule"], &json["used"]), (&json!("sliding-counter/60s"), &json!(2)), "the same rule");
}

#[test]
fn several_charges_show_every_verdict() {
    let server = TestServer::start(RULES);
    let body =
        r#"{"checks":[{"rule":"api","key":"alice","cost":2},{"rule":"search","key":"bob"}],"tag":"t"}"#;
    let json = server.post("/v1/check", body).json();
    assert_eq!(
        (&json["allowed"], &json["rule"], &json["remaining"]),
        (&json!(true), &json!("search"), &json!(2))
    );
    let checks = json["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2);
    assert_eq!(
        (&checks[0]["rule"], &checks[0]["key"], &checks[0]["used"]),
        (&json!("api"), &json!("alice"), &json!(2))
    );
    assert_eq!(
        (&checks[1]["rule"], &checks[1]["key"], &checks[1]["used"]),
        (&json!("search"), &json!("bob"), &json!(1))
    );
}

#[test]
fn a_shadow_rule_shows_the_verdict_that_would_have_refused() {
    let server = TestServer::start(RULES);
    let body = r#"{"rule":"watched","key":"alice"}"#;
    assert!(server.post("/v1/check", body).json().get("checks").is_none());
    let second = server.post("/v1/check", body);
    assert_eq!(second.status, 200);
    let json = second.json();
    assert_eq!((&json["allowed"], &json["receipt"]), (&json!(true), &Value::Null));
    assert_eq!((&json["checks"][0]["allowed"], &json["checks"][0]["shadow"]), (&json!(false), &json!(true)));
}

#[test]
fn a_peek_charges_nothing_and_is_always_200() {
    let server = TestServer::start(RULES);
    let body = r#"{"rule":"api","key":"alice","cost":5}"#;
    for _ in 0..3 {
        let peeked = server.post("/v1/peek", body);
        assert_eq!((peeked.status, &peeked.json()["allowed"]), (200, &json!(true)));
        assert_eq!((&peeked.json()["used"], &peeked.json()["receipt"]), (&json!(0), &Value::Null));
    }
    assert_eq!(server.post("/v1/check", body).status, 200);
    let peeked = server.post("/v1/peek", body);
    assert_eq!((peeked.status, &peeked.json()["allowed"]), (200, &json!(false)));
    assert!(peeked.header("retry-after").is_some());
}

#[test]
fn units_are_given_back_by_refund_settle_credit_and_reset() {
    let server = TestServer::start(RULES);
    let check = |cost: u64| {
        let answer = server.post("/v1/check", &format!(r#"{{"rule":"api","key":"alice","cost":{cost}}}"#));
        answer.json()["receipt"].as_str().unwrap_or_default().to_owned()
    };
    let used = || server.ask("GET", "/v1/keys/api/alice", "").json()["limits"][0]["used"].clone();
    let first = check(3);
    let refund = |receipt: &str| server.post("/v1/refund", &json!({ "receipt": receipt }).to_string());
    assert_eq!(refund(&first).body, r#"{"applied":true,"units":3}"#);
    assert_eq!(refund(&first).body, r#"{"applied":false,"units":0}"#, "the receipt is spent");
    let second = check(4);
    let settle = json!({ "receipt": second, "actual": 1 }).to_string();
    assert_eq!(server.post("/v1/settle", &settle).body, r#"{"applied":true,"units":3}"#);
    assert_eq!(used(), 1);
    check(2);
    let credit = r#"{"rule":"api","key":"alice","units":2}"#;
    assert_eq!(server.post("/v1/credit", credit).body, r#"{"applied":true,"units":2}"#);
    assert_eq!(used(), 1);
    let reset = r#"{"rule":"api","key":"alice"}"#;
    assert_eq!(server.post("/v1/reset", reset).json()["applied"], true);
    assert_eq!(used(), 0);
}

#[test]
fn requests_of_a_batch_are_decided_separately_and_answered_in_order() {
    let server = TestServer::start(RULES);
    let one = r#"{"rule":"api","key":"alice","cost":3}"#;
    let two = r#"{"checks":[{"rule":"api","key":"bob","cost":2},{"rule":"search","key":"bob","cost":2}]}"#;
    let unknown = r#"{"rule":"apy","key":"bob"}"#;
    let never = r#"{"checks":[{"rule":"api","key":"bob"},{"rule":"api","key":"eve","cost":6}]}"#;
    let batch = format!(r#"{{"checks":[{one},{one},{two},{unknown},{never},{one}]}}"#);
    let answer = server.post("/v1/check-batch", &batch);
    assert_eq!(answer.status, 200);
    let json = answer.json();
    let answers = json["answers"].as_array().unwrap();
    let allowed: Vec<_> = answers.iter().map(|answer| answer["allowed"].as_bool()).collect();
    assert_eq!(allowed, [Some(true), Some(false), Some(true), None, None, Some(false)]);
    assert_eq!((&answers[3]["status"], &answers[3]["field"]), (&json!(404), &json!("/checks/3/rule")));
    assert_eq!(
        (&answers[4]["status"], &answers[4]["field"]),
        (&json!(422), &json!("/checks/4/checks/1/cost"))
    );
    assert!(answers[0]["receipt"].is_string() && answers[2]["receipt"].is_string());
}

#[test]
fn an_explanation_shows_usage_and_charges_nothing() {
    let server = TestServer::start(RULES);
    server.post("/v1/check", r#"{"rule":"search","key":"alice","cost":3}"#);
    let explain = |cost: u64| {
        let body = format!(r#"{{"rule":"search","key":"alice","cost":{cost}}}"#);
        server.post("/v1/explain", &body).json()
    };
    for _ in 0..2 {
        let json = explain(1);
        assert_eq!(json["allowed"], false);
        assert!(json["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0), "{json}");
        let check = &json["checks"][0];
        assert_eq!((&check["means"], &check["override"]), (&json!("limited"), &json!(null)));
        assert_eq!((&check["limits"][0]["used"], &check["limits"][1]["remaining"]), (&json!(3), &json!(1)));
    }
    let never = explain(4);
    assert_eq!((&never["allowed"], &never["retry_after_ms"]), (&json!(false), &Value::Null));
    assert!(never["checks"][0]["why"].as_str().unwrap().ends_with("never"), "{never}");
}

#[test]
fn rules_and_keys_are_shown() {
    let server = TestServer::start(RULES);
    let json = server.ask("GET", "/v1/rules", "").json();
    let names: Vec<_> =
        json["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    assert_eq!((names, &json["inline_rules"]), (vec!["api", "default", "search", "watched"], &json!(true)));
    server.post("/v1/check", r#"{"rule":"api","key":"yt:quota/käse %"}"#);
    let path = "/v1/keys/api/yt:quota%2Fk%C3%A4se%20%25";
    let json = server.ask("GET", path, "").json();
    assert_eq!((&json["key"], &json["limits"][0]["used"]), (&json!("yt:quota/käse %"), &json!(1)));
    let slashed = server.ask("GET", "/v1/keys/api/yt:quota/k%c3%a4se%20%25", "").json();
    assert_eq!(
        (&slashed["key"], &slashed["limits"][0]["used"]),
        (&json["key"], &json!(1)),
        "slashes belong to the key"
    );
}

#[test]
fn a_rule_may_be_named_like_a_path() {
    let server = TestServer::start("{ rules: { /login: { limit: 5/1m }, login: { limit: 7/1m } } }");
    let charged = server.post("/v1/check", r#"{"rule":"/login","key":"a/b","cost":2}"#);
    assert_eq!((charged.status, &charged.json()["rule"]), (200, &json!("/login")));
    let used = server.ask("GET", "/v1/keys/%2Flogin/a/b", "").json();
    assert_eq!((&used["rule"], &used["key"]), (&json!("/login"), &json!("a/b")));
    assert_eq!(used["limits"][0]["used"], 2);
    assert_eq!(server.ask("GET", "/v1/keys/login/a/b", "").json()["limits"][0]["used"], 0);
    let metrics = server.ask("GET", "/metrics", "").body;
    assert!(metrics.contains(r#"slidegate_hits_total{rule="/login"} 2"#), "{metrics}");
}

/// Worked example 11.
#[test]
fn the_small_service_route_shows_the_count_before_each_call() {
    let server = TestServer::start(RULES);
    let answers: Vec<_> = (0..6).map(|_| server.ask("GET", "/v1/rlaas/alice", "")).collect();
    for (count, answer) in answers.iter().enumerate() {
        let allowed = count < 5;
        assert_eq!(answer.status, if allowed { 200 } else { 429 });
        assert_eq!(answer.body, format!(r#"{{"allowed":{allowed},"currentCount":{count},"ttl":60}}"#));
    }
    assert!(answers[5].header("retry-after").is_some());
}

/// Worked example 10.
#[test]
fn a_daily_quota_refuses_the_96th_call_with_the_exact_wait() {
    let rules = "rules: { yt-quota: { limit: 10000/24h, headroom: 0.05 } }";
    let server = TestServer::start(rules);
    let mut client = server.connect();
    let body = r#"{"rule":"yt-quota","key":"yt:quota:key1","cost":100}"#;
    for call in 1..=95 {
        let answer = client.ask("POST", "/v1/check", body);
        assert_eq!((answer.status, answer.json()["used"].as_u64()), (200, Some(call * 100)));
    }
    let refused = client.ask("POST", "/v1/check", body);
    let wait_ms = refused.json()["retry_after_ms"].as_u64().unwrap();
    assert_eq!((refused.status, &refused.json()["remaining"]), (429, &json!(0)));
    // The first call expires a day after it was made.
    assert!((86_400_000 - 600_000..=86_400_000).contains(&wait_ms), "{wait_ms}");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(seconds, wait_ms.div_ceil(1_000));
    let never = client.ask("POST", "/v1/check", &body.replace("100", "9501"));
    assert_eq!((never.status, never.problem().as_str()), (422, "never"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start(RULES);
    let mut client = server.connect();
    let body = br#"{"rule":"api","key":"alice"}"#;
    let check = super::client::request("POST", "/v1/check", &[("content-type", "application/json")], body);
    let rules = super::client::request("GET", "/v1/rules", &[], b"");
    client.send(&[&check[..], &check, &rules, &check].concat());
    let answers: Vec<_> = (0..4).map(|_| client.answer().unwrap()).collect();
    assert_eq!([0, 1, 3].map(|index| answers[index].json()["used"].as_u64()), [Some(1), Some(2), Some(3)]);
    assert!(answers[2].json()["rules"].is_array());
}

#[test]
fn a_request_may_arrive_in_two_packets() {
    let server = TestServer::start("rules: { api: { limit: 1000/1m } }");
    let body = br#"{"rule":"api","key":"alice"}"#;
    let check = super::client::request("POST", "/v1/check", &[("content-type", "application/json")], body);
    let mut client = server.connect();
    for cut in 1..check.len() {
        client.send(&check[..cut]);
        client.send(&check[cut..]);
        let used = client.answer().unwrap().json()["used"].as_u64();
        assert_eq!(used, Some(cut as u64), "cut at {cut}");
    }
    let chunked = b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"ru\r\n18\r\nle\":\"api\",\"key\":\"alice\"}\r\n0\r\n\r\n";
    client.send(chunked);
    assert_eq!(client.answer().unwrap().json()["used"].as_u64(), Some(check.len() as u64));
}
