//! `slidegate serve`, from the first line that it prints to its exit status.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::fuzzed_bodies::{Random, mutated};
use crate::program::{Run, file_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[test]
fn it_starts_without_arguments_and_prints_an_example() {
    let server = ServerProcess::start(&[]);
    let greeting: Value = serde_json::from_str(&server.greeting).expect("a line is JSON");
    let address = server.address;
    let expected = format!(
        "slidegate listens on http://{address}; try: curl -d '{{\"rule\":\"default\",\"key\":\"alice\"}}' \
         -H 'content-type: application/json' http://{address}/v1/check"
    );
    assert_eq!(greeting["message"], json!(expected));
    let answer = server.ask("POST", "/v1/check", r#"{"rule":"default","key":"alice"}"#);
    assert_eq!((answer.status, &answer.json()["limit"]), (200, &json!(5)));
    let inline = r#"{"rule":{"limit":5,"window":"60s","algorithm":"sliding-log"},"key":"alice"}"#;
    assert_eq!(server.ask("POST", "/v1/check", inline).status, 200);
    for (signal, server) in
        [("TERM", server), ("INT", ServerProcess::start(&["--grpc", "off", "--resp", "off"]))]
    {
        server.signal(signal);
        let (status, rest) = server.ended();
        assert_eq!(status.code(), Some(0), "SIG{signal}");
        let expected = ["stopping; requests in flight are answered first", "stopped"];
        let lines: Vec<Value> =
            rest.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        assert!(lines.iter().map(|line| &line["message"]).eq(expected), "SIG{signal}: {rest}");
    }
}

#[test]
fn the_printed_example_uses_a_rule_of_the_configuration() {
    let config = file_of("rules.yaml", "rules: { login: { limit: 5/1m } }");
    let server = ServerProcess::start(&["--config", &config]);
    assert!(server.greeting.contains(r#"{\"rule\":\"login\",\"key\":\"alice\"}"#), "{}", server.greeting);
    let inline = r#"{"rule":{"limit":5,"window":"60s"},"key":"alice"}"#;
    assert_eq!(server.ask("POST", "/v1/check", inline).status, 403);
}

#[test]
fn warnings_are_logged_at_the_start() {
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1m, shadow: true } }");
    let server = ServerProcess::start(&["--config", &config]);
    server.signal("TERM");
    let (_, rest) = server.ended();
    let (warning, _) = rest.split_once('\n').expect("lines");
    let warning: Value = serde_json::from_str(warning).expect("a line is JSON");
    let message = warning["message"].as_str().expect("text");
    assert!(
        message.contains("rules.yaml:1:10: every rule is a shadow, so nothing is ever refused"),
        "{rest}"
    );
    assert_eq!(warning["level"], json!("WARN"));
}

#[test]
fn startup_errors_name_the_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let bad = file_of("bad.yaml", "rules: { api: { limt: 5/1m } }");
    for (args, expected) in [
        (&["--grpc", "127.0.0.1:8081"][..], "write `--grpc off`"),
        (&["--resp", "127.0.0.1:6380"], "write `--resp off`"),
        (&["--http", &taken], "choose another address with --http"),
        (&["--http", "banana"], "--http"),
        (&["--grpc", "banana"], "expected ADDRESS:PORT or `off`"),
        (&["--store", "disk"], "`disk` is not available"),
        (&["--store", "redis://127.0.0.1:port"], "the URL is not understood"),
        (&["--config", &bad], "did you mean `limit`?"),
        (&["--config", "/no/such/file.yaml"], "cannot be read"),
    ] {
        let Run { code, out, err } = run(&[&["serve"], args].concat(), "");
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

/// Worked examples 10 and 11, with the configurations of their traces.
#[test]
fn worked_examples_hold_over_http() {
    let config = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples").join(name);
        assert!(fs::exists(&path).unwrap());
        path.display().to_string()
    };
    let quota = ServerProcess::start(&["--config", &config("10-daily-quota.yaml")]);
    let mut client = quota.connect();
    let body = r#"{"rule":"yt-quota","key":"yt:quota:key1","cost":100}"#;
    let statuses: Vec<_> = (1..=96).map(|_| client.ask("POST", "/v1/check", body).status).collect();
    assert_eq!(statuses, [&[200; 95][..], &[429]].concat());
    let never = client.ask("POST", "/v1/check", &body.replace("100}", "9501}"));
    assert_eq!((never.status, never.problem().as_str()), (422, "never"));

    let small = ServerProcess::start(&["--config", &config("11-small-service.yaml")]);
    let mut client = small.connect();
    let body = r#"{"rule":"api","key":"alice"}"#;
    let answers: Vec<Value> = (0..6).map(|_| client.ask("POST", "/v1/check", body).json()).collect();
    let before: Vec<_> = answers
        .iter()
        .map(|answer| answer["used"].as_u64().unwrap() - u64::from(answer["allowed"] == true))
        .collect();
    assert_eq!(before, [0, 1, 2, 3, 4, 5]);
    assert_eq!(answers[5]["allowed"], false);
}

#[test]
fn ten_thousand_idle_connections_do_not_block_others() {
    const COUNT: usize = 10_000;
    let files = raised_file_limit();
    let remedy = "raise it with `ulimit -n 20000`";
    assert!(files > COUNT as u64 + 500, "{files} open files are too few for this test; {remedy}");
    let server = ServerProcess::start(&[]);
    let before = server.resident_bytes();
    let mut idle: Vec<Client> = Vec::with_capacity(COUNT);
    for number in 0..COUNT {
        let mut client = server.connect();
        // Every tenth sends a request first.
        if number % 10 == 0 {
            assert_eq!(client.ask("GET", "/v1/rules", "").status, 200);
        }
        idle.push(client);
    }
    let answer = server.ask("POST", "/v1/check", r#"{"rule":"default","key":"alice"}"#);
    assert_eq!(answer.status, 200);
    let each = (server.resident_bytes() - before) / COUNT as u64;
    assert!(each < 16 << 10, "{each} bytes for an idle connection");
    for client in idle.iter_mut().step_by(997) {
        assert_eq!(
            client.ask("POST", "/v1/peek", r#"{"rule":"default","key":"bob"}"#).status,
            200,
            "still alive"
        );
    }
    server.signal("TERM");
    assert_eq!(server.ended().0.code(), Some(0));
}

/// Raises the limit of open files to its maximum.
fn raised_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to its maximum");
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Every charge was answered, so no answer is lost.
#[test]
fn sigterm_under_load_loses_no_answer() {
    let redis = RedisServer::start();
    let config = file_of("rules.yaml", "rules: { api: { limit: 1000000/24h } }");
    let server = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    let address = server.address;
    let (answered, open) = (AtomicU64::new(0), AtomicU64::new(0));
    let status = thread::scope(|scope| {
        for _ in 0..8 {
            let (answered, open) = (&answered, &open);
            scope.spawn(move || {
                while let Ok(mut client) = Client::connect(address) {
                    loop {
                        let answer = client.ask("POST", "/v1/check", r#"{"rule":"api","key":"alice"}"#);
                        match answer.status {
                            200 => answered.fetch_add(1, Ordering::Relaxed),
                            // A busy machine may take longer than the deadline.
                            503 => open.fetch_add(1, Ordering::Relaxed),
                            _ => panic!("{answer:?}"),
                        };
                        if answer.header("connection").as_deref() == Some("close") {
                            break;
                        }
                    }
                }
            });
        }
        while answered.load(Ordering::Relaxed) < 500 {
            thread::yield_now();
        }
        server.signal("TERM");
        server.ended().0
    });
    assert_eq!(status.code(), Some(0));
    let after = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    let used = loop {
        let answer = after.ask("GET", "/v1/keys/api/alice", "");
        if answer.status == 200 {
            break answer.json()["limits"][0]["used"].as_u64().unwrap();
        }
    };
    let (answered, open) = (answered.into_inner(), open.into_inner());
    assert!(
        (answered..=answered + open).contains(&used),
        "{used} charged, {answered} answered, {open} unanswered"
    );
}

/// Fuzzed bodies, some of them truncated, from many connections.
#[test]
fn fuzzed_bodies_do_not_crash_the_server_or_grow_its_memory() {
    let config = file_of("rules.yaml", "{ rules: { api: { limit: 5/1m } }, inline_rules: true }");
    let server = ServerProcess::start(&["--config", &config]);
    let before = server.resident_bytes();
    let paths = ["check", "check-batch", "peek", "explain", "refund", "settle", "credit", "reset"];
    thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for seed in 0..2_000 {
                    let mut random = Random::new(thread * 1_000_000 + seed);
                    let body = mutated(&mut random);
                    let path = format!("/v1/{}", paths[random.below(paths.len())]);
                    let mut bytes = request("POST", &path, &JSON, &body);
                    if random.below(20) == 0 {
                        // Truncated, or with a broken head: the connection ends with or without an answer.
                        bytes.truncate(random.below(bytes.len()));
                        let at = random.below(bytes.len());
                        bytes.splice(at..at, [0xff, b'\r', b'\n']);
                        client.send(&bytes);
                        client = server.connect();
                        continue;
                    }
                    client.send(&bytes);
                    let answer = client.answer().unwrap_or_else(|| panic!("seed {seed}: closed"));
                    assert!(answer.status != 500 && answer.status >= 200, "seed {seed}: {answer:?}");
                }
            });
        }
    });
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    assert_eq!(server.ask("POST", "/v1/check", r#"{"rule":"api","key":"fresh"}"#).json()["used"], 1);
}

/// Concurrent large bodies take no more memory than their bound.
#[test]
fn large_bodies_are_not_buffered() {
    let server = ServerProcess::start(&[]);
    let before = server.resident_bytes();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.connect();
                client.send(&request("POST", "/v1/check", &JSON, &vec![b' '; 30_000_000]));
                assert_eq!(client.answer().expect("a refusal").problem(), "body-too-large");
            });
        }
    });
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
}

#[test]
fn two_servers_on_one_redis_share_counts_and_receipts() {
    let redis = RedisServer::start();
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/24h } }");
    let start = || ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    let (here, there) = (start(), start());
    // A busy machine may exceed the deadline: retry with a fresh key, because the old one may have been charged.
    let receipt = (0..)
        .find_map(|number| {
            let body = format!(r#"{{"rule":"api","key":"key-{number}","cost":5}}"#);
            let answer = here.ask("POST", "/v1/check", &body);
            let denied = there.ask("POST", "/v1/check", &body);
            let both = answer.status == 200 && denied.status == 429;
            assert!(both || answer.status == 503 || denied.status == 503, "{answer:?} {denied:?}");
            both.then(|| answer.json()["receipt"].clone())
        })
        .unwrap();
    let refund = json!({ "receipt": receipt }).to_string();
    let refunded = loop {
        let answer = there.ask("POST", "/v1/refund", &refund);
        if answer.status != 503 {
            break answer;
        }
    };
    assert_eq!(refunded.status, 200, "a receipt of the other server is accepted: {refunded:?}");
}
