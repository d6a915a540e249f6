//! Servers that share a Redis, and outages of the Redis.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use slidegate::time::{Clock, SystemClock};

use super::test_server::TestServer;

#[path = "../../../../slidegate-redis/tests/store/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
pub(super) mod redis_server;

use redis_server::RedisServer;

const RULES: &str = "
rules:
  strict: { limit: 50/10m }
  open: { limit: 50/10m, on_store_error: allow }
";

fn start(redis: &RedisServer, deadline: Duration) -> TestServer {
    TestServer::start_with(RULES, |settings| {
        settings.store = redis.url().parse().unwrap();
        settings.deadline = deadline;
    })
}

/// Long enough for a busy machine.
const LONG_DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn two_servers_share_counts_and_receipts() {
    let redis = RedisServer::start();
    let servers = [start(&redis, LONG_DEADLINE), start(&redis, LONG_DEADLINE)];
    let check = r#"{"rule":"strict","key":"alice"}"#;
    let allowed: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let server = &servers[caller % 2];
                scope.spawn(move || {
                    let mut client = server.connect();
                    (0..20).filter(|_| client.ask("POST", "/v1/check", check).status == 200).count()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(allowed, 50);
    let [here, there] = &servers;
    let key = |server: &TestServer| {
        server.ask("GET", "/v1/keys/strict/alice", "").json()["limits"][0]["used"].clone()
    };
    assert_eq!((key(here), key(there)), (json!(50), json!(50)));
    here.post("/v1/reset", check);
    let receipt = here.post("/v1/check", check).json()["receipt"].clone();
    let refund = json!({ "receipt": receipt }).to_string();
    assert_eq!(there.post("/v1/refund", &refund).body, r#"{"applied":true,"units":1}"#);
    assert_eq!(here.post("/v1/refund", &refund).body, r#"{"applied":false,"units":0}"#, "spent for both");
}

/// Other limiters hung here: the deadline must fire, and the outage policy of the rule must answer.
#[test]
fn the_outage_policy_answers_within_the_deadline_when_the_store_stalls() {
    let redis = RedisServer::start();
    let server = start(&redis, Duration::from_millis(50));
    let mut client = server.connect();
    let check = |rule: &str, policy: &str| {
        format!(
            r#"{{"rule":"{rule}","key":"alice"{}}}"#,
            if policy.is_empty() { String::new() } else { format!(r#","on_store_error":"{policy}""#) }
        )
    };
    redis.command(&["CLIENT", "PAUSE", "20000", "WRITE"]);
    let clock = SystemClock::new();
    for (path, rule, policy, passes) in [
        ("/v1/check", "strict", "", false),
        ("/v1/check", "open", "", true),
        ("/v1/check", "strict", "allow", true),
        ("/v1/check", "open", "deny", false),
        ("/v1/peek", "strict", "", false),
        ("/v1/peek", "open", "", true),
    ] {
        let before_us = clock.now_us();
        let answer = client.ask("POST", path, &check(rule, policy));
        let took_us = clock.now_us() - before_us;
        // The store stalls for 20 s: an answer that waits for it takes as long.
        assert!(took_us < 10_000_000, "{path} {rule} {policy}: {took_us} us");
        let json = answer.json();
        assert_eq!(json["degraded"], true, "{json}");
        if passes {
            assert_eq!((answer.status, &json["allowed"], &json["rule"]), (200, &json!(true), &json!(rule)));
            for field in ["limit", "used", "remaining", "retry_after_ms", "reset_after_ms", "receipt"] {
                assert_eq!(json[field], Value::Null, "{field}: {json}");
            }
            assert!(answer.header("ratelimit").is_none(), "nothing is known");
        } else {
            assert_eq!((answer.status, answer.problem().as_str()), (503, "store"));
            assert!(json["maybe_charged"].is_boolean(), "{json}");
        }
    }
    let both = r#"{"checks":[{"rule":"open","key":"a"},{"rule":"strict","key":"a"}]}"#;
    assert_eq!(client.ask("POST", "/v1/check", both).status, 503, "the strictest rule answers");
    let batch = format!(r#"{{"checks":[{},{}]}}"#, check("open", ""), check("strict", ""));
    let answers = client.ask("POST", "/v1/check-batch", &batch).json();
    assert_eq!(
        (&answers["answers"][0]["degraded"], &answers["answers"][1]["status"]),
        (&json!(true), &json!(503))
    );
    redis.command(&["CLIENT", "UNPAUSE"]);
    // Once the store answers again, it decides again.
    while client.ask("POST", "/v1/check", &check("strict", "")).status != 200 {
        thread::yield_now();
    }
}

/// The share of the limit is spent by what the store has admitted, and its numbers are shown.
#[test]
fn local_limits_answer_with_their_own_numbers() {
    let mut redis = RedisServer::start();
    let rules = "rules: { share: { limit: 20/10m, on_store_error: { local: 0.25 } } }";
    let server = TestServer::start_with(rules, |settings| {
        settings.store = redis.url().parse().unwrap();
        settings.deadline = LONG_DEADLINE;
    });
    let mut client = server.connect();
    let mut check = |cost: u64| {
        let body = json!({ "rule": "share", "key": "alice", "cost": cost }).to_string();
        client.ask("POST", "/v1/check", &body)
    };
    for used in 1..=3 {
        assert_eq!(check(1).json()["used"], used);
    }
    redis.kill();
    for used in 4..=5 {
        let answer = check(1);
        let json = answer.json();
        assert_eq!((answer.status, &json["degraded"], &json["receipt"]), (200, &json!(true), &Value::Null));
        assert_eq!(
            (&json["limit"], &json["used"], &json["remaining"]),
            (&json!(5), &json!(used), &json!(5 - used))
        );
        assert_eq!(answer.header("ratelimit"), Some(format!("\"share\";r={};t=600", 5 - used)), "{answer:?}");
    }
    let denied = check(1);
    let wait_ms = denied.json()["retry_after_ms"].as_u64().unwrap();
    assert_eq!((denied.status, &denied.json()["degraded"]), (429, &json!(true)));
    assert!((1..=600_000).contains(&wait_ms), "{denied:?}");
    let seconds = wait_ms.div_ceil(1_000).to_string();
    assert_eq!(denied.header("retry-after"), Some(seconds), "{denied:?}");
    // Waiting does not help a cost above the share.
    let never = check(6);
    assert_eq!((never.status, &never.json()["retry_after_ms"]), (429, &Value::Null), "{never:?}");
    assert_eq!(never.header("retry-after").as_deref(), Some("1"));
    assert_eq!(check(21).status, 422, "a mistake is none of the policy's");
}

#[test]
fn the_outage_policy_answers_when_the_store_is_gone() {
    let mut redis = RedisServer::start();
    let server = start(&redis, Duration::from_millis(50));
    redis.kill();
    let open = server.post("/v1/check", r#"{"rule":"open","key":"alice"}"#);
    assert_eq!((open.status, &open.json()["degraded"]), (200, &json!(true)));
    let strict = server.post("/v1/check", r#"{"rule":"strict","key":"alice"}"#);
    assert_eq!((strict.status, strict.problem().as_str()), (503, "store"));
    for (method, path, body) in [
        ("POST", "/v1/credit", r#"{"rule":"open","key":"alice","units":1}"#),
        ("POST", "/v1/reset", r#"{"rule":"open","key":"alice"}"#),
        ("POST", "/v1/explain", r#"{"rule":"open","key":"alice"}"#),
        ("GET", "/v1/keys/open/alice", ""),
    ] {
        assert_eq!(server.ask(method, path, body).status, 503, "{path}");
    }
}
