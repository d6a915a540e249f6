//! Faults under load: flushed scripts, which no caller notices, and an unreachable server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::*;
use slidegate::store::{Call, Store};
use slidegate::{Algorithm, Rule};

/// More than any test uses, for longer than any test runs.
pub(crate) const PLENTY: &str = "1000000000/400d";
const CALLERS: usize = 8;
/// The pause between two faults. No assertion depends on it.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Puts load on one key while `inject_fault` is called `times` times.
pub(crate) async fn under_load<S: Store + 'static>(
    store: &Arc<S>,
    rule: &Arc<Rule>,
    times: usize,
    mut inject_fault: impl FnMut(),
) -> Tally {
    let stop = Arc::new(AtomicBool::new(false));
    let faults = async {
        for _ in 0..times {
            tokio::time::sleep(PAUSE).await;
            inject_fault();
        }
        tokio::time::sleep(PAUSE).await;
        stop.store(true, Ordering::SeqCst);
    };
    let load = tally::until(store, rule, CALLERS, &stop);
    tokio::join!(load, faults).0
}

pub(crate) fn algorithms() -> [Algorithm; 3] {
    [Algorithm::SlidingLog, Algorithm::SlidingCounter, Algorithm::ALL[1]]
}

/// SCRIPT FLUSH, a restart or a failover empties the script cache; single calls and batches go on.
#[test]
fn row_10_flushed_scripts_are_sent_again() {
    for algorithm in algorithms() {
        let server = RedisServer::start();
        let rule = Arc::new(rule("api", &[PLENTY], algorithm));
        run(async {
            let store = Arc::new(store(&server.url()).await);
            let mut watch = ServerWatch::new(&server);
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

#[test]
fn an_unreachable_server_is_unavailable_and_charges_nothing() {
    let mut server = RedisServer::start();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        check(&store, Call::now(), &rule, 1).await;
        // A call that is in flight is ambiguous after its deadline.
        let impatient = store_within(&server.url(), Duration::from_millis(50)).await;
        server.kill();
        let mut tally = Tally::default();
        for _ in 0..10 {
            tally.count(ask(&impatient, Call::now(), &rule, 1).await);
        }
        assert_eq!((tally.admitted, tally.denied), (0, 0), "{tally:?}");
        assert!(tally.failed > 0, "a call that was never sent has not charged: {tally:?}");
    });
}
