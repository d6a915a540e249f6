//! Resident memory under requests that stop in the middle.

use std::thread;

use slidegate::time::{Clock, SystemClock};

use crate::client::{Client, request};
use crate::program::file_of;
use crate::server_process::ServerProcess;

const COUNT: usize = 1_000;
const BODY_BYTES: usize = 64_000;
const MIB: u64 = 1 << 20;
/// The bound, and about 20 KB that each connection has anyway. Without the bound the server takes 125 MiB.
const MEMORY_MAX: u64 = 60 * MIB;
/// What stays afterwards: code and tables that were used for the first time. The server looks every second.
const KEPT_MAX: u64 = 12 * MIB;
const RETURN_US_MAX: u64 = 30_000_000;

#[test]
fn half_sent_bodies_take_bounded_memory_that_is_given_back() {
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1m } }\nbounds: { buffer_bytes: 4MiB }\n");
    let server = ServerProcess::start(&["--config", &config]);
    assert_eq!(server.ask("GET", "/v1/rules", "").status, 200);
    let before = server.resident_bytes();
    let body = " ".repeat(BODY_BYTES);
    let whole = request("POST", "/v1/peek", &[("content-type", "application/json")], body.as_bytes());
    let mut waiting: Vec<Client> = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let mut client = server.connect();
        client.send(&whole[..whole.len() - 1_000]);
        client.stream.set_nonblocking(true).unwrap();
        waiting.push(client);
    }
    // All but those that fit into the bound are answered.
    let fit = (4 << 20) / (BODY_BYTES - 10_000);
    while waiting.iter().filter(|client| client.stream.peek(&mut [0]).is_ok()).count() < COUNT - fit {
        thread::yield_now();
    }
    let during = server.resident_bytes() - before;
    assert!(during < MEMORY_MAX, "{} MiB for {COUNT} half-sent bodies", during / MIB);
    drop(waiting);
    let clock = SystemClock::new();
    let deadline_us = clock.now_us() + RETURN_US_MAX;
    loop {
        assert_eq!(server.ask("GET", "/v1/rules", "").status, 200);
        let after = server.resident_bytes().saturating_sub(before);
        if after < KEPT_MAX {
            break;
        }
        assert!(clock.now_us() < deadline_us, "{} MiB after they are gone", after / MIB);
    }
}
