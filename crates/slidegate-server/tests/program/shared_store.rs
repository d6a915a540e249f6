//! The commands on a shared Redis.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;
use serde_json::Value as Json;

use crate::program::{Run, file_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const CONFIG: &str = "rules: { api: { limit: 5/1m }, open: { limit: 5/1m, on_store_error: allow } }";
/// Nothing listens on this port: connecting is refused at once.
const UNREACHABLE: &str = "redis://127.0.0.1:1";

fn check(args: &[&str]) -> Run {
    run(&[&["check"], args].concat(), "")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples")
}

#[test]
fn worked_examples_have_the_same_answers_on_redis() {
    let server = RedisServer::start();
    let files =
        fs::read_dir(examples()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let traces: BTreeSet<String> =
        files.filter_map(|name| name.strip_suffix(".jsonl").map(ToOwned::to_owned)).collect();
    assert_eq!(traces.len(), 11, "{traces:?}");
    for name in traces {
        server.command(&["FLUSHALL"]);
        let path = |ending: &str| examples().join(format!("{name}{ending}")).display().to_string();
        let (config, trace, url) = (path(".yaml"), path(".jsonl"), server.url());
        let mut args = vec!["replay", trace.as_str(), "--store", url.as_str()];
        if Path::new(&config).exists() {
            args.extend(["--config", config.as_str()]);
        }
        let Run { code, out, err } = run(&args, "");
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        assert_eq!(out, fs::read_to_string(path(".out")).unwrap(), "{name}");
    }
}

#[test]
fn the_exit_status_is_the_answer() {
    let server = RedisServer::start();
    let url = server.url();
    let args = ["yt:quota", "--limit", "5/1m", "--cost", "2", "--store", &url];
    for left in ["3", "1"] {
        let Run { code, out, err } = check(&args);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert_eq!(out, format!("allowed: {left} of 5 units left (rule sliding-log/60s)\n"));
    }
    let Run { code, out, err } = check(&args);
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.starts_with("denied: 1 of 5 units left, retry in "), "{out}");
    assert!(out.ends_with("s (rule sliding-log/60s)\n"), "{out}");
    let last = check(&["yt:quota", "--limit", "5/1m", "--store", &url, "--json"]);
    let answer: Json = serde_json::from_str(&last.out).unwrap();
    assert_eq!((last.code, answer["allowed"].as_bool(), answer["used"].as_u64()), (0, Some(true), Some(5)));
    assert_eq!((answer["remaining"].as_u64(), answer["degraded"].as_bool()), (Some(0), Some(false)));
}

#[test]
fn a_printed_script_and_the_command_share_counts() {
    let server = RedisServer::start();
    let printed = run(&["redis", "script", "check"], "");
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let mut connection = server.connection();
    let mut eval = redis::cmd("EVAL");
    eval.arg(&printed.out).arg(1).arg("sg:{alice}:api").arg(&["", "7"]);
    let reply: Vec<Value> = eval.arg(&["2", "sliding-log", "5", "60000000"]).query(&mut connection).unwrap();
    assert_eq!(reply[0], Value::Int(1), "allowed");
    assert_eq!(reply[1], Value::Int(2), "units in use");
    let config = file_of("rules.yaml", CONFIG);
    let checked = check(&["alice", "--rule", "api", "--config", &config, "--store", &server.url()]);
    assert_eq!((checked.code, checked.out.as_str()), (0, "allowed: 2 of 5 units left (rule api)\n"));
}

#[test]
fn a_printed_short_script_and_the_command_share_counts() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let args = ["bob", "--limit", "5/1m", "--algorithm", "gcra", "--cost", "2", "--store", &server.url()];
    assert_eq!(check(&args).out, "allowed: 3 of 5 units left (rule gcra/60s)\n");
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    for (verb, used) in [("peek", 2), ("check", 4)] {
        let printed = run(&["redis", "script", verb, "--algorithm", "gcra"], "");
        assert!(printed.code == 0 && printed.out.lines().count() <= 150, "{}", printed.err);
        let mut eval = redis::cmd("EVAL");
        eval.arg(&printed.out).arg(1).arg(&keys[0]).arg(&["", "7"]);
        let reply: Vec<Value> = eval.arg(&["2", "gcra", "5", "60000000"]).query(&mut connection).unwrap();
        assert_eq!(reply[..2], [Value::Int(1), Value::Int(used)], "{verb}");
    }
}

