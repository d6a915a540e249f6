//! Signals to a running server. `serve.rs` shows its graceful end, `reload.rs` its reloads.

use std::fs;
use std::process::Command;
use std::thread;

use crate::client::{Client, request};
use crate::program::file_of;
use crate::server_process::ServerProcess;

/// The first signal waits for a request that never ends; the second does not.
#[test]
fn a_second_signal_ends_the_drain_at_once() {
    let bounds = "bounds: { drain_time: 60s, request_time: 60s }";
    let config = file_of("rules.yaml", format!("{{ rules: {{ api: {{ limit: 5/1h }} }}, {bounds} }}"));
    for [first, second] in [["TERM", "INT"], ["INT", "INT"]] {
        let server = ServerProcess::start(&["--config", &config]);
        let mut client = server.connect();
        assert_eq!(client.ask("GET", "/livez", "").status, 200);
        let bytes = request("POST", "/v1/check", &[("content-type", "application/json")], b"{}");
        client.send(&bytes[..bytes.len() - 1]);
        server.signal(first);
        // The drain has begun once the server refuses connections.
        while Client::connect(server.address).is_ok() {
            thread::yield_now();
        }
        server.signal(second);
        let (status, rest) = server.ended();
        assert_eq!(status.code(), Some(0), "{rest}");
        assert!(rest.contains("stopping at once after a second signal"), "{rest}");
        assert!(rest.contains("connections were cut by the second signal"), "{rest}");
        assert!(rest.ends_with("\"stopped\"}\n"), "{rest}");
    }
}

#[test]
fn sighup_without_a_file_is_logged_and_has_no_effect() {
    let server = ServerProcess::start(&[]);
    hang_up(&server, 1_000);
    assert_eq!(server.ask("GET", "/livez", "").status, 200);
    server.signal("TERM");
    let (status, rest) = server.ended();
    assert_eq!(status.code(), Some(0), "{rest}");
    let lines = rest.matches("SIGHUP has no effect: the server was started without a file").count();
    // One line a second.
    assert!((1..=60).contains(&lines), "{rest}");
}

/// Signals and requests for a reload, all at once.
#[test]
fn many_requests_for_a_reload_are_a_few_reloads_and_lines() {
    const SIGNALS: usize = 2_000;
    const CALLERS: usize = 200;
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1h } }");
    let server = ServerProcess::start(&["--config", &config]);
    let mut callers: Vec<Client> = (0..CALLERS).map(|_| server.connect()).collect();
    fs::write(&config, "rules: { api: { limit: 6/1h } }").unwrap();
    hang_up(&server, SIGNALS);
    for caller in &mut callers {
        caller.send(&request("POST", "/v1/admin/reload", &[], b""));
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().expect("every caller gets a result").status, 200);
    }
    let answer = server.ask("POST", "/v1/peek", r#"{"rule":"api","key":"alice"}"#);
    assert_eq!(answer.json()["limit"], 6);
    server.signal("TERM");
    let (_, rest) = server.ended();
    let reloads = rest.matches("configuration reloaded").count();
    let lines = rest.matches("configuration ").count();
    // At most ten a second, on a machine that is twenty seconds slow.
    assert!(reloads == 1 && lines < CALLERS, "{rest}");
}

/// Sends SIGHUP many times, from one shell.
fn hang_up(server: &ServerProcess, times: usize) {
    let script = format!("for number in $(seq {times}); do kill -HUP {}; done", server.id());
    let sent = Command::new("sh").args(["-c", &script]).status().expect("sh is there");
    assert!(sent.success());
}
