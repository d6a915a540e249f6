//! The end of a server: what has begun is answered.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::client::{Client, request};
use super::harness::Running;
use crate::http::server::Drained;

const RULES: &str = "rules: { api: { limit: 1000000/1h } }";
const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;

#[test]
fn an_idle_server_ends_at_once_with_its_idle_connections() {
    let server = Running::start(RULES);
    let mut fresh = server.connect();
    let mut used = server.connect();
    let mut other = server.connect();
    assert_eq!(used.ask("POST", "/v1/check", CHECK).status, 200);
    assert_eq!(other.ask("GET", "/v1/rules", "").status, 200);
    assert_eq!(server.ended(), Drained { cut: 0 });
    assert!(fresh.is_closed() && used.is_closed() && other.is_closed());
}

/// A request of which only a part has arrived when the end comes is answered all the same.
#[test]
fn what_has_begun_is_answered() {
    let mut server = Running::start(RULES);
    let json = [("content-type", "application/json")];
    let mut clients: Vec<(Client, Vec<u8>)> = Vec::new();
    for path in ["/v1/check", "/v1/peek"] {
        let bytes = request("POST", path, &json, CHECK.as_bytes());
        for cut in [10, bytes.len() - 10] {
            let mut client = server.connect();
            // It has been accepted once it has answered.
            assert_eq!(client.ask("POST", path, CHECK).status, 200);
            client.send(&bytes[..cut]);
            clients.push((client, bytes[cut..].to_vec()));
        }
    }
    server.begin_to_stop();
    // The server does not accept any more, so it has noticed.
    while Client::connect(server.address).is_ok() {
        thread::yield_now();
    }
    for (client, rest) in &mut clients {
        client.send(rest);
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("connection").as_deref()), (200, Some("close")));
        assert!(client.is_closed());
    }
    assert_eq!(server.ended(), Drained { cut: 0 });
}

/// Callers who never pause: each request that was sent on a connection is answered, and the last answer says that it is
/// the last.
#[test]
fn under_load_nothing_is_lost() {
    let mut server = Running::start(RULES);
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
    assert_eq!(server.ended(), Drained { cut: 0 });
}
