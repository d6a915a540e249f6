//! Settings of a Redis: names of keys, layout and deny cache, from the file, from variables and as parameters of the URL.

use std::process::Command;

use redis::{Commands, Connection};
use serde_json::json;
use slidegate::time::{Clock, SystemClock};

use crate::program::{Run, command, file_of, output_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

pub(crate) const TEMPLATE: &str = "rlaas:rate_limit:{key}";
pub(crate) const ASK: &str = r#"{"rule":"default","key":"alice"}"#;
/// A busy machine must not make a call of the store fail.
pub(crate) const DEADLINE: (&str, &str) = ("SLIDEGATE_DEADLINE", "1m");
const RATE_LIMITER: &str = "rate-limiter: { window-size: 3600, max-requests: 5, on_store_error: deny }\n";

/// The names of all keys, sorted, without the secret of receipts, which only a server needs.
pub(crate) fn names(connection: &mut Connection) -> Vec<String> {
    let names: Vec<String> = connection.keys("*").expect("a list of names");
    let mut names: Vec<String> = names.into_iter().filter(|name| !name.ends_with("%secret")).collect();
    names.sort();
    names
}

/// A server on a free port.
pub(crate) fn serve(args: &[&str]) -> ServerProcess {
    ServerProcess::start_by(command(&[&["serve", "--http", "127.0.0.1:0"], args].concat()).envs([DEADLINE]))
}

/// A way to give the template and the layout.
struct Way {
    /// What the file says of the store.
    file: String,
    variables: &'static [(&'static str, &'static str)],
    flag: Option<String>,
}

fn ways(url: &str) -> Vec<Way> {
    let of_file = |file: String| Way { file: format!("store: {file}\n"), variables: &[], flag: None };
    let parameters = format!("{url}?key_template={TEMPLATE}&log_layout=sorted-set");
    let encoded = format!("'{url}/?log_layout=sorted%2Dset&key_template=rlaas%3Arate_limit%3A%7Bkey%7D'");
    vec![
        of_file(format!("{{ url: '{url}', key_template: '{TEMPLATE}', log_layout: sorted-set }}")),
        of_file(parameters.clone()),
        of_file(encoded),
        Way {
            variables: &[
                ("SLIDEGATE_STORE_KEY_TEMPLATE", TEMPLATE),
                ("SLIDEGATE_STORE_LOG_LAYOUT", "sorted-set"),
            ],
            ..of_file(format!("{{ url: '{url}', key_prefix: unused, log_layout: packed }}"))
        },
        Way { file: String::new(), variables: &[], flag: Some(parameters) },
    ]
}

#[test]
fn a_server_and_every_command_name_the_keys_alike() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    for Way { file: store, variables, flag } in ways(&redis.url()) {
        let config = file_of("rules.yaml", format!("{RATE_LIMITER}{store}"));
        let flags = flag.as_ref().map_or(vec![], |url| vec!["--store", url]);
        let command = |args: &[&str]| {
            let mut command = command(&[args, &["--config", &config], &flags].concat());
            command.envs(variables.iter().copied().chain([DEADLINE]));
            command
        };
        let asked = |verb: &str, more: &[&str]| {
            let Run { code, out, err } =
                output_of(&mut command(&[&[verb, "alice", "--rule", "default", "--json"], more].concat()));
            assert_eq!((code, err.as_str()), (0, ""), "{verb}: {store}{out}");
            serde_json::from_str::<serde_json::Value>(&out).unwrap()
        };
        let server = ServerProcess::start_by(&mut command(&["serve", "--http", "127.0.0.1:0"]));
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200, "{store}");
        assert_eq!(asked("check", &["--cost", "2"])["used"], json!(3), "{store}");
        assert_eq!(server.ask("GET", "/v1/rlaas/alice", "").json()["currentCount"], json!(3), "{store}");
        assert_eq!(asked("peek", &[])["used"], json!(4), "{store}");

        // What `redis-cli ZRANGE ... WITHSCORES` shows: a member per unit, with the time in microseconds.
        let members: Vec<(String, f64)> =
            connection.zrange_withscores("rlaas:rate_limit:alice", 0, -1).unwrap();
        assert_eq!(members.len(), 4, "{store}");
        assert!(members.iter().all(|(_, score)| *score > 1e15 && *score < 1e16), "{members:?}");
        assert_eq!(
            names(&mut connection),
            ["rlaas:rate_limit:alice", "rlaas:rate_limit:alice%state"],
            "{store}"
        );

        let now_us = SystemClock::new().now_us();
        let trace = file_of(
            "trace.jsonl",
            format!(r#"{{"at_us":{now_us},"op":"inspect","rule":"default","key":"alice"}}"#),
        );
        let replayed = output_of(&mut command(&["replay", &trace]));
        assert_eq!(replayed.answers()[0]["limits"][0]["used"], json!(4), "{store}{}", replayed.err);

        let ran = output_of(command(&["run", "alice", "--rule", "default"]).args(["--", "true"]));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{store}");
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 429, "{store}");
        assert_eq!(asked("reset", &[])["units"], json!(5), "{store}");
        assert_eq!(names(&mut connection), [""; 0], "{store}");
        drop(server);
        redis.command(&["FLUSHALL"]);
    }
}

