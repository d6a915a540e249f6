//! A call ends by its own deadline, and its error says whether it may have charged.

use std::time::Duration;

use tokio::time::Instant;

use crate::common::*;
use slidegate::Algorithm;
use slidegate::Charge;
use slidegate::store::{Call, Store, StoreError, Update};

/// Much less than the deadline of the stores under test.
const SOON: Duration = Duration::from_millis(100);
/// A call that ends by its own deadline has ended by then, even on a busy machine.
const LATE: Duration = Duration::from_secs(30);

/// A call with a deadline after `wait`.
fn within(wait: Duration) -> Call {
    Call::now().with_deadline(Some((Instant::now() + wait).into_std()))
}

/// The duration and the result of a future.
async fn timed<T>(future: impl Future<Output = T>) -> (Duration, T) {
    let begin = Instant::now();
    let answer = future.await;
    (begin.elapsed(), answer)
}

/// A call to a Redis that is down does not take its deadline.
#[test]
fn a_killed_server_is_unavailable_at_once() {
    let mut server = RedisServer::start();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        check(&store, Call::now(), &rule, 1).await;
        server.kill();
        let (took, answer) = timed(ask(&store, within(LATE), &rule, 1)).await;
        let Err(StoreError::Unavailable { why }) = answer else { panic!("{answer:?}") };
        assert!(why.contains("no connection to Redis at 127.0.0.1:"), "{why}");
        assert!(took < LATE / 2, "{took:?}");

        let (took, answers) = timed(async {
            let requests = vec![admission(&[(&rule, "alice", 1)]); 600];
            store.check_batch(within(LATE), &requests).await
        })
        .await;
        assert!(took < LATE / 2, "{took:?}");
        assert_eq!(answers.len(), 600);
        for answer in answers {
            assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        }
    });
}

#[test]
fn a_paused_server_is_ambiguous_by_the_deadline_of_the_call() {
    let server = RedisServer::start();
    let rule = rule("api", &["50/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        check(&store, Call::now(), &rule, 1).await;
        // It accepts commands, and executes them after the pause.
        server.command(&["CLIENT", "PAUSE", "600000", "WRITE"]);
        let (took, answer) = timed(ask(&store, within(SOON), &rule, 1)).await;
        let Err(error @ StoreError::Ambiguous { .. }) = &answer else { panic!("{answer:?}") };
        assert!(error.to_string().contains("it was sent, and 100ms have passed"), "{error}");
        assert!(SOON <= took && took < LATE, "{took:?}");
        server.command(&["CLIENT", "UNPAUSE"]);
        let tally = Tally { admitted: 1, ambiguous: 1, ..Tally::default() };
        tally.assert_charged(used(&store, Call::now(), &rule).await);
    });
}

#[test]
fn a_call_past_its_deadline_is_not_sent() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let rule = rule("api", &["50/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        let receipt = check(&store, Call::now(), &rule, 2).await.receipt().unwrap();
        let before = watch.everything();
        let late = within(Duration::ZERO);
        let error = ask(&store, late, &rule, 1).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains("had passed before the call"), "{error}");
        assert!(store.peek(late, &admission(&[(&rule, "alice", 1)])).await.is_err());
        assert!(store.update(late, Update::Refund(&receipt)).await.is_err());
        assert!(store.update(late, Update::Settle(&receipt, 1)).await.is_err());
        assert!(store.update(late, Update::Credit(Charge::new(&rule, key("alice"), 1))).await.is_err());
        assert!(store.update(late, Update::Reset(&rule, key("alice"))).await.is_err());
        assert!(store.inspect(late, &rule, key("alice")).await.is_err());
        assert!(store.change(late, &rule).await.is_err());
        assert_eq!(watch.everything(), before);
        assert_eq!(store.update(Call::now(), Update::Refund(&receipt)).await.unwrap().units, 2);
    });
}
