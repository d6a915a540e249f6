//! Graceful shutdown: requests in flight are answered.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::client::{Client, request};
use super::test_server::TestServer;
use crate::http::Drained;

const RULES: &str = "rules: { api: { limit: 1000000/1h } }";
const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;

#[test]
fn idle_connections_are_closed_at_once() {
    let server = TestServer::start(RULES);
    let mut fresh = server.connect();
    let mut used = server.connect();
    let mut other = server.connect();
    assert_eq!(used.ask("POST", "/v1/check", CHECK).status, 200);
    assert_eq!(other.ask("GET", "/v1/rules", "").status, 200);
    assert_eq!(server.ended(), Drained { cut: 0, hastened: false });
    assert!(fresh.is_closed() && used.is_closed() && other.is_closed());
}

/// A request that has arrived only in part is still answered.
#[test]
fn incomplete_requests_are_answered() {
    let mut server = TestServer::start(RULES);
    let json = [("content-type", "application/json")];
    let mut clients: Vec<(Client, Vec<u8>)> = Vec::new();
    for path in ["/v1/check", "/v1/peek"] {
        let bytes = request("POST", path, &json, CHECK.as_bytes());
        for cut in [10, bytes.len() - 10] {
            let mut client = server.connect();
            // The first answer shows that the connection was accepted.
            assert_eq!(client.ask("POST", path, CHECK).status, 200);
            client.send(&bytes[..cut]);
            clients.push((client, bytes[cut..].to_vec()));
        }
    }
    server.begin_to_stop();
    // The shutdown has begun once the server refuses connections.
    while Client::connect(server.address).is_ok() {
        thread::yield_now();
    }
    for (client, rest) in &mut clients {
        client.send(rest);
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("connection").as_deref()), (200, Some("close")));
        assert!(client.is_closed());
    }
    assert_eq!(server.ended(), Drained { cut: 0, hastened: false });
}

/// Each request of callers that never pause is answered, and the last answer closes the connection.
#[test]
fn no_request_is_lost_under_load() {
    let mut server = TestServer::start(RULES);
    let (sent, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let address = server.address;
    thread::scope(|scope| {
        for caller in 0..8 {
            let (sent, stop) = (&sent, &stop);
            let path = if caller % 2 == 0 { "/v1/check" } else { "/v1/peek" };
            scope.spawn(move || {
                while let Ok(mut client) = Client::connect(address) {
                    loop {
                        let answer = client.ask("POST", path, CHECK);
                        assert_eq!(answer.status, 200, "{answer:?}");
                        sent.fetch_add(1, Ordering::Relaxed);
                        if answer.header("connection").as_deref() == Some("close") {
                            assert!(client.is_closed());
                            break;
                        }
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        while sent.load(Ordering::Relaxed) < 2_000 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        server.begin_to_stop();
    });
    assert_eq!(server.ended(), Drained { cut: 0, hastened: false });
}
