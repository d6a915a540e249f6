//! The log of a server on a stderr that nobody reads.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::{fs, thread};

use serde_json::Value;
use slidegate::time::{Clock, SystemClock};

use crate::client::Client;
use crate::program::{command, file_of};
use crate::server_process::ServerProcess;

const ASK: &str = r#"{"rule":"default","key":"alice"}"#;

/// The pipe is full before the server starts, so even its greeting cannot be written.
#[test]
fn a_server_starts_answers_and_stops_although_nobody_reads_its_log() {
    let (unread, stderr) = io::pipe().unwrap();
    let mut filler = stderr.try_clone().unwrap();
    let filling = thread::spawn(move || drop(filler.write_all(&vec![b'x'; 1 << 20])));
    let address = free_address();
    let mut command = command(&["serve", "--http", &address.to_string()]);
    let mut server = command.stderr(stderr).spawn().unwrap();
    drop(command);
    let clock = SystemClock::new();
    let given_up_us = clock.now_us() + 60_000_000;
    let mut client = loop {
        match Client::connect(address) {
            Ok(client) => break client,
            Err(error) => assert!(clock.now_us() < given_up_us, "{error}"),
        }
    };
    assert_eq!(client.ask("GET", "/livez", "").status, 200);
    assert_eq!(client.ask("POST", "/v1/check", ASK).status, 200);
    let sent = Command::new("kill").args(["-s", "TERM", &server.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    drop(unread);
    filling.join().unwrap();
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address")
}

/// Reports of a bad file fill the pipe and the queue. Then stderr is read to its end.
#[test]
fn dropped_lines_are_counted_and_reported_and_the_last_line_arrives() {
    let config = file_of("rules.yaml", "rules: { default: { limit: 5/1h } }");
    let server = ServerProcess::start(&["--config", &config]);
    let bad = (0..3_000).fold("rules:\n".to_owned(), |mut text, number| {
        writeln!(text, "  rule-{number}: {{ limit: bananas }}").unwrap();
        text
    });
    fs::write(&config, bad).unwrap();
    let dropped = || {
        let metrics = server.ask("GET", "/metrics", "").body;
        let line = metrics.lines().find_map(|line| line.strip_prefix("slidegate_log_lines_dropped_total "));
        line.and_then(|count| count.parse::<u64>().ok()).expect("a counter")
    };
    assert_eq!(dropped(), 0);
    while dropped() == 0 {
        assert_eq!(server.ask("POST", "/v1/admin/reload", "").status, 422);
        assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    }
    server.signal("TERM");
    let (status, rest) = server.ended();
    assert_eq!(status.code(), Some(0));
    let lines: Vec<Value> =
        rest.lines().map(|line| serde_json::from_str(line).expect("every line is complete")).collect();
    let has = |text: &str| {
        lines.iter().any(|line| line["message"].as_str().is_some_and(|message| message.contains(text)))
    };
    assert!(has(" log lines were dropped: the reader of stderr was too slow"), "no report");
    assert!(has("stopped"), "the last line");
}
