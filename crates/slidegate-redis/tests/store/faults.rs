//! Mischief under load that no caller notices, and a server that is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::*;
use slidegate::store::{Call, Store};
use slidegate::{Algorithm, Rule};

/// More than any test asks for, for longer than any test runs.
pub(crate) const PLENTY: &str = "1000000000/400d";
const CALLERS: usize = 8;
/// Between two acts of mischief. What is proven does not depend on it.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Load on one key while `act` is done so many times.
pub(crate) async fn under_load<S: Store + 'static>(
    store: &Arc<S>,
    rule: &Arc<Rule>,
    times: usize,
    mut act: impl FnMut(),
) -> Tally {
    let stop = Arc::new(AtomicBool::new(false));
    let mischief = async {
        for _ in 0..times {
            tokio::time::sleep(PAUSE).await;
            act();
        }
        tokio::time::sleep(PAUSE).await;
        stop.store(true, Ordering::SeqCst);
    };
    let load = tally::until(store, rule, CALLERS, &stop);
    tokio::join!(load, mischief).0
}

pub(crate) fn algorithms() -> [Algorithm; 3] {
    [Algorithm::SlidingLog, Algorithm::SlidingCounter, Algorithm::ALL[1]]
}

/// The script cache is emptied by SCRIPT FLUSH, a restart or a failover; single calls and batches go on.
#[test]
fn row_10_scripts_that_are_forgotten_are_sent_again() {
    for algorithm in algorithms() {
        let server = RedisServer::start();
        let rule = Arc::new(rule("api", &[PLENTY], algorithm));
        run(async {
            let store = Arc::new(store(&server.url()).await);
            let mut watch = Watch::new(&server);
            let flush = || drop(watch.command(&["SCRIPT", "FLUSH"]));
            let tally = under_load(&store, &rule, 100, flush).await;
            tally.assert_answered();
            assert!(tally.admitted > 100, "{algorithm}: {tally:?}");
            assert_eq!(
                used(&*store, Call::now(), &rule).await,
                tally.admitted,
                "{algorithm}: none lost, none twice"
            );
        });
    }
}

/// A server that is away is a failure that charged nothing, in words that say what to look at.
#[test]
fn a_server_that_is_away_is_unavailable() {
    let mut server = RedisServer::start();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        check(&store, Call::now(), &rule, 1).await;
        // What is not connected is tried again until its deadline.
        let hurried = store_within(&server.url(), Duration::from_millis(50)).await;
        server.kill();
        let mut tally = Tally::default();
        for _ in 0..10 {
            tally.count(ask(&hurried, Call::now(), &rule, 1).await);
        }
        assert_eq!((tally.admitted, tally.denied), (0, 0), "{tally:?}");
        assert!(tally.failed > 0, "what was never sent is known not to be charged: {tally:?}");
    });
}
