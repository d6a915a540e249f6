//! Replies that a real server gives only in rare moments, and some that it never gives.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::Value;
use slidegate::store::StoreError;

use super::stub::{CLOSE, Stub, greeting};
use super::{one, options};
use crate::link::Link;

/// A server that says this to every script, and a connection to it.
macro_rules! stub_that_says {
    ($reply:expr) => {{
        let stub = Stub::start(|words| match &*words[0] {
            "EVALSHA" | "EVAL" => Some($reply.into()),
            _ => greeting(words, "7.0.15"),
        });
        let stub = stub.await;
        let link = Link::connect(&options(&stub.url()).connections(1).unwrap()).await.unwrap();
        (stub, link)
    }};
}

/// Loading, a cluster that moves, a replica without its primary: all of it passes.
#[tokio::test]
async fn what_passes_is_waited_out() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (stub, link) = stub_that_says!(match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 => "-LOADING Redis is loading the dataset in memory\r\n",
        1 => "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        2 => "-CLUSTERDOWN The cluster is down\r\n",
        3 => "-MASTERDOWN Link with MASTER is down\r\n",
        4 => "-BUSY Redis is busy running a script.\r\n",
        _ => ":1\r\n",
    });
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(stub.heard("EVALSHA"), 6);
    assert_eq!(link.call_all(None, vec![one(); 2]).await, [Ok(Value::Int(1)), Ok(Value::Int(1))]);
    assert_eq!(stub.heard("EVALSHA"), 8);
}

#[tokio::test]
async fn a_node_of_a_cluster_is_told_from_a_standalone_server_at_once() {
    let (stub, link) = stub_that_says!("-MOVED 3999 127.0.0.1:6381\r\n");
    match link.call(None, one()).await {
        Err(StoreError::Unavailable { why }) => assert!(why.contains("not supported yet"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(stub.heard("EVALSHA"), 1);
}

/// Whoever says that, says it to a text as well: there is an end to asking.
#[tokio::test]
async fn a_script_that_is_never_known_is_refused() {
    let (stub, link) = stub_that_says!("-NOSCRIPT No matching script. Please use EVAL.\r\n");
    for answer in link.call_all(None, vec![one(); 2]).await {
        assert!(matches!(answer, Err(StoreError::Refused { .. })), "{answer:?}");
    }
    assert_eq!((stub.heard("EVALSHA"), stub.heard("EVAL")), (2 + 1, 1 + 2));
}

#[tokio::test]
async fn what_is_not_understood_is_ambiguous_and_never_sent_again() {
    let (stub, link) = stub_that_says!("-upstream failure\r\n");
    assert!(matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })));
    assert_eq!(stub.heard("EVALSHA"), 1);
    let (stub, link) = stub_that_says!("what?\r\n");
    assert!(matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })));
    assert_eq!(stub.heard("EVALSHA"), 1);
}

/// It was heard, and perhaps it was done.
#[tokio::test]
async fn a_connection_that_ends_in_the_place_of_a_reply_is_ambiguous() {
    let (stub, link) = stub_that_says!(CLOSE);
    for answer in link.call_all(None, vec![one(); 3]).await {
        assert!(matches!(answer, Err(StoreError::Ambiguous { .. })), "{answer:?}");
    }
    assert_eq!(stub.heard("EVALSHA"), 1, "the stub hears the first and goes");
    assert!(
        matches!(link.call(None, one()).await, Err(StoreError::Ambiguous { .. })),
        "over a new connection"
    );
    assert_eq!(stub.heard("EVALSHA"), 2);
}

/// A search charges nothing, so it leaves nothing open.
#[tokio::test]
async fn a_search_that_is_not_answered_is_never_ambiguous() {
    for says in [CLOSE, "what?\r\n", "*1\r\n:1\r\n", "-upstream failure\r\n"] {
        static SAYS: std::sync::Mutex<&str> = std::sync::Mutex::new("");
        *SAYS.lock().unwrap() = says;
        let stub = Stub::start(|words| match &*words[0] {
            "SCAN" => Some((*SAYS.lock().unwrap()).to_owned()),
            _ => greeting(words, "7.0.15"),
        });
        let stub = stub.await;
        let link = Link::connect(&options(&stub.url())).await.unwrap();
        let answer = link.scan(None, b"*", 0).await;
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{says:?}: {answer:?}");
    }
}
