//! Bounds on requests and connections, and the answers beyond them.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use super::client::{Client, request};
use super::test_server::TestServer;

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
fn a_malformed_head_gets_a_problem() {
    let server = TestServer::start(RULES);
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

/// Ambiguous framing lets a client smuggle requests past a proxy.
#[test]
fn a_request_with_ambiguous_framing_is_refused() {
    let server = TestServer::start(RULES);
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

/// Simple clients send the whole body before they read the answer.
#[test]
fn a_client_that_sends_100_megabytes_can_read_the_refusal() {
    let server = TestServer::start(RULES);
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
            client.stream.write_all(&piece[..bytes]).expect("the server drains the body");
            left -= bytes;
        }
        let answer = client.answer().expect("a refusal");
        assert_eq!((answer.status, answer.problem().as_str()), (413, "body-too-large"));
    }
}

#[test]
fn a_body_at_the_bound_is_accepted() {
    let server = TestServer::start_with(RULES, |settings| settings.bounds.body_bytes = 6_000);
    for (spaces, status) in [(6_000 - CHECK.len(), 200), (6_001 - CHECK.len(), 413)] {
        let body = format!("{CHECK}{}", " ".repeat(spaces));
        assert_eq!(server.post("/v1/check", &body).status, status);
    }
}

/// A slow loris attack: single bytes do not extend the request time.
#[test]
fn a_slow_request_times_out() {
    let server =
        TestServer::start_with(RULES, |settings| settings.bounds.request_time = Duration::from_millis(200));
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
        // The read timeout paces the bytes.
        while let Err(error) = client.stream.read(&mut byte) {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            client.send(&[*left.next().expect("the server closes before the end")]);
        }
        client.stream.set_read_timeout(Some(super::client::TIMEOUT)).unwrap();
        client.put_back(byte[0]);
        assert_refused(&mut client, 408, "timeout");
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let server =
        TestServer::start_with(RULES, |settings| settings.bounds.idle_time = Duration::from_millis(200));
    let mut fresh = server.connect();
    assert!(fresh.is_closed(), "without any request");
    for path in ["/v1/check", "/v1/peek"] {
        let mut client = server.connect();
        assert_eq!(client.ask("POST", path, CHECK).status, 200);
        assert!(client.is_closed());
    }
}

#[test]
fn connections_beyond_the_bound_get_503_and_others_go_on() {
    let server = TestServer::start_with(RULES, |settings| settings.bounds.connections = 8);
    let mut within_bound: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut within_bound {
        assert_eq!(client.ask("POST", "/v1/peek", CHECK).status, 200);
    }
    for _ in 0..3 {
        assert_refused(&mut server.connect(), 503, "busy");
    }
    for client in &mut within_bound {
        assert_eq!(client.ask("POST", "/v1/peek", CHECK).status, 200);
    }
    drop(within_bound.pop());
    // The slot is free as soon as the server has noticed.
    loop {
        let mut client = server.connect();
        client.send(&request("POST", "/v1/peek", &[JSON], CHECK.as_bytes()));
        if client.answer().expect("an answer").status == 200 {
            break;
        }
        thread::yield_now();
    }
}
