//! Replies that a real server sends only rarely, and some that it never sends.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::Value;
use slidegate::store::StoreError;

use super::stub::{CLOSE, Stub, handshake_reply};
use super::{one, options};
use crate::call_error::ErrorClass;
use crate::link::Link;

/// A server with this reply to every script, and a connection to it.
macro_rules! stub_that_replies {
    ($reply:expr) => {{
        let stub = Stub::start(|words| match &*words[0] {
            "EVALSHA" | "EVAL" => Some($reply.into()),
            _ => handshake_reply(words, "7.0.15"),
        });
        let stub = stub.await;
        let link = Link::connect(&options(&stub.url()).connections(1).unwrap()).await.unwrap();
        (stub, link)
    }};
}

/// Loading, a replica without its primary, a script that does not end.
#[tokio::test]
async fn temporary_errors_are_retried() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (stub, link) = stub_that_replies!(match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 => "-LOADING Redis is loading the dataset in memory\r\n",
        1 => "-MASTERDOWN Link with MASTER is down\r\n",
        2 => "-BUSY Redis is busy running a script.\r\n",
        _ => ":1\r\n",
    });
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(stub.received("EVALSHA"), 4);
    assert_eq!(link.call_all(None, vec![one(); 2]).await, [Ok(Value::Int(1)), Ok(Value::Int(1))]);
    assert_eq!(stub.received("EVALSHA"), 6);
}

#[tokio::test]
async fn a_cluster_node_is_refused_without_a_retry() {
    let (stub, link) = stub_that_replies!("-MOVED 3999 127.0.0.1:6381\r\n");
    match link.call(None, one()).await {
        Err(StoreError::Unavailable { why }) => assert!(why.contains("redis+cluster://HOST"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(stub.received("EVALSHA"), 1);
}

/// Another node may have the slot by now, which a link to one node does not know.
#[tokio::test]
async fn a_cluster_that_moves_slots_is_left_to_its_caller() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (stub, link) = stub_that_replies!(match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 => "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        _ => "-CLUSTERDOWN The cluster is down\r\n",
    });
    for _ in 0..2 {
        let failed = link.try_call(None, one()).await.unwrap_err();
        assert_eq!(failed.class, ErrorClass::Resharding, "{failed:?}");
    }
    assert_eq!(stub.received("EVALSHA"), 2);
}

/// The server answers so even to the script's text: the retries end.
#[tokio::test]
async fn a_script_that_stays_unknown_is_refused() {
    let (stub, link) = stub_that_replies!("-NOSCRIPT No matching script. Please use EVAL.\r\n");
    for answer in link.call_all(None, vec![one(); 2]).await {
        assert!(matches!(answer, Err(StoreError::Refused { .. })), "{answer:?}");
    }
    assert_eq!((stub.received("EVALSHA"), stub.received("EVAL")), (2 + 1, 1 + 2));
}

#[tokio::test]
async fn an_unknown_error_is_ambiguous_and_not_retried() {
    let (stub, link) = stub_that_replies!("-upstream failure\r\n");
    assert!(matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })));
    assert_eq!(stub.received("EVALSHA"), 1);
    let (stub, link) = stub_that_replies!("what?\r\n");
    assert!(matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })));
    assert_eq!(stub.received("EVALSHA"), 1);
}

/// It was heard, and perhaps it was done.
#[tokio::test]
async fn a_connection_that_closes_instead_of_a_reply_is_ambiguous() {
    let (stub, link) = stub_that_replies!(CLOSE);
    for answer in link.call_all(None, vec![one(); 3]).await {
        assert!(matches!(answer, Err(StoreError::Ambiguous { .. })), "{answer:?}");
    }
    assert_eq!(stub.received("EVALSHA"), 1, "the stub closes after the first");
    assert!(
        matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })),
        "over a new connection"
    );
    assert_eq!(stub.received("EVALSHA"), 2);
}

/// A scan charges nothing.
#[tokio::test]
async fn a_failed_scan_is_never_ambiguous() {
    for reply in [CLOSE, "what?\r\n", "*1\r\n:1\r\n", "-upstream failure\r\n"] {
        static REPLY: std::sync::Mutex<&str> = std::sync::Mutex::new("");
        *REPLY.lock().unwrap() = reply;
        let stub = Stub::start(|words| match &*words[0] {
            "SCAN" => Some((*REPLY.lock().unwrap()).to_owned()),
            _ => handshake_reply(words, "7.0.15"),
        });
        let stub = stub.await;
        let link = Link::connect(&options(&stub.url())).await.unwrap();
        let answer = link.scan(None, b"*", 0).await;
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{reply:?}: {answer:?}");
    }
}
