//! A charge is given back if its answer cannot be written, or its command cannot be started.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::program::{Run, command, file_of, fresh, output_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const ARGS: [&str; 6] = ["alice", "--limit", "2/1h", "--cost", "2", "--store"];

/// Runs the program with a stdout on which no byte can be written.
fn on_a_full_disk(args: &[&str]) -> Run {
    let full = File::options().write(true).open("/dev/full").expect("Linux");
    let mut program = command(args);
    let output = program.stdin(Stdio::null()).stdout(full).output().expect("it starts");
    let err = String::from_utf8(output.stderr).expect("text");
    Run { code: output.status.code().expect("no signal"), out: String::new(), err }
}

/// The units used, of a file, a Redis or a server.
fn used(store: &str) -> Value {
    let peeked = run(&["peek", "alice", "--limit", "2/1h", "--json", "--store", store], "");
    serde_json::from_str::<Value>(&peeked.out).expect("an answer")["used"].clone()
}

/// A file, a Redis and a server on that Redis.
fn every_store(check: impl Fn(&str)) {
    let redis = RedisServer::start();
    let config = file_of("rules.yaml", "{ rules: { api: { limit: 2/1h } }, inline_rules: true }");
    let server = ServerProcess::start(&["--config", &config, "--store", "memory"]);
    check(&format!("sqlite:{}/state.db?durability=normal", fresh("store").display()));
    check(&redis.url());
    check(&format!("http://{}", server.address));
}

#[test]
fn an_answer_that_cannot_be_written_charges_nothing() {
    every_store(|store| {
        for format in [&[][..], &["--json"]] {
            let refused = on_a_full_disk(&[&["check"], &ARGS[..], &[store], format].concat());
            let expected = "error: cannot write to stdout: No space left on device (os error 28); \
                            the charge was given back\n";
            assert_eq!((refused.code, refused.err.as_str()), (2, expected), "{store} {format:?}");
            assert_eq!(used(store), 0, "{store} {format:?}");
        }
        assert_eq!(output_of(&mut command(&[&["check"], &ARGS[..], &[store]].concat())).code, 0);
        for verb in ["check", "peek"] {
            let denied = on_a_full_disk(&[&[verb], &ARGS[..], &[store]].concat());
            assert!(denied.err.ends_with(" (os error 28); nothing was charged\n"), "{}", denied.err);
            assert_eq!((denied.code, used(store)), (2, 2.into()), "{store} {verb}");
        }
    });
}

/// With `--json` an error goes to stdout, and to stderr where stdout takes nothing.
#[test]
fn an_error_that_cannot_be_written_to_stdout_goes_to_stderr() {
    for (args, start, code) in [
        (&["check", "alice", "--limit", "banana", "--json"][..], "error: limit: `banana` is not a rate; ", 2),
        (&["check", "alice", "--limit", "5/m", "--cost", "6", "--json"], "error: cost: 6 units can never", 2),
        (
            &["reset", "alice", "--rule", "api", "--json"],
            "error: rule: `api` needs its configuration file; ",
            2,
        ),
        (&["--version"], "error: cannot write to stdout: ", 2),
        (&["run", "--help"], "error: cannot write to stdout: ", 125),
        (&["redis", "script", "check"], "error: cannot write to stdout: ", 2),
    ] {
        let refused = on_a_full_disk(args);
        assert_eq!(refused.code, code, "{args:?}");
        assert!(
            refused.err.starts_with(start) && refused.err.lines().count() == 1,
            "{args:?}: {}",
            refused.err
        );
    }
}

#[test]
fn a_command_that_cannot_be_started_is_not_charged() {
    let text = file_of("plain.txt", "no program");
    every_store(|store| {
        for (word, status) in [("no-such-program", 127), (&text, 126)] {
            let ran = output_of(&mut command(&[&["run"], &ARGS[..], &[store, "--", word]].concat()));
            assert_eq!((ran.code, ran.out.as_str()), (status, ""), "{store}: {}", ran.err);
            assert!(ran.err.ends_with("; the charge was given back\n"), "{store}: {}", ran.err);
            assert_eq!(used(store), 0, "{store}");
        }
        assert_eq!(output_of(&mut command(&[&["run"], &ARGS[..], &[store, "--", "false"]].concat())).code, 1);
        assert_eq!(used(store), 2, "{store}: a command that failed stays charged");
    });
}

/// The reader of a closed pipe has what it wants, and the exit status is the answer.
#[test]
fn a_reader_that_ends_early_is_no_error() {
    let store = format!("sqlite:{}/state.db?durability=normal", fresh("store").display());
    let program = env!("CARGO_BIN_EXE_slidegate");
    for (line, used_after) in [
        (format!("'{program}' check alice --limit 2/1h --store '{store}' | :"), 1),
        (format!("'{program}' redis script check | head -1"), 1),
        (format!("'{program}' check --help | head -1"), 1),
    ] {
        let script = format!("set -o pipefail; {line}");
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash is there");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{line}");
        assert_eq!(used(&store), used_after, "{line}");
    }
}

/// A server that goes away between the check and the refund.
#[test]
fn a_charge_that_cannot_be_given_back_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has one"));
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the check");
        let mut part = [0; 4_096];
        assert!(stream.read(&mut part).expect("a request") > 0);
        let body = r#"{"allowed":true,"rule":"api","limit":2,"used":1,"remaining":1,"retry_after_ms":0,"reset_after_ms":9,"degraded":false,"receipt":"r"}"#;
        drop(listener);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("an answer");
    });
    let ran = run(&["run", "alice", "--rule", "api", "--store", &url, "--", "no-such-program"], "");
    serving.join().expect("it answers");
    assert_eq!((ran.code, ran.err.lines().count()), (127, 1), "{}", ran.err);
    let stays = "; the charge stays, because it cannot be given back: store: could not be asked";
    assert!(ran.err.contains(stays), "{}", ran.err);
}