#[test]
fn a_prefix_names_the_keys_of_a_server_without_a_file() {
    let redis = RedisServer::start();
    let server = serve(&["--store", &format!("{}?key_prefix=app", redis.url())]);
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    assert_eq!(names(&mut redis.connection()), ["app:{alice}:default"]);
    let secret: bool = redis.connection().exists("app:{}:%secret").unwrap();
    assert!(secret, "the secret of receipts has the prefix too");
}

/// How often Redis was called for 30 denials of one key.
fn calls_for_denials(redis: &RedisServer, config: &str) -> u64 {
    let server = serve(&["--config", &file_of("rules.yaml", config)]);
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    redis.command(&["CONFIG", "RESETSTAT"]);
    let mut client = server.connect();
    for _ in 0..30 {
        assert_eq!(client.ask("POST", "/v1/check", ASK).status, 429);
    }
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut redis.connection()).expect("a text");
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
}

#[test]
fn the_deny_cache_is_a_setting() {
    let redis = RedisServer::start();
    for (hold, calls) in [("10m", 0..=3), ("off", 30..=40), ("0", 30..=40)] {
        redis.command(&["FLUSHALL"]);
        let config = format!(
            "rules: {{ default: {{ limit: 1/1h, on_store_error: deny }} }}\nstore: {{ url: '{}', deny_cache: {hold} }}\n",
            redis.url()
        );
        let counted = calls_for_denials(&redis, &config);
        assert!(calls.contains(&counted), "deny_cache {hold}: {counted} calls");
    }
}

/// `validate` of a file, in which the rules are the first line, and then the text of the store.
pub(crate) fn validate(rules: &str, store: &str) -> Run {
    let file = file_of("validate.yaml", format!("{rules}\n{store}"));
    let mut run = run(&["validate", &file], "");
    run.err = run.err.replace(&file, "FILE");
    run
}

pub(crate) const ONE_RULE: &str = "rules: { a: { limit: 5/1m, on_store_error: deny } }";

#[test]
fn every_fault_of_the_store_has_its_position_and_remedy() {
    for (store, position, words) in [
        (
            "store: redis://bob:hunter2@h?deadlin=1s",
            "2:8",
            "store: the URL has the parameter `deadlin`, which is unknown; did you mean `deadline`?",
        ),
        ("store: redis://bob:hunter2@h?deadline=1s&deadline=1s", "2:8", "`deadline` twice; keep one of them"),
        ("store: redis://bob:hunter2@h?key_template=app", "2:8", "store: key_template: `app` has no {key}"),
        (
            "store: redis://bob:hunter2@h?key_template=%zz",
            "2:8",
            "store: the parameter `key_template` is not percent-encoded",
        ),
        (
            "store: redis://bob:hunter2@h?connections=x",
            "2:8",
            "store: connections: `x` is not a whole number; write digits only",
        ),
        (
            "store: { url: 'redis://bob:hunter2@h?colour=red' }",
            "2:15",
            "store: the URL has the parameter `colour`, which is unknown; remove it",
        ),
        (
            "store: { url: redis://h, key_template: app }",
            "2:40",
            "store.key_template: `app` has no {key}, so all keys would share one state",
        ),
        (
            "store: { url: redis://h, key_prefix: '' }",
            "2:38",
            "store.key_prefix: `` cannot begin the names of keys; give at least one character",
        ),
        (
            "store: { url: redis://h, key_prefix: a, key_template: 'b{key}{rule}' }",
            "2:55",
            "store.key_template: cannot be combined with store.key_prefix; keep one of them",
        ),
        (
            "store: { url: redis://h, log_layout: sorted_set }",
            "2:38",
            "store.log_layout: `sorted_set` is unknown; did you mean `sorted-set`?",
        ),
        (
            "store: { url: redis://h, connections: 65 }",
            "2:39",
            "store.connections: 65 is out of range; give 1 to 64",
        ),
        (
            "store: { url: redis://h, connect_timeout: 2 }",
            "2:43",
            "store.connect_timeout: `2` is not a duration; write a number and ms, s, m, h or d",
        ),
        (
            "store: { url: redis://h, deny_cache: never }",
            "2:38",
            "store.deny_cache: `never` is not a duration; write a number and ms, s, m, h or d, for example 200ms, or off",
        ),
        (
            "store: { url: redis://h, key-prefix: a }",
            "2:26",
            "store: key-prefix: is not a field here; did you mean `key_prefix`?",
        ),
        ("store: { ulr: redis://h }", "2:10", "store: ulr: is not a field here; did you mean `url`?"),
        (
            "store: { url: redis://h, deadline: 20ms }",
            "2:26",
            "store: deadline: stands beside `store`, for every store; write `deadline: 20ms` there",
        ),
        ("store: { url: [redis://h] }", "2:15", "store: expected a text, found a list"),
    ] {
        let Run { code, out, err } = validate(ONE_RULE, store);
        assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{store}: {err}");
        assert!(
            err.starts_with(&format!("error: FILE:{position}: ")) && err.contains(words),
            "{store}: {err}"
        );
        assert!(!err.contains("hunter2"), "{err}");
    }
}

