//! A Redis whose process is stopped: the system still accepts connections and bytes for it, and nothing is answered.

use std::time::Duration;

use crate::common::sentinels::signal;
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, StoreError};
use slidegate_redis::{RedisOptions, RedisStore};
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_millis(200);

/// First the call in flight is ambiguous, then the connection is given up, then calls fail at once. When it goes on, it
/// executes what it had received.
#[test]
fn a_stopped_server_is_given_up_and_found_again() {
    let server = RedisServer::start();
    let rule = rule("api", &["1000000/400d"], Algorithm::SlidingCounter);
    run(async {
        let options = RedisOptions::new(&server.url()).unwrap().deadline(DEADLINE).unwrap();
        let store = RedisStore::connect_with(&options.connect_timeout(DEADLINE).unwrap()).await.unwrap();
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        signal(server.process(), "STOP");
        let mut tally = Tally { admitted: 1, ..Tally::default() };
        tally.count(ask(&store, Call::now(), &rule, 1).await);
        assert_eq!(tally.ambiguous, 1, "{tally:?}");
        let begin = Instant::now();
        let given_up = |error: &StoreError| error.to_string().contains("was not ready within 200 ms");
        loop {
            let answer = ask(&store, Call::now(), &rule, 1).await;
            let done = answer.as_ref().is_err_and(given_up);
            tally.count(answer);
            if done {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{tally:?}");
        }
        signal(server.process(), "CONT");
        let begin = Instant::now();
        loop {
            let answer = ask(&store, Call::now(), &rule, 1).await;
            let done = answer.is_ok();
            tally.count(answer);
            if done {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        tally.assert_charged(used(&store, Call::now(), &rule).await);
    });
}
