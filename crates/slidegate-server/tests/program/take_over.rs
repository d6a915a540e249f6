//! The sets of another limiter in the Redis go on under a rule that says in which unit their times are.

use redis::Commands;
use serde_json::json;
use slidegate::time::{Clock, SystemClock};

use crate::program::{file_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const NAME: &str = "rlaas:rate_limit:alice";
const ASK: &str = r#"{"rule":"api","key":"alice"}"#;

/// A configuration whose rule has one more field.
fn config(redis: &RedisServer, field: &str) -> String {
    let text = format!(
        "rules: {{ api: {{ limit: 5/1h, on_store_error: deny{field} }} }}\n\
         deadline: 1m\n\
         store: {{ url: '{}', key_template: 'rlaas:rate_limit:{{key}}', log_layout: sorted-set }}\n",
        redis.url()
    );
    file_of("rules.yaml", text)
}

#[test]
fn a_rule_takes_over_the_sets_of_another_limiter() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    for (unit, units_per_second) in [("ms", 1_000), ("s", 1)] {
        redis.command(&["FLUSHALL"]);
        // Three requests within the last minute, as such limiters store them.
        let now_s = SystemClock::new().now_us() / 1_000_000;
        for ago_s in [50, 40, 30] {
            let score = (now_s - ago_s) * units_per_second;
            let added: u64 = connection.zadd(NAME, format!("request-{ago_s}"), score).unwrap();
            assert_eq!(added, 1);
        }

        let plain = ServerProcess::start(&["--config", &config(&redis, "")]);
        let refused = plain.ask("POST", "/v1/check", ASK);
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(refused.body.contains("take_over"), "the remedy is named: {}", refused.body);
        let left: u64 = connection.zcard(NAME).unwrap();
        assert_eq!(left, 3, "it stays unchanged");
        drop(plain);

        let file = config(&redis, &format!(", take_over: {unit}"));
        let server = ServerProcess::start(&["--config", &file]);
        assert_eq!(server.ask("POST", "/v1/check", ASK).json()["remaining"], json!(1), "{unit}");
        let checked = run(&["check", "alice", "--rule", "api", "--config", &file], "");
        assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{}", checked.out);
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 429, "{unit}");
        let members: Vec<(String, f64)> = connection.zrange_withscores(NAME, 0, -1).unwrap();
        assert_eq!(members.len(), 5);
        assert!(members.iter().all(|(_, score)| *score > 1e15), "in microseconds: {members:?}");
        assert_eq!(members[0].0, "request-50", "members keep their names");
    }
}
