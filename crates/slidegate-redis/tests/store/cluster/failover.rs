//! A primary that is killed under load, and its replica that takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::options_of;
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::Call;
use slidegate_redis::RedisStore;
use tokio::task::JoinSet;
use tokio::time::sleep;

const CALLERS: usize = 8;
/// Never used up before the failover, and always after it.
const LIMIT: u64 = 3_000;
const ADMITTED_BEFORE: u64 = 500;
const DENIED_AT_THE_END: u64 = 20;
/// Replication is asynchronous: what the old primary admitted this long before its end may be lost.
const LAG_MAX: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// Counts while the load runs.
#[derive(Default)]
struct Counts {
    admitted: AtomicU64,
    denied: AtomicU64,
    ambiguous: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    fn note(&self, tally: &Tally) {
        for (count, number) in [
            (&self.admitted, tally.admitted),
            (&self.denied, tally.denied),
            (&self.ambiguous, tally.ambiguous),
            (&self.failed, tally.failed),
        ] {
            count.fetch_add(number, Ordering::SeqCst);
        }
    }
}

async fn until_more(count: &AtomicU64, than: u64) {
    while count.load(Ordering::SeqCst) <= than {
        sleep(POLL).await;
    }
}

/// Over-admission is at most what the old primary had acknowledged and not yet replicated.
#[test]
fn a_failover_admits_no_more_than_what_was_not_replicated() {
    let mut cluster = RedisCluster::start(true, &["--cluster-node-timeout", "1000"]);
    let (options, _) = options_of(&cluster);
    run(async {
        let options = options.deadline(Duration::from_millis(500)).unwrap();
        let store = Arc::new(RedisStore::connect_with(&options).await.unwrap());
        let api = Arc::new(rule("api", &[&format!("{LIMIT}/400d")], Algorithm::SlidingLog));
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (store, api, counts, stop) =
                (Arc::clone(&store), Arc::clone(&api), Arc::clone(&counts), Arc::clone(&stop));
            callers.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let mut tally = Tally::default();
                    tally.count(ask(&*store, Call::now(), &api, 1).await);
                    counts.note(&tally);
                    // So slow that the limit lasts until the failover.
                    sleep(POLL).await;
                }
            });
        }
        until_more(&counts.admitted, ADMITTED_BEFORE).await;
        let earlier = counts.admitted.load(Ordering::SeqCst);
        sleep(LAG_MAX).await;
        let victim = cluster.primary_of("alice");
        cluster.node_mut(victim).kill();
        let at_kill = counts.admitted.load(Ordering::SeqCst);
        let unreplicated_max = at_kill - earlier + CALLERS as u64;
        // The store follows by itself.
        until_more(&counts.denied, DENIED_AT_THE_END).await;
        stop.store(true, Ordering::SeqCst);
        callers.join_all().await;

        let [admitted, ambiguous, failed] =
            [&counts.admitted, &counts.ambiguous, &counts.failed].map(|count| count.load(Ordering::SeqCst));
        println!(
            "{admitted} of {LIMIT} admitted, {ambiguous} ambiguous, {failed} failed, {at_kill} before the kill"
        );
        assert!(at_kill < LIMIT && failed > 0, "the failover came too late to test anything");
        assert!(admitted <= LIMIT + unreplicated_max, "{admitted} admitted, {unreplicated_max} unreplicated");
        assert!(admitted + ambiguous >= LIMIT, "{admitted} admitted, {ambiguous} ambiguous");
        assert_eq!(used(&*store, Call::now(), &api).await, LIMIT);
    });
}
