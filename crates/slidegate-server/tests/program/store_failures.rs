//! A store that fails is visible: in the log once per cause, in `/readyz` and in the metrics.

use serde_json::{Value, json};

use crate::program::file_of;
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const RULES: &str = "
# Long enough for a busy machine.
deadline: 5s
rules:
  strict: { limit: 50/10m }
  open: { limit: 50/10m, on_store_error: allow }
";

fn start(redis: &RedisServer) -> ServerProcess {
    let config = file_of("rules.yaml", RULES);
    ServerProcess::start(&["--config", &config, "--store", &redis.url()])
}

fn check(server: &ServerProcess, rule: &str, key: &str) -> u16 {
    let body = json!({ "rule": rule, "key": key }).to_string();
    server.ask("POST", "/v1/check", &body).status
}

/// Stops the server; returns its log lines about the store as (level, kind).
fn store_lines(server: ServerProcess) -> (Vec<[String; 2]>, String) {
    server.signal("TERM");
    let (_, log) = server.ended();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about_store = lines.filter(|line| line["kind"].is_string());
    (about_store.map(|line| [text(&line["level"]), text(&line["kind"])]).collect(), log)
}

fn metric(server: &ServerProcess, labels: &str) -> u64 {
    let text = server.ask("GET", "/metrics", "").body;
    let line = text.lines().find_map(|line| line.strip_prefix(labels));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

/// Every request was denied, or passed uncounted, without a line in the log and with `/readyz` saying ok.
#[test]
fn redis_without_memory_is_logged_once_and_not_ready_until_it_takes_writes() {
    let redis = RedisServer::start();
    let server = start(&redis);
    assert_eq!(check(&server, "strict", "alice"), 200);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    for number in 0..20 {
        assert_eq!(check(&server, "strict", &format!("user:{number}")), 503);
        assert_eq!(check(&server, "open", &format!("user:{number}")), 200);
    }
    let ready = server.ask("GET", "/readyz", "");
    assert_eq!((ready.status, ready.body.as_str()), (503, "not ready: store (out-of-memory)\n"));
    let verbose = server.ask("GET", "/readyz?verbose", "").body;
    assert!(
        verbose.contains("[-] store: out-of-memory: Redis is out of memory; raise maxmemory"),
        "{verbose}"
    );
    let failed = r#"slidegate_store_errors_total{store="redis",op="check",kind="out-of-memory"}"#;
    assert_eq!(metric(&server, failed), 40);
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let verbose = server.ask("GET", "/readyz?verbose", "");
    assert_eq!(verbose.status, 200, "{verbose:?}");
    // It failed a moment ago, which readiness does not depend on.
    assert!(verbose.body.contains("[!] store: out-of-memory: "), "{verbose:?}");
    assert_eq!(check(&server, "strict", "alice"), 200);
    let (lines, log) = store_lines(server);
    assert_eq!(lines, [["WARN", "out-of-memory"]], "{log}");
    assert!(log.contains("raise maxmemory"), "{log}");
}

/// One key must not take the server out of rotation, nor appear in the log.
#[test]
fn a_foreign_value_at_one_key_is_logged_without_the_key_and_leaves_the_server_ready() {
    let redis = RedisServer::start();
    let server = start(&redis);
    redis.command(&["RPUSH", "sg:{mallory}:strict", "x"]);
    redis.command(&["SET", "sg:{eve}:strict", "not ours"]);
    for _ in 0..10 {
        assert_eq!((check(&server, "strict", "mallory"), check(&server, "strict", "eve")), (503, 503));
        assert_eq!(check(&server, "strict", "alice"), 200);
    }
    let ready = server.ask("GET", "/readyz?verbose", "");
    assert_eq!(ready.status, 200, "{ready:?}");
    assert!(ready.body.starts_with("[+] serving: ok\n[+] store: ok\n"), "{ready:?}");
    assert!(
        ready.body.contains("[!] store: foreign-value: ") && ready.body.contains("(20 failures)"),
        "{ready:?}"
    );
    let (lines, log) = store_lines(server);
    assert_eq!(lines, [["WARN", "foreign-value"]], "{log}");
    assert!(!log.contains("mallory") && !log.contains("eve}"), "{log}");
}

/// Reads go on, so a read says nothing about the writes that fail.
#[test]
fn a_replica_is_not_ready_although_it_answers_reads() {
    let redis = RedisServer::start();
    let server = start(&redis);
    assert_eq!(check(&server, "strict", "alice"), 200);
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(check(&server, "strict", "alice"), 503);
    let read = server.ask("GET", "/v1/keys/strict/alice", "");
    let ready = server.ask("GET", "/readyz", "");
    assert_eq!(ready.status, 503, "{read:?} {ready:?}");
    assert!(ready.body.starts_with("not ready: store ("), "{ready:?}");
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    while server.ask("GET", "/readyz", "").status != 200 {
        std::thread::yield_now();
    }
    let (lines, log) = store_lines(server);
    assert!(lines.contains(&["WARN".into(), "read-only".into()]), "{log}");
    assert!(lines.len() <= 2, "one per cause: {log}");
}

#[test]
fn a_spent_memory_budget_is_logged_once_and_known_keys_go_on() {
    let config = file_of("rules.yaml", "rules: { daily: { limit: 5/1d } }\nmemory_budget: 1MiB\n");
    let server = ServerProcess::start(&["--config", &config]);
    let mut client = server.connect();
    let mut refused = 0;
    for batch in 0..2_000 {
        let charge = |number| json!({ "rule": "daily", "key": format!("user:{batch}:{number}") });
        let checks = json!({ "checks": (0..64).map(charge).collect::<Vec<_>>() }).to_string();
        let answers = client.ask("POST", "/v1/check-batch", &checks).json();
        let answers = answers["answers"].as_array().unwrap();
        refused += answers.iter().filter(|answer| answer["status"] == 503).count();
        if refused > 100 {
            break;
        }
    }
    assert!(refused > 100);
    assert_eq!(check(&server, "daily", "user:0:0"), 200);
    let ready = server.ask("GET", "/readyz?verbose", "");
    assert_eq!(ready.status, 200, "{ready:?}");
    assert!(
        ready.body.contains("[!] store: full: new keys find no room in memory; raise memory_budget"),
        "{ready:?}"
    );
    assert_eq!(store_lines(server).0, [["WARN", "full"]]);
}

/// Requests could invent rules without end, each with states of its own for up to 400 days.
#[test]
fn inline_rules_are_bounded_in_number_and_window() {
    let rules = "rules: { default: { limit: 5/1m } }\ninline_rules: true\nbounds: { inline_rules: 3 }\n";
    let config = file_of("rules.yaml", rules);
    let server = ServerProcess::start(&["--config", &config]);
    let ask = |path: &str, rate: &str| {
        let body = json!({ "rule": { "limit": rate }, "key": "alice" }).to_string();
        server.ask("POST", path, &body)
    };
    for rate in ["5/1m", "5/1h", "5/1d", "9/1m"] {
        assert_eq!(ask("/v1/check", rate).status, 200, "{rate}");
    }
    let refused = ask("/v1/check", "5/2h");
    assert_eq!((refused.status, refused.problem().as_str()), (400, "inline-bound"));
    assert!(refused.body.contains("raise bounds.inline_rules"), "{refused:?}");
    for path in ["/v1/check", "/v1/peek", "/v1/explain", "/v1/reset"] {
        let refused = ask(path, "5/32d");
        assert_eq!((refused.status, refused.problem().as_str()), (400, "inline-bound"), "{path}");
        assert!(refused.body.contains("raise bounds.inline_window"), "{path}: {refused:?}");
    }
    assert_eq!(ask("/v1/peek", "5/2h").status, 200, "it keeps nothing");
    assert_eq!(check(&server, "default", "alice"), 200);
    assert_eq!(ask("/v1/check", "5/1d").status, 200);
}
