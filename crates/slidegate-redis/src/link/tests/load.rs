//! Connections that break under load: nothing is executed twice, and calls go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::server::RedisServer;
use super::{AMPLE, Tally, count, counted, link};
use crate::link::Link;

/// Tasks that call until `stop`, every other one in batches.
fn callers(link: &Arc<Link>, stop: &Arc<AtomicBool>) -> JoinSet<Tally> {
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let (link, stop) = (Arc::clone(link), Arc::clone(stop));
        callers.spawn(async move {
            let mut tally = Tally::default();
            while !stop.load(Ordering::Relaxed) {
                if caller % 2 == 0 {
                    tally.count(&link.call(None, count("k")).await);
                } else {
                    link.call_all(None, vec![count("k"); 10])
                        .await
                        .iter()
                        .for_each(|answer| tally.count(answer));
                }
            }
            tally
        });
    }
    callers
}

async fn joined(mut callers: JoinSet<Tally>) -> Tally {
    let mut all = Tally::default();
    while let Some(tally) = callers.join_next().await {
        all.join(&tally.unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_killed_under_load_charge_nothing_twice() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server).await);
    let stop = Arc::new(AtomicBool::new(false));
    let callers = callers(&link, &stop);
    let mut killing = server.connection();
    for _ in 0..40 {
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut killing).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let tally = timeout(AMPLE, joined(callers)).await.unwrap();
    // Calls may fail while two connections in a row are killed in their handshake.
    assert!(tally.answered > 0, "{tally:?}");
    tally.assert_executed(counted(&server, "k"));
    let executed = counted(&server, "k");
    // The last kill may have hit a handshake: then calls fail until the next one.
    let goes_on = async {
        loop {
            match link.call(None, count("k")).await {
                Err(StoreError::Unavailable { .. }) => {}
                answer => break answer,
            }
        }
    };
    assert_eq!(timeout(AMPLE, goes_on).await.unwrap(), Ok(Value::Int(executed + 1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_load_charges_nothing_twice() {
    // Writes are on disk before their replies.
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let link = Arc::new(link(&server).await);
    let stop = Arc::new(AtomicBool::new(false));
    let callers = callers(&link, &stop);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        tokio::task::block_in_place(|| server.restart());
    }
    // It goes on after the last restart.
    let executed = counted(&server, "k");
    let goes_on = async {
        while counted(&server, "k") == executed {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(AMPLE, goes_on).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let tally = timeout(AMPLE, joined(callers)).await.unwrap();
    assert!(tally.answered > 0, "{tally:?}");
    tally.assert_executed(counted(&server, "k"));
}
