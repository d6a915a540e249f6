//! The bound on the bytes that all connections buffer.

use std::io::{ErrorKind, Read};
use std::thread;
use std::time::Duration;

use super::client::{Client, TIMEOUT, request};
use super::test_server::TestServer;
use crate::tokens::{Scopes, Token};

const RULES: &str = "rules: { api: { limit: 5/1m } }";
const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

fn with_bound(buffer_bytes: usize) -> TestServer {
    TestServer::start_with(RULES, |settings| {
        settings.bounds.buffer_bytes = buffer_bytes;
        settings.bounds.header_bytes = 1 << 20;
    })
}

fn padded(path: &str, bytes: usize) -> Vec<u8> {
    request("POST", path, &[JSON], format!("{CHECK}{}", " ".repeat(bytes - CHECK.len())).as_bytes())
}

/// Opens connections that send `bytes` and no more, until the server refuses one.
fn fill(server: &TestServer, bytes: &[u8]) -> Vec<Client> {
    let mut waiting: Vec<Client> = Vec::new();
    while waiting.len() < 500 {
        let mut client = server.connect();
        client.send(bytes);
        waiting.push(client);
        for client in &mut waiting {
            client.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let mut byte = [0];
            match client.stream.read(&mut byte) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                read => assert_eq!(read.unwrap(), 1, "an answer"),
            }
            client.put_back(byte[0]);
            client.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let answer = client.answer().expect("a refusal");
            assert_eq!((answer.status, answer.problem().as_str()), (503, "buffers-full"));
            assert_eq!(answer.header("retry-after").as_deref(), Some("1"));
            let remedy = answer.json()["remedy"].as_str().unwrap().to_owned();
            assert!(remedy.contains("bounds.buffer_bytes"), "{remedy}");
            assert!(client.is_closed());
            return waiting;
        }
    }
    panic!("{} connections buffer {} bytes each, and none is refused", waiting.len(), bytes.len());
}

/// Without the bound, 4,000 connections that stop in the middle of a body took half a gigabyte.
#[test]
fn half_sent_requests_fill_one_bound_and_short_requests_are_still_answered() {
    let server = with_bound(1 << 20);
    let half_body = padded("/v1/peek", 60_000)[..50_000].to_vec();
    let long = "a".repeat(60_000);
    let half_head = request("GET", "/v1/rules", &[("x-long", &long)], b"")[..50_000].to_vec();
    for half in [half_body, half_head] {
        let waiting = fill(&server, &half);
        assert!(waiting.len() > 20, "the bound holds {} half requests", waiting.len());
        for path in ["/v1/check", "/v1/peek"] {
            assert_ne!(server.post(path, CHECK).status, 503, "{path}");
        }
        let mut client = server.connect();
        client.send(&padded("/v1/peek", 60_000));
        assert_eq!(client.answer().expect("an answer").status, 503);
        drop(waiting);
        // There is room as soon as the server has noticed.
        loop {
            let mut client = server.connect();
            client.send(&padded("/v1/peek", 60_000));
            if client.answer().expect("an answer").status == 200 {
                break;
            }
            thread::yield_now();
        }
    }
}

/// Requests of one connection use the same bytes one after the other.
#[test]
fn an_answered_request_gives_its_bytes_back() {
    let server = with_bound(60_000);
    let mut client = server.connect();
    for _ in 0..10 {
        client.send(&padded("/v1/peek", 60_000));
        assert_eq!(client.answer().expect("an answer").status, 200);
    }
}

/// A body that no route needs is dropped as it arrives.
#[test]
fn a_body_that_is_not_needed_takes_no_room() {
    let server = with_bound(1_000);
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(&request("GET", "/v1/rules", &[JSON], " ".repeat(60_000).as_bytes()));
        assert_eq!(client.answer().expect("an answer").status, 200);
    }
}

#[test]
fn a_request_without_the_token_is_refused_before_its_body() {
    let server = TestServer::start_with(RULES, |settings| {
        settings.token = Some(Token::new("0123456789abcdef", Scopes::ALL));
        settings.bounds.buffer_bytes = 1_000;
    });
    for path in ["/v1/check", "/v1/peek", "/nowhere"] {
        let mut client = server.connect();
        let whole = padded(path, 60_000);
        client.send(&whole[..whole.len() - 60_000]);
        assert_eq!(client.answer().expect("an answer before the body").status, 401, "{path}");
        // What is sent on is dropped.
        client.send(" ".repeat(60_000).as_bytes());
        assert!(client.is_closed());
    }
}
