//! What an attack observes of a server, and how it waits.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use slidegate::time::{Clock, SystemClock};

use crate::client::{Client, HttpAnswer};
use crate::server_process::ServerProcess;

pub(crate) const MIB: u64 = 1 << 20;
/// Many times what a stalled machine needs.
const WAIT_MAX_S: u64 = 60;
const POLL_TIME: Duration = Duration::from_millis(10);

/// A valid check.
pub(crate) fn check(client: &mut Client, rule: &str, key: &str) -> HttpAnswer {
    client.ask("POST", "/v1/check", &json!({ "rule": rule, "key": key }).to_string())
}

/// The fields of every answer to a batch.
pub(crate) fn check_batch(client: &mut Client, charges: &[Value]) -> Vec<Value> {
    let answer = client.ask("POST", "/v1/check-batch", &json!({ "checks": charges }).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut fields = answer.json();
    let answers = fields["answers"].as_array_mut().map(std::mem::take);
    answers.expect("a batch has answers")
}

/// Polls until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    let given_up_us = clock.now_us() + WAIT_MAX_S * 1_000_000;
    while !holds() {
        assert!(clock.now_us() < given_up_us, "not after {WAIT_MAX_S} s: {what}");
        pause();
    }
}

/// A short pause.
pub(crate) fn pause() {
    thread::park_timeout(POLL_TIME);
}

/// The result of an action and how long it took.
pub(crate) fn timed<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let clock = SystemClock::new();
    let begin_us = clock.now_us();
    let result = action();
    (result, Duration::from_micros(clock.now_us() - begin_us))
}

/// The most memory that the server has had.
pub(crate) fn peak_bytes(server: &ServerProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("it has memory") << 10
}

/// The descriptors that the server has open.
pub(crate) fn open_files(server: &ServerProcess) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.id())).expect("Linux").count()
}

/// Stops the server by SIGTERM although nobody reads its log, and returns the log: without a panic in it.
pub(crate) fn stop(server: ServerProcess) -> String {
    let stat = format!("/proc/{}/stat", server.id());
    server.signal("TERM");
    // A process that has ended is a zombie until we wait for it.
    until("SIGTERM ends the server", || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
    });
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    log
}

/// A number with separators: `12,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let lead = digits.len() % 3;
    let (first, rest) = digits.split_at(lead);
    let groups = rest.as_bytes().chunks(3).map(|group| str::from_utf8(group).expect("digits"));
    let groups: Vec<&str> = (lead > 0).then_some(first).into_iter().chain(groups).collect();
    groups.join(",")
}
