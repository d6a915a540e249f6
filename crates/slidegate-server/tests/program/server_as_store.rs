//! `check`, `peek`, `reset` and `run` with a slidegate server as the store.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::Value;

use crate::program::{Run, command, file_of, output_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const CONFIG: &str = "rules: { api: { limit: 5/1m, overrides: { ci: unlimited, mallory: blocked } }, \
                      search: { limit: 2/1m } }\ninline_rules: true\n";

fn ask(verb: &str, url: &str, args: &[&str]) -> Run {
    run(&[&[verb], args, &["--store", url]].concat(), "")
}

#[test]
fn rules_are_named_or_inline_and_counts_are_shared_with_the_server() {
    let config = file_of("rules.yaml", CONFIG);
    let server = ServerProcess::start(&["--config", &config]);
    let url = format!("http://{}", server.address);
    let first = ask("check", &url, &["alice", "--rule", "api", "--cost", "3"]);
    assert_eq!(
        (first.code, first.out.as_str()),
        (0, "allowed: 2 of 5 units left (rule api)\n"),
        "{}",
        first.err
    );
    assert_eq!(server.ask("POST", "/v1/check", r#"{"rule":"api","key":"alice"}"#).json()["used"], 4);
    let denied = ask("check", &url, &["alice", "--rule", "api", "--cost", "2"]);
    assert_eq!(denied.code, 1);
    assert!(denied.out.starts_with("denied: 1 of 5 units left, retry in "), "{}", denied.out);
    let peeked = ask("peek", &url, &["alice", "--rule", "api", "--json"]);
    let answer: Value = serde_json::from_str(&peeked.out).expect("JSON");
    assert_eq!((peeked.code, &answer["remaining"], &answer["used"]), (0, &1.into(), &4.into()));
    let reset = ask("reset", &url, &["alice", "--rule", "api"]);
    assert_eq!((reset.code, reset.out.as_str()), (0, "reset: 4 units removed\n"));

    let inline = ask("check", &url, &["alice", "--limit", "9/1h", "--algorithm", "gcra"]);
    assert_eq!(inline.out, "allowed: 8 of 9 units left (rule gcra/3600s)\n", "{}", inline.err);
    let both = ["bob", "--rule", "api", "--also", "search:bob=1/1h"];
    assert_eq!(
        ask("check", &url, &both).out,
        "allowed: 0 of 1 units left (rule sliding-log/3600s, key search:bob)\n"
    );
    let none = ask("check", &url, &both);
    assert_eq!(none.code, 1);
    assert!(none.out.ends_with(" (rule sliding-log/3600s, key search:bob)\n"), "{}", none.out);
    let left = ask("peek", &url, &["bob", "--rule", "api", "--json"]).out;
    assert!(left.contains(r#""used":1,"#), "the other limit was not charged: {left}");

    let ran = ask("run", &url, &["carol", "--rule", "search"]);
    assert_eq!(ran.code, 125, "no command");
    let mut program =
        command(&["run", "carol", "--rule", "search", "--cost", "2", "--store", &url, "--", "echo", "hi"]);
    let (first, second) = (output_of(&mut program), output_of(&mut program));
    assert_eq!((first.code, first.out.as_str(), first.err.as_str()), (0, "hi\n", ""));
    assert_eq!((second.code, second.out.as_str()), (75, ""));
    assert!(second.err.starts_with("denied: 0 of 2 units left, retry in "), "{}", second.err);
}

#[test]
fn overrides_and_errors_of_the_server_are_reported() {
    let config = file_of("rules.yaml", CONFIG.replace("true", "false"));
    let server = ServerProcess::start(&["--config", &config]);
    let url = format!("http://{}", server.address);
    let free = ask("check", &url, &["ci", "--rule", "api"]);
    assert_eq!((free.code, free.out.as_str()), (0, "allowed: the key is unlimited (rule api)\n"));
    let blocked = ask("check", &url, &["mallory", "--rule", "api", "--wait", "60s"]);
    let expected = "denied: the key is blocked, waiting does not help (rule api)\n";
    assert_eq!((blocked.code, blocked.out.as_str()), (1, expected));
    for (args, expected) in [
        (&["alice", "--rule", "apy"][..], "error: rule: `apy` is unknown; did you mean `api`?\n"),
        (&["alice", "--rule", "api", "--cost", "6"], "error: cost: 6 units can never pass rule `api`"),
        (&["alice", "--limit", "5/m"], "error: rule: inline rules are not allowed"),
        (&["alice", "--rule", "api", "--config", &config], "error: config: is not used with a server"),
    ] {
        for more in [&[][..], &["--on-store-error", "allow"]] {
            let Run { code, out, err } = ask("check", &url, &[args, more].concat());
            assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
            assert!(err.starts_with(expected) && err.lines().count() == 1, "{args:?}: {err}");
        }
    }
}

#[test]
fn the_token_is_sent_to_a_server_that_requires_it() {
    let token = file_of("token", "correct-horse-battery-staple\n");
    let config =
        file_of("rules.yaml", format!("rules: {{ api: {{ limit: 5/1m }} }}\ntoken_file: '{token}'\n"));
    let server = ServerProcess::start(&["--config", &config]);
    let url = format!("http://{}", server.address);
    let args = ["check", "alice", "--rule", "api", "--store", &url];
    let with = |token: &str| output_of(command(&args).env("SLIDEGATE_TOKEN", token));
    assert_eq!(with("correct-horse-battery-staple").code, 0);
    for wrong in ["", "battery-staple"] {
        let Run { code, err, .. } = with(wrong);
        assert_eq!(
            (code, err.as_str()),
            (2, "error: store: the server requires its token; set SLIDEGATE_TOKEN to it\n")
        );
    }
    let broken = with("two\nlines");
    assert!(broken.err.starts_with("error: SLIDEGATE_TOKEN: is not printable ASCII"), "{}", broken.err);
}

#[test]
fn the_outage_policy_answers_if_the_server_or_its_store_is_down() {
    let nobody = "http://127.0.0.1:1";
    let gone = ask("check", nobody, &["alice", "--limit", "5/m"]);
    assert_eq!((gone.code, gone.out.as_str()), (2, ""));
    assert!(gone.err.contains("nothing was charged") && gone.err.lines().count() == 1, "{}", gone.err);
    let passed = ask("check", nobody, &["alice", "--limit", "5/m", "--on-store-error", "allow"]);
    assert_eq!(
        (passed.code, passed.out.as_str()),
        (0, "allowed: degraded, the store did not answer (rule sliding-log/60s)\n")
    );
    assert!(passed.err.starts_with("degraded: store: could not be asked"), "{}", passed.err);

    // The server is up, but its store is down.
    let redis = RedisServer::start();
    let config = file_of("rules.yaml", CONFIG);
    let server = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    drop(redis);
    let url = format!("http://{}", server.address);
    let refused = ask("check", &url, &["alice", "--rule", "api"]);
    assert_eq!(refused.code, 2, "{}", refused.out);
    let allowed = ask("check", &url, &["alice", "--rule", "api", "--on-store-error", "allow", "--json"]);
    let answer: Value = serde_json::from_str(&allowed.out).expect("JSON");
    assert_eq!((allowed.code, &answer["degraded"], &answer["limit"]), (0, &true.into(), &Value::Null));
}

#[test]
fn a_server_that_is_not_slidegate_is_reported() {
    let answer = |status: &str, allowed: bool| {
        let body = format!(
            r#"{{"allowed":{allowed},"rule":"r","limit":5,"used":1,"remaining":4,"retry_after_ms":0,"reset_after_ms":0,"degraded":false}}"#
        );
        format!("HTTP/1.1 {status} So\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let (allowed_429, denied_200) = (answer("429", true), answer("200", false));
    for (reply, expected, code) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            "answers with status 200 but is not a slidegate server",
            2,
        ),
        ("HTTP/1.1 404 Not Found\r\n\r\n", "answers with status 404 but is not a slidegate server", 2),
        ("220 ready for mail\r\n", "the response is not HTTP", 2),
        ("", "may have been made", 2),
        // Status and answer contradict each other.
        (allowed_429.as_str(), "answers with status 429 but is not a slidegate server", 2),
        (denied_200.as_str(), "answers with status 200 but is not a slidegate server", 2),
        (
            "HTTP/1.1 400 Bad\r\ncontent-length: 44\r\n\r\n{\"type\":\"x\",\"detail\":\"\\u001b[2J\\u0007 gone\"}",
            "\\u{1b}[2J\\u{7} gone",
            2,
        ),
        ("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "degraded: ", 0),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let reply = reply.to_owned();
        let sent = reply.clone();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it asks");
            // Read up to the body: closing earlier resets the connection.
            let mut request = Vec::new();
            while !request.ends_with(b"}}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.extend(byte);
            }
            stream.write_all(sent.as_bytes()).expect("it listens");
        });
        let more: &[&str] = if code == 0 { &["--on-store-error", "allow"] } else { &[] };
        let checked = ask("check", &url, &[&["alice", "--limit", "5/m"], more].concat());
        served.join().expect("it was asked");
        assert_eq!(checked.code, code, "{reply}: {}", checked.err);
        assert!(
            checked.err.contains(expected) && checked.err.lines().count() == 1,
            "{reply}: {}",
            checked.err
        );
    }
}
