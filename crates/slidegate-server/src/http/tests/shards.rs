//! Rules with shards, over HTTP on a Redis and in memory.

use serde_json::json;

use super::shared_store::redis_server::RedisServer;
use super::test_server::TestServer;

const RULES: &str = "rules: { hot: { limit: 40/10m, shards: 4 } }";

#[test]
fn on_a_redis_a_key_is_split() {
    let redis = RedisServer::start();
    let server = TestServer::start_with(RULES, |settings| {
        settings.store = redis.url().parse().unwrap();
        settings.deadline = std::time::Duration::from_secs(60);
    });
    let mut receipts = Vec::new();
    for _ in 0..6 {
        let answer = server.post("/v1/check", r#"{"rule":"hot","key":"alice","cost":3}"#).json();
        assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(true), &json!(10)), "the shard's numbers");
        receipts.push(answer["receipt"].clone());
    }
    let key = server.ask("GET", "/v1/keys/hot/alice", "").json();
    assert_eq!((&key["limits"][0]["used"], &key["limits"][0]["limit"]), (&json!(18), &json!(40)));
    let refund = json!({ "receipt": receipts[0] }).to_string();
    assert_eq!(server.post("/v1/refund", &refund).body, r#"{"applied":true,"units":3}"#);

    let never = server.post("/v1/check", r#"{"rule":"hot","key":"alice","cost":11}"#);
    assert_eq!((never.status, never.problem().as_str()), (422, "never"));
    assert!(never.body.contains("whose limit is 10 for each of its 4 shards"), "{}", never.body);
    let explained = server.post("/v1/explain", r#"{"rule":"hot","key":"alice","cost":11}"#).json();
    assert_eq!(explained["checks"][0]["why"], "11 units are more than the limit of 10: never");

    let reset = server.post("/v1/reset", r#"{"rule":"hot","key":"alice"}"#);
    assert_eq!(reset.body, r#"{"applied":true,"units":15}"#);
    assert_eq!(server.ask("GET", "/v1/rules", "").json()["rules"][0]["shards"], 4);
}

#[test]
fn in_memory_the_setting_has_no_effect() {
    let server = TestServer::start(RULES);
    let answer = server.post("/v1/check", r#"{"rule":"hot","key":"alice","cost":40}"#).json();
    assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(true), &json!(40)));
}
