//! Time that passes, and callers who leave.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::server::RedisServer;
use super::stub::{Stub, greeting};
use super::{AMPLE, count, counted, echo, echoed, link, one, options};
use crate::link::{BATCH_CALLS_MAX, Link};

/// Greets, and is silent from then on.
async fn silent() -> Stub {
    Stub::start(|words| greeting(words, "7.0.15")).await
}

#[tokio::test]
async fn a_call_that_is_never_answered_is_ambiguous_and_those_behind_it_are_not() {
    let stub = silent().await;
    let options = options(&stub.url()).connections(1).unwrap().deadline(Duration::from_secs(1)).unwrap();
    let link = Arc::new(Link::connect(&options).await.unwrap());
    let first = tokio::spawn({
        let link = Arc::clone(&link);
        async move { link.call(None, one()).await }
    });
    // The first is under way as soon as the stub has heard it.
    let heard = async {
        while stub.heard("EVALSHA") == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(AMPLE, heard).await.unwrap();
    let behind = timeout(AMPLE, link.call_all(None, vec![one(); 3])).await.unwrap();
    let first = timeout(AMPLE, first).await.unwrap().unwrap();
    assert!(matches!(first, Err(StoreError::Ambiguous { .. })), "{first:?}");
    for answer in behind {
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    // The lane is free again once it has given up the connection, and finds the others in its queue.
    let asked_again = async {
        while stub.heard("EVALSHA") == 1 {
            assert!(link.call(None, one()).await.is_err());
        }
    };
    timeout(AMPLE, asked_again).await.unwrap();
    assert_eq!(stub.heard("EVALSHA"), 2, "what was given up is never sent");
}

/// The deadline of a call, in the place of that of the options.
fn after(wait: Duration) -> std::time::Instant {
    (Instant::now() + wait).into_std()
}

/// All round trips of a batch have one deadline: what waits for its turn by then is never sent.
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
    assert!(stub.heard("EVALSHA") <= BATCH_CALLS_MAX);
}

#[tokio::test]
async fn a_call_past_its_deadline_is_not_sent() {
    let stub = silent().await;
    let link = Link::connect(&options(&stub.url())).await.unwrap();
    let answer = link.call(Some(after(Duration::ZERO)), one()).await;
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    assert_eq!(stub.heard("EVALSHA"), 0);
}

/// A call may wait longer than the connection would otherwise be trusted to be silent.
#[tokio::test]
async fn a_connection_is_not_given_up_before_the_deadline_of_its_calls() {
    let stub = silent().await;
    let link =
        Link::connect(&options(&stub.url()).deadline(Duration::from_millis(20)).unwrap()).await.unwrap();
    let answer = link.call(Some(after(Duration::from_millis(1_500))), one()).await;
    let Err(StoreError::Ambiguous { why }) = answer else { panic!("{answer:?}") };
    assert!(why.contains("it was sent, and 1.5s have passed"), "{why}");
}

/// A connection that stays silent is given up, and calls go out over a new one.
#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let stub = silent().await;
    let options = options(&stub.url()).connections(1).unwrap().deadline(Duration::from_millis(20)).unwrap();
    let link = Link::connect(&options).await.unwrap();
    let greeted = stub.heard("HELLO");
    let replaced = async {
        while stub.heard("HELLO") == greeted {
            assert!(link.call(None, one()).await.is_err());
        }
    };
    timeout(AMPLE, replaced).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_and_its_return_is_noticed() {
    let mut server = RedisServer::start();
    let hasty = options(&server.url()).deadline(Duration::from_millis(100)).unwrap();
    let hasty = Link::connect(&hasty).await.unwrap();
    assert_eq!(hasty.call(None, count("k")).await, Ok(Value::Int(1)));
    server.kill();
    // The first may find out that the connection is gone only by writing to it.
    let noticed = async {
        loop {
            match hasty.call(None, count("k")).await {
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
    let back = async { while hasty.call(None, count("k")).await.is_err() {} };
    timeout(AMPLE, back).await.unwrap();
}

/// Nobody called meanwhile, so nothing is ambiguous: the call waits for the new connection.
#[tokio::test]
async fn a_restart_while_nobody_calls_goes_unnoticed() {
    let mut server = RedisServer::start();
    let link = link(&server).await;
    for _ in 0..3 {
        assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(1)));
        server.restart();
        // Scripts are gone with the process, too.
        assert_eq!(
            link.call_all(None, vec![count("k"), one()]).await,
            [Ok(Value::Int(1)), Ok(Value::Int(1))]
        );
        server.command(&["DEL", "k"]);
    }
}

/// Half the callers leave at any time; nobody else is given their answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave_do_no_harm() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server).await);
    let mut leaving = JoinSet::new();
    let mut staying = JoinSet::new();
    for number in 0..400 {
        let link = Arc::clone(&link);
        let words = format!("caller {number}").into_bytes();
        if number % 2 == 0 {
            leaving.spawn(async move {
                let patience = Duration::from_micros(number * 5);
                let _ = timeout(patience, link.call(None, count("left"))).await;
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
    assert!(counted(&server, "left") <= 200, "nobody was executed twice");
}

/// Who left before the call was sent has not called.
#[tokio::test]
async fn a_call_that_was_left_in_the_queue_is_never_sent() {
    let server = RedisServer::start();
    let link = link(&server).await;
    // The script is known, so that sending a call would be executing it.
    link.call(None, count("other")).await.unwrap();
    for _ in 0..100 {
        let mut call = pin!(link.call(None, count("left")));
        // It enters the queue, and on this one thread nobody takes it out before we wait for something.
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let answers = link.call_all(None, vec![one(); 4]).await;
    assert!(answers.into_iter().all(|answer| answer == Ok(Value::Int(1))));
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(counted(&server, "left"), 0);
}
