//! Deadlines, and callers that cancel.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::server::RedisServer;
use super::stub::{Stub, handshake_reply};
use super::{AMPLE, count, counted, echo, echoed, link, one, options};
use crate::link::{BATCH_CALLS_MAX, Link};

/// Completes the handshake, and never replies after it.
async fn silent() -> Stub {
    Stub::start(|words| handshake_reply(words, "7.0.15")).await
}

#[tokio::test]
async fn a_call_without_a_reply_is_ambiguous_and_calls_queued_behind_it_are_unavailable() {
    let stub = silent().await;
    let options = options(&stub.url()).connections(1).unwrap().deadline(Duration::from_secs(1)).unwrap();
    let link = Arc::new(Link::connect(&options).await.unwrap());
    let first = tokio::spawn({
        let link = Arc::clone(&link);
        async move { link.call(None, one()).await }
    });
    // The first call is in flight once the stub has received it.
    let in_flight = async {
        while stub.received("EVALSHA") == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(AMPLE, in_flight).await.unwrap();
    let behind = timeout(AMPLE, link.call_all(None, vec![one(); 3])).await.unwrap();
    let first = timeout(AMPLE, first).await.unwrap().unwrap();
    assert!(matches!(first, Err(StoreError::Ambiguous { .. })), "{first:?}");
    for answer in behind {
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    // The lane is free again once it has closed the connection; the others are still in its queue.
    let asked_again = async {
        while stub.received("EVALSHA") == 1 {
            assert!(link.call(None, one()).await.is_err());
        }
    };
    timeout(AMPLE, asked_again).await.unwrap();
    assert_eq!(stub.received("EVALSHA"), 2, "an expired call is never sent");
}

/// The deadline of a call, instead of that of the options.
fn after(wait: Duration) -> std::time::Instant {
    (Instant::now() + wait).into_std()
}

/// All round trips of a batch have one deadline: calls that are still queued then are never sent.
#[tokio::test]
async fn a_batch_ends_by_the_deadline_of_its_call() {
    let stub = silent().await;
    let link = Link::connect(&options(&stub.url()).connections(1).unwrap()).await.unwrap();
    let begin = Instant::now();
    let answers =
        link.call_all(Some(after(Duration::from_millis(300))), vec![one(); 2 * BATCH_CALLS_MAX]).await;
    assert!(begin.elapsed() < AMPLE / 2, "{:?}", begin.elapsed());
    let (sent, unsent) = answers.split_at(BATCH_CALLS_MAX);
    for answer in sent {
        assert!(matches!(answer, Err(StoreError::Ambiguous { .. })), "{answer:?}");
    }
    for answer in unsent {
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    assert!(stub.received("EVALSHA") <= BATCH_CALLS_MAX);
}

#[tokio::test]
async fn a_call_past_its_deadline_is_not_sent() {
    let stub = silent().await;
    let link = Link::connect(&options(&stub.url())).await.unwrap();
    let answer = link.call(Some(after(Duration::ZERO)), one()).await;
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    assert_eq!(stub.received("EVALSHA"), 0);
}

/// A call may have a longer deadline than the minimum reply timeout.
#[tokio::test]
async fn a_connection_is_not_closed_before_the_deadline_of_its_calls() {
    let stub = silent().await;
    let link =
        Link::connect(&options(&stub.url()).deadline(Duration::from_millis(20)).unwrap()).await.unwrap();
    let answer = link.call(Some(after(Duration::from_millis(1_500))), one()).await;
    let Err(StoreError::Ambiguous { why }) = answer else { panic!("{answer:?}") };
    assert!(why.contains("it was sent, and 1.5s have passed"), "{why}");
}

/// A connection without replies is closed, and calls are sent over a new one.
#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let stub = silent().await;
    let options = options(&stub.url()).connections(1).unwrap().deadline(Duration::from_millis(20)).unwrap();
    let link = Link::connect(&options).await.unwrap();
    let handshakes = stub.received("HELLO");
    let replaced = async {
        while stub.received("HELLO") == handshakes {
            assert!(link.call(None, one()).await.is_err());
        }
    };
    timeout(AMPLE, replaced).await.unwrap();
}

#[tokio::test]
async fn a_killed_server_is_unavailable_until_it_restarts() {
    let mut server = RedisServer::start();
    let impatient = options(&server.url()).deadline(Duration::from_millis(100)).unwrap();
    let impatient = Link::connect(&impatient).await.unwrap();
    assert_eq!(impatient.call(None, count("k")).await, Ok(Value::Int(1)));
    server.kill();
    // The first call may notice the lost connection only by writing to it.
    let noticed = async {
        loop {
            match impatient.call(None, count("k")).await {
                Err(StoreError::Unavailable { why })
                    if why.contains("no connection to Redis at 127.0.0.1:") =>
                {
                    break;
                }
                Err(StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    timeout(AMPLE, noticed).await.unwrap();
    server.restart();
    let back = async { while impatient.call(None, count("k")).await.is_err() {} };
    timeout(AMPLE, back).await.unwrap();
}

/// No call was in flight, so nothing is ambiguous: the next call waits for the new connection.
#[tokio::test]
async fn a_restart_between_calls_causes_no_error() {
    let mut server = RedisServer::start();
    let link = link(&server).await;
    for _ in 0..3 {
        assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(1)));
        server.restart();
        // The restart has also lost the scripts.
        assert_eq!(
            link.call_all(None, vec![count("k"), one()]).await,
            [Ok(Value::Int(1)), Ok(Value::Int(1))]
        );
        server.command(&["DEL", "k"]);
    }
}

/// Half of the callers cancel at random times. No other caller gets their replies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_do_not_disturb_other_calls() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server).await);
    let mut leaving = JoinSet::new();
    let mut staying = JoinSet::new();
    for number in 0..400 {
        let link = Arc::clone(&link);
        let words = format!("caller {number}").into_bytes();
        if number % 2 == 0 {
            leaving.spawn(async move {
                let cancel_after = Duration::from_micros(number * 5);
                let _ = timeout(cancel_after, link.call(None, count("left"))).await;
            });
        } else {
            staying.spawn(async move {
                for _ in 0..10 {
                    assert_eq!(link.call(None, echo(b"k", &words)).await, Ok(echoed(b"k", &words)));
                }
            });
        }
    }
    leaving.join_all().await;
    staying.join_all().await;
    assert!(counted(&server, "left") <= 200, "no call was executed twice");
}

#[tokio::test]
async fn a_call_that_was_cancelled_in_the_queue_is_never_sent() {
    let server = RedisServer::start();
    let link = link(&server).await;
    // The script is known, so a call that is sent is executed.
    link.call(None, count("other")).await.unwrap();
    for _ in 0..100 {
        let mut call = pin!(link.call(None, count("left")));
        // It enters the queue, and on one thread the lane does not run before the next await.
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let answers = link.call_all(None, vec![one(); 4]).await;
    assert!(answers.into_iter().all(|answer| answer == Ok(Value::Int(1))));
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(counted(&server, "left"), 0);
}
