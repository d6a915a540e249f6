//! What one caller may ask of the server, and what is said to one who asks for more.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use super::client::{Client, request};
use super::harness::Running;

const RULES: &str = "rules: { api: { limit: 5/1m } }";
const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

fn assert_refused(client: &mut Client, status: u16, name: &str) {
    let answer = client.answer().expect("a refusal");
    assert_eq!((answer.status, answer.problem().as_str()), (status, name), "{answer:?}");
    assert_eq!(answer.header("connection").as_deref(), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn a_head_that_cannot_be_read_is_told_why() {
    let server = Running::start(RULES);
    for (bytes, status, name) in [
        (b"garbage\r\n\r\n".to_vec(), 400, "malformed"),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), 400, "malformed"),
        (b"POST /v1/check HTTP/1.1\r\nno colon\r\n\r\n".to_vec(), 400, "malformed"),
        (request("GET", "/v1/rules", &[("x-long", &"a".repeat(20_000))], b""), 431, "head-too-large"),
        (
            request("POST", "/v1/check", &[JSON, ("x-long", &"a".repeat(20_000))], b"{}"),
            431,
            "head-too-large",
        ),
        (request("GET", "/v1/rules", &[("x", "y"); 200], b""), 431, "head-too-large"),
    ] {
        let mut client = server.connect();
        client.send(&bytes);
        assert_refused(&mut client, status, name);
    }
    assert_eq!(server.post("/v1/check", CHECK).status, 200, "others are served");
}

/// Two ways to say where a request ends are how requests are smuggled past a proxy.
#[test]
fn a_request_that_ends_in_two_places_is_not_served() {
    let server = Running::start(RULES);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    for framing in [
        "content-length: 28\r\ncontent-length: 5\r\n",
        "content-length: 28, 5\r\n",
        "content-length: +28\r\n",
        "content-length: 28\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: chunked, identity\r\n",
    ] {
        let mut client = server.connect();
        client.send(format!("{head}{framing}\r\n{CHECK}").as_bytes());
        let answer = client.answer();
        assert!(answer.as_ref().is_none_or(|answer| answer.status == 400), "{framing}: {answer:?}");
    }
    let json = server.ask("GET", "/v1/keys/api/alice", "").json();
    assert_eq!(json["limits"][0]["used"], 0);
}

/// The whole body is sent before a byte of the answer is read, as simple clients do it.
#[test]
fn a_body_of_100_megabytes_gets_a_refusal_that_can_be_read() {
    let server = Running::start(RULES);
    let known = format!("content-length: {}\r\n\r\n", 100_000_000);
    let chunked = "transfer-encoding: chunked\r\n\r\n5f5e100\r\n".to_owned();
    for framing in [known, chunked] {
        let mut client = server.connect();
        client.send(
            format!("POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n{framing}", JSON.0, JSON.1)
                .as_bytes(),
        );
        let piece = vec![b' '; 1 << 20];
        let mut left = 100_000_000;
        while left > 0 {
            let bytes = piece.len().min(left);
            client.stream.write_all(&piece[..bytes]).expect("it is read to its end");
            left -= bytes;
        }
        let answer = client.answer().expect("a refusal");
        assert_eq!((answer.status, answer.problem().as_str()), (413, "body-too-large"));
    }
}

#[test]
fn a_body_at_the_bound_is_read() {
    let server = Running::start_with(RULES, |settings| settings.bounds.body_bytes = 6_000);
    for (spaces, status) in [(6_000 - CHECK.len(), 200), (6_001 - CHECK.len(), 413)] {
        let body = format!("{CHECK}{}", " ".repeat(spaces));
        assert_eq!(server.post("/v1/check", &body).status, status);
    }
}

/// A byte now and then does not keep a request alive.
#[test]
fn who_drips_is_cut_off() {
    let server =
        Running::start_with(RULES, |settings| settings.bounds.request_time = Duration::from_millis(200));
    let slow_head = request("GET", "/v1/rules", &[("x-long", &"a".repeat(10_000))], b"");
    let slow_plain_head =
        request("POST", "/v1/check", &[JSON, ("x-long", &"a".repeat(3_000))], CHECK.as_bytes());
    let slow_body = request("POST", "/v1/peek", &[JSON], format!("{CHECK}{}", " ".repeat(10_000)).as_bytes());
    let body_start = slow_body.len() - 10_000;
    for (bytes, at_once) in [(slow_head, 20), (slow_plain_head, 40), (slow_body, body_start)] {
        let mut client = server.connect();
        client.send(&bytes[..at_once]);
        client.stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut left = bytes[at_once..].iter();
        let mut byte = [0];
        // The read is what paces the drip.
        while let Err(error) = client.stream.read(&mut byte) {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            client.send(&[*left.next().expect("it is cut off before the end")]);
        }
        client.stream.set_read_timeout(Some(super::client::PATIENCE)).unwrap();
        client.put_back(byte[0]);
        assert_refused(&mut client, 408, "timeout");
    }
}

#[test]
fn a_connection_may_be_idle_only_for_so_long() {
    let server =
        Running::start_with(RULES, |settings| settings.bounds.idle_time = Duration::from_millis(200));
    let mut fresh = server.connect();
    assert!(fresh.is_closed(), "it never said a word");
    for path in ["/v1/check", "/v1/peek"] {
        let mut client = server.connect();
        assert_eq!(client.ask("POST", path, CHECK).status, 200);
        assert!(client.is_closed());
    }
}

#[test]
fn beyond_the_bound_connections_are_told_so_and_others_go_on() {
    let server = Running::start_with(RULES, |settings| settings.bounds.connections = 8);
    let mut welcome: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut welcome {
        assert_eq!(client.ask("POST", "/v1/peek", CHECK).status, 200);
    }
    for _ in 0..3 {
        assert_refused(&mut server.connect(), 503, "busy");
    }
    for client in &mut welcome {
        assert_eq!(client.ask("POST", "/v1/peek", CHECK).status, 200);
    }
    drop(welcome.pop());
    // Its place is free as soon as the server has noticed.
    loop {
        let mut client = server.connect();
        client.send(&request("POST", "/v1/peek", &[JSON], CHECK.as_bytes()));
        if client.answer().expect("an answer").status == 200 {
            break;
        }
        thread::yield_now();
    }
}