#[test]
fn a_fault_in_a_flag_or_a_variable_ends_the_program_at_its_start() {
    let flag = "redis://bob:hunter2@127.0.0.1:1?deadlin=1s";
    for args in [&["serve", "--store", flag][..], &["check", "a", "--limit", "5/1m", "--store", flag]] {
        let Run { code, out, err } = run(args, "");
        assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
        assert!(err.contains("`deadlin`, which is unknown; did you mean `deadline`?"), "{err}");
        assert!(!err.contains("hunter2"), "{err}");
    }
    let url = "redis://bob:hunter2@127.0.0.1:1";
    for args in [
        &["serve", "--store", url][..],
        &["check", "a", "--limit", "5/1m", "--store", url],
        &["replay", "--store", url],
    ] {
        let Run { code, out, err } = output_of(command(args).env("SLIDEGATE_STORE_CONNECTIONS", "0"));
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(
            err.starts_with("error: SLIDEGATE_STORE_CONNECTIONS: 0 is out of range; give 1 to 64"),
            "{err}"
        );
    }
}

#[test]
fn settings_without_effect_get_a_warning() {
    let sets = "rules: { a: { limit: 5/1m, on_store_error: deny, take_over: ms } }";
    for (rules, store, position, words) in [
        (
            ONE_RULE,
            "store: { url: memory, key_prefix: app }",
            "2:35",
            "store.key_prefix: has no effect, as states do not live in a Redis; remove it",
        ),
        (
            ONE_RULE,
            "store: { connections: 4 }",
            "2:23",
            "store.connections: has no effect, as states do not live in a Redis",
        ),
        (
            ONE_RULE,
            "store: { url: 'redis://h?key_template={rule}:{key}', key_prefix: app }",
            "2:66",
            "store.key_prefix: has no effect, as the URL of the store gives it; remove one of them",
        ),
        (
            ONE_RULE,
            "store: redis://h?deadline=20ms\ndeadline: 30ms",
            "3:11",
            "deadline: has no effect, as the URL of the store gives it",
        ),
        (
            sets,
            "store: redis://h",
            "1:10",
            "rule `a`: take_over: ms has no effect without a Redis and log_layout: sorted-set; set both, or remove it",
        ),
        (sets, "store: memory", "1:10", "rule `a`: take_over: ms has no effect"),
    ] {
        let Run { code, out, err } = validate(rules, store);
        assert_eq!((code, err.lines().count()), (0, 1), "{store}: {err}");
        assert!(
            err.starts_with(&format!("warning: FILE:{position}: ")) && err.contains(words),
            "{store}: {err}"
        );
        assert!(out.ends_with("valid, 1 warning\n"), "{out}");
    }
    let Run { code, err, .. } = validate(sets, "store: redis://h?log_layout=sorted-set");
    assert_eq!((code, err.as_str()), (0, ""));
}

/// A variable that other commands understand is none that a server warns of.
#[test]
fn variables_of_the_store_are_known() {
    let redis = RedisServer::start();
    let mut started: Command = command(&["serve", "--http", "127.0.0.1:0", "--store", &redis.url()]);
    started.env("SLIDEGATE_STORE_KEY_PREFIX", "env").env("SLIDEGATE_STORE_CONNECTIONS", "1").envs([DEADLINE]);
    let mut server = ServerProcess::start_by(&mut started);
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    assert_eq!(names(&mut redis.connection()), ["env:{alice}:default"]);
    server.signal("TERM");
    let line = server.next_line();
    assert!(line.contains("stopping"), "no warning came before: {line}");
}