#[test]
fn an_unknown_script_gets_a_suggestion() {
    let Run { code, out, err } = run(&["redis", "script", "chekc"], "");
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err, "error: script: `chekc` is unknown; did you mean `check`?\n");
}

#[test]
fn the_outage_policy_answers_if_redis_does_not() {
    let config = file_of("rules.yaml", CONFIG);
    let ask = |more: &[&str]| check(&[&["alice", "--store", UNREACHABLE], more].concat());
    let refused = ask(&["--limit", "5/1m"]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert!(refused.err.starts_with("error: "), "{}", refused.err);
    for more in
        [&["--limit", "5/1m", "--on-store-error", "allow"][..], &["--rule", "open", "--config", &config]]
    {
        let passed = ask(more);
        assert_eq!(passed.code, 0, "{}", passed.err);
        assert!(passed.out.starts_with("allowed: degraded"), "{}", passed.out);
        assert!(passed.err.starts_with("degraded: "), "{}", passed.err);
    }
    let strict = ask(&["--rule", "open", "--config", &config, "--on-store-error", "deny"]);
    assert_eq!((strict.code, strict.out.as_str()), (2, ""));
}

#[test]
fn mistakes_are_reported_and_charge_nothing() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let url = server.url();
    for (args, expected) in [
        (&["a", "--limit", "5/1m", "--store", url.as_str()][..], "password"),
        (&["a", "--limit", "5/1m", "--store", "memory"], "memory forgets everything"),
        (&["a", "--limit", "5/1m", "--store", "disk"], "`disk` is not available"),
        (&["a", "--limit", "5/1m", "--cost", "6", "--store", UNREACHABLE], "never"),
        (&["a", "--limit", "5/1m", "--cost", "0", "--store", UNREACHABLE], "cost"),
        (&["a", "--limit", "banana", "--store", UNREACHABLE], "banana"),
        (&["", "--limit", "5/1m", "--store", UNREACHABLE], "key"),
    ] {
        let Run { code, out, err } = check(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.to_lowercase().contains(expected), "{args:?}: {err}");
        assert!(!err.contains("hunter2"), "{err}");
    }
}

/// In real time, so it asserts only what does not depend on the clock.
#[test]
fn the_live_demo_runs_on_redis() {
    let server = RedisServer::start();
    let Run { code, out, err } = run(&["demo", "--live", "--store", &server.url()], "");
    assert_eq!(code, 0, "{err}");
    for name in ["sliding-log", "compact-log", "sliding-buckets"] {
        assert!(out.contains(&format!("{name}  accepted 50 of 100")), "{out}");
    }
    assert!(out.contains("fixed-window  accepted "), "{out}");
}

#[test]
fn overrides_apply_to_the_command() {
    let redis = RedisServer::start();
    let rule = "{ limit: 1/1h, overrides: { alice: 2/1h, 'ci-*': unlimited, mallory: blocked } }";
    let file = file_of("overrides.yaml", format!("rules: {{ api: {rule} }}\nstore: {}\n", redis.url()));
    let check = |key: &str| run(&["check", key, "--rule", "api", "--config", &file], "");
    assert_eq!(["alice", "alice", "alice"].map(|key| check(key).code), [0, 0, 1]);
    assert_eq!(["bob", "bob"].map(|key| check(key).code), [0, 1]);
    assert_eq!(check("ci-7").out, "allowed: the key is unlimited (rule api)\n");
    let blocked = check("mallory");
    assert_eq!(blocked.code, 1);
    assert_eq!(blocked.out, "denied: the key is blocked, waiting does not help (rule api)\n");
}

#[test]
fn a_lost_redis_is_named_once_in_every_error() {
    let mut redis = RedisServer::start();
    let config = file_of("rules.yaml", CONFIG);
    let server = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    redis.kill();
    let why = "no connection to Redis at 127.0.0.1:";
    // The first calls find out that the connection is lost.
    let mut answers = (0..100).map(|_| server.ask("POST", "/v1/check", r#"{"rule":"api","key":"alice"}"#));
    let answer = answers.find(|answer| answer.body.contains(why)).expect("it tries to connect again");
    let asked = check(&["alice", "--rule", "api", "--store", &format!("http://{}", server.address)]);
    for text in [answer.json()["detail"].as_str().expect("a text"), &asked.err] {
        assert_eq!(text.matches("store: ").count(), 1, "{text}");
        assert!(text.contains(why), "{text}");
    }
}
