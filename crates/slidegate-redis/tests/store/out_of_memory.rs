//! A Redis out of memory: under `noeviction` it refuses writes. Nothing is charged on any key of the admission, and every
//! value stays the same; denials still work.

use crate::common::*;
use crate::foreign_values::assert_refused;
use slidegate::store::{Call, Store, StoreError, Update, UpdateError};
use slidegate::{Charge, Receipt, Rule};

/// Enough for a long log.
const CHARGES: u64 = 80;

struct Case<'a> {
    quota: &'a Rule,
    search: &'a Rule,
    receipt: Receipt,
    label: String,
}

fn store_error<T>(answer: Result<T, UpdateError>) -> Option<StoreError> {
    match answer {
        Err(UpdateError::Store(error)) => Some(error),
        _ => None,
    }
}

impl Case<'_> {
    /// Every verb that writes is refused while there is no memory.
    async fn refuses(&self, store: &impl Store) {
        let (quota, search, label) = (self.quota, self.search, self.label.as_str());
        let requests = [
            admission(&[(quota, "alice", 1)]),
            admission(&[(quota, "alice", 1), (search, "alice", 1), (quota, "bob", 1)]),
            admission(&[(quota, "bob", 1), (quota, "alice", 1)]),
            admission(&[(quota, "nobody", 1)]),
        ];
        for request in &requests {
            assert_refused(store.check(Call::now(), request).await.err(), label);
        }
        for decision in store.check_batch(Call::now(), &requests).await {
            assert_refused(decision.err(), label);
        }
        assert_refused(
            store_error(store.update(Call::now(), Update::Refund(&self.receipt)).await),
            &format!("{label}, refund"),
        );
        let settled = store.update(Call::now(), Update::Settle(&self.receipt, 1)).await;
        assert_refused(store_error(settled), &format!("{label}, settle for less"));
        let settled = store.update(Call::now(), Update::Settle(&self.receipt, 9)).await;
        assert_refused(store_error(settled), &format!("{label}, settle for more"));
        assert!(
            store.update(Call::now(), Update::Credit(Charge::new(quota, key("alice"), 3))).await.is_err(),
            "{label}, credit"
        );
        let changed = rule("quota", &["900/300d"], quota.algorithm());
        assert_refused(store.change(Call::now(), &changed).await.err(), &format!("{label}, change"));
        let denied = check(store, Call::now(), search, 4).await;
        assert!(!denied.allowed(), "{label}: a denial needs no memory");
        assert_eq!(used(store, Call::now(), search).await, 3, "{label}: nor does an inspect");
    }
}

#[test]
fn a_redis_without_memory_charges_nothing() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let (quota, search) =
                    (rule("quota", &["500/400d"], algorithm), rule("search", &["5/400d"], algorithm));
                for _ in 0..CHARGES {
                    check(&store, Call::now(), &quota, 1).await;
                }
                let receipt = check(&store, Call::now(), &quota, 4).await.receipt().unwrap();
                check(&store, Call::now(), &search, 3).await;
                let before = (watch.changes(), watch.everything());
                watch.command(&["CONFIG", "SET", "maxmemory", "1"]);
                let label = format!("full, {layout:?}, {algorithm}");
                Case { quota: &quota, search: &search, receipt, label: label.clone() }.refuses(&store).await;
                watch.command(&["CONFIG", "SET", "maxmemory", "0"]);
                assert_eq!((watch.changes(), watch.everything()), before, "{label}: something was written");
                let decision = check(&store, Call::now(), &quota, 1).await;
                assert!(decision.allowed(), "{label}: memory is available again");
            }
        }
    });
}
