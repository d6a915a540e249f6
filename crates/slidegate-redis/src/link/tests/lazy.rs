//! Links that are opened before their server answers.

use std::time::Duration;

use redis::Value;
use slidegate::store::{RefusalCause, StoreError};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use super::server::{RedisServer, free_port};
use super::stub::{Stub, handshake_reply};
use super::{AMPLE, count, one, options};
use crate::link::Link;

/// Calls until the answer is no failure.
async fn answered(link: &Link) -> Value {
    let asked = async {
        loop {
            if let Ok(reply) = link.call(None, one()).await {
                return reply;
            }
        }
    };
    timeout(AMPLE, asked).await.unwrap()
}

/// The deadline of a call is a minute: only a call that is answered at once ends in the time of the test.
#[tokio::test]
async fn calls_to_a_refused_address_are_answered_at_once() {
    let port = free_port();
    let link = Link::lazy(&options(&format!("redis://bob:hunter2@127.0.0.1:{port}"))).unwrap();
    let begin = Instant::now();
    for call in 0..100 {
        let error = link.call(None, one()).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{call}: {text}");
        assert!(text.contains(&format!("no connection to Redis at 127.0.0.1:{port}: ")), "{text}");
        assert!(text.contains("check that it is running") && !text.contains("hunter2"), "{text}");
    }
    assert!(begin.elapsed() < AMPLE / 2, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_server_that_starts_later_is_found() {
    let mut server = RedisServer::start();
    server.kill();
    let link = Link::lazy(&options(&server.url())).unwrap();
    assert!(link.call(None, one()).await.is_err());
    server.restart();
    let begin = Instant::now();
    assert_eq!(answered(&link).await, Value::Int(1));
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// The first call waits while the connection is opened.
#[tokio::test]
async fn the_first_call_waits_for_the_connection() {
    let server = RedisServer::start();
    let link = Link::lazy(&options(&server.url())).unwrap();
    assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(1)));
    assert_eq!(link.call_all(None, vec![one(); 3]).await, vec![Ok(Value::Int(1)); 3]);
}

/// A link that is opened outside of a runtime connects on that of its first call.
#[test]
fn a_link_needs_no_runtime_before_its_first_call() {
    let server = RedisServer::start();
    let link = Link::lazy(&options(&server.url())).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    assert_eq!(first.block_on(link.call(None, one())), Ok(Value::Int(1)));
    drop(first);
    // The runtime of its connections has ended. That is an error, and no wait until the deadline.
    match runtime().block_on(link.call(None, one())) {
        Err(StoreError::Unavailable { why }) => assert!(why.contains("runtime"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Nothing listens to the connection: the system accepts it, and the handshake gets no reply.
#[tokio::test]
async fn a_server_that_accepts_and_does_not_reply_costs_a_deadline_and_then_nothing() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("redis://:hunter2@{}", listener.local_addr().unwrap());
    let options = options(&url).connect_timeout(Duration::from_millis(500)).unwrap();
    let link = Link::lazy(&options.clone().deadline(Duration::from_millis(50)).unwrap()).unwrap();
    match link.call(None, one()).await {
        Err(StoreError::Unavailable { why }) => {
            assert!(why.contains("nothing was sent within 50ms: Redis at 127.0.0.1:"), "{why}");
            assert!(why.contains("not connected yet"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    // With more time the call is answered when the try has failed.
    let link = Link::lazy(&options).unwrap();
    for _ in 0..2 {
        match timeout(AMPLE / 2, link.call(None, one())).await.unwrap() {
            Err(StoreError::Unavailable { why }) => assert!(why.contains("not ready within 500 ms"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_refused_login_is_a_refusal_until_the_password_is_right() {
    let server = RedisServer::start_with(&["--requirepass", "sesame"]);
    let url = server.url().replace("redis://", "redis://:hunter2@");
    let link = Link::lazy(&options(&url)).unwrap();
    for _ in 0..2 {
        match link.call(None, one()).await {
            Err(StoreError::Refused { cause: RefusalCause::Forbidden, why }) => {
                assert!(why.contains("correct the user and the password"), "{why}");
                assert!(!why.contains("hunter2"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
    let mut connection = redis::Client::open(server.url().replace("redis://", "redis://:sesame@")).unwrap();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "hunter2"]).exec(&mut connection).unwrap();
    assert_eq!(answered(&link).await, Value::Int(1));
}

#[tokio::test]
async fn a_server_that_is_too_old_is_named_with_its_version() {
    let stub = Stub::start(|words| handshake_reply(words, "4.0.14")).await;
    let link = Link::lazy(&options(&stub.url())).unwrap();
    match link.call(None, one()).await {
        Err(StoreError::Unavailable { why }) => {
            assert!(why.contains("version 4.0.14; use version 5"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
