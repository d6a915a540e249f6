//! A configuration that changes while the server runs.

use std::fs;

use serde_json::json;
use slidegate::time::{Clock, SystemClock};

use crate::program::file_of;
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const ASK: &str = r#"{"rule":"api","key":"alice"}"#;

fn limit(server: &ServerProcess) -> u64 {
    server.ask("POST", "/v1/peek", ASK).json()["limit"].as_u64().expect("a decision has a limit")
}

fn hash_of(metrics: &str) -> Option<String> {
    let (_, rest) = metrics.split_once("\nslidegate_config_info{hash=\"")?;
    rest.split_once('"').map(|(hash, _)| hash.to_owned()).filter(|hash| !hash.is_empty())
}

/// Polls until the server has noticed a change.
fn until(what: &str, holds: impl Fn() -> bool) {
    let clock = SystemClock::new();
    let given_up_us = clock.now_us() + 60_000_000;
    while !holds() {
        assert!(clock.now_us() < given_up_us, "{what} did not come about");
    }
}

#[test]
fn a_reload_keeps_the_used_units_and_a_bad_file_keeps_the_old_rules() {
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1h } }");
    let server = ServerProcess::start(&["--config", &config]);
    for _ in 0..3 {
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    }
    let before = hash_of(&server.ask("GET", "/metrics", "").body).expect("a file is in force");
    fs::write(&config, "rules: { api: { limit: 4/1h }, more: { limit: 1/1s } }").unwrap();
    // The file watch may have reloaded first.
    let reloaded = server.ask("POST", "/v1/admin/reload", "");
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    assert_eq!(limit(&server), 4);
    assert_eq!(server.ask("POST", "/v1/check", ASK).json()["remaining"], json!(0), "three were used before");
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 429);

    fs::write(&config, "rules: { api: { limit: banana } }").unwrap();
    let refused = server.ask("POST", "/v1/admin/reload", "");
    assert_eq!(
        (refused.status, &refused.json()["type"]),
        (422, &json!("urn:slidegate:problem:configuration"))
    );
    assert!(refused.body.contains("rules.yaml:1:24") && refused.body.contains("banana"), "{}", refused.body);
    assert_eq!(limit(&server), 4, "the old rules stay in force");
    let ready = server.ask("GET", "/readyz?verbose", "");
    assert!(ready.status == 200 && ready.body.contains("[!] config: "), "{}", ready.body);
    let metrics = server.ask("GET", "/metrics", "").body;
    assert!(hash_of(&metrics).is_some_and(|hash| hash != before), "another file is in force: {metrics}");
    let refusals = "slidegate_config_reloads_total{result=\"failed\"}";
    assert!(metrics.lines().any(|line| line.starts_with(refusals) && !line.ends_with(" 0")), "{metrics}");
}

#[test]
fn a_changed_file_and_sighup_reload() {
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1h } }");
    let server = ServerProcess::start(&["--config", &config]);
    fs::write(&config, "rules: { api: { limit: 6/1h } }").unwrap();
    until("the limit of the changed file", || limit(&server) == 6);
    fs::write(&config, "rules: { api: { limit: 7/1h } }").unwrap();
    server.signal("HUP");
    until("the limit after SIGHUP", || limit(&server) == 7);
}

/// The used units in Redis survive a reload, also for a server that has not reloaded.
#[test]
fn a_reload_on_redis_keeps_the_used_units() {
    let redis = RedisServer::start();
    let url = redis.url();
    let text = |rate: &str| format!("rules: {{ api: {{ limit: {rate}, on_store_error: deny }} }}");
    let config = file_of("rules.yaml", text("5/1h"));
    let args = ["--config", &config, "--store", &url];
    let server = ServerProcess::start(&args);
    for _ in 0..3 {
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    }
    // Another limit, another window, and both.
    for (rate, remaining) in [("4/1h", 1), ("7/2h", 4), ("3/30m", 0)] {
        fs::write(&config, text(rate)).unwrap();
        let reloaded = server.ask("POST", "/v1/admin/reload", "");
        assert_eq!(reloaded.status, 200, "{}", reloaded.body);
        let answer = server.ask("POST", "/v1/peek", ASK).json();
        assert_eq!(answer["remaining"], json!(remaining), "{rate}: {answer}");
    }
    let fresh = ServerProcess::start(&args);
    assert_eq!(fresh.ask("POST", "/v1/check", ASK).status, 429);
}

/// A valid file is retried until the store answers.
#[test]
fn a_reload_waits_for_a_store_that_does_not_answer() {
    let redis = RedisServer::start();
    let text = |rate: &str| format!("rules: {{ api: {{ limit: {rate}, on_store_error: allow }} }}");
    let config = file_of("rules.yaml", text("5/1h"));
    let server = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    redis.command(&["CLIENT", "PAUSE", "1000"]);
    fs::write(&config, text("7/2h")).unwrap();
    let waits = server.ask("POST", "/v1/admin/reload", "");
    assert_eq!(
        (waits.status, &waits.json()["type"]),
        (503, &json!("urn:slidegate:problem:store-migration")),
        "{}",
        waits.body
    );
    until("the limit after the store answers", || {
        server.ask("POST", "/v1/peek", ASK).json()["limit"] == json!(7)
    });
}

#[test]
fn without_a_file_there_is_nothing_to_reload() {
    let server = ServerProcess::start(&[]);
    let answer = server.ask("POST", "/v1/admin/reload", "");
    assert_eq!((answer.status, &answer.json()["type"]), (409, &json!("urn:slidegate:problem:no-file")));
}
