//! A Redis without memory: under `noeviction` it refuses to write. Nothing is charged on any key of the admission, and
//! every value stays as it was, byte for byte; denials still come.

use crate::common::*;
use crate::foreign::assert_refused;
use slidegate::store::{Call, Store, StoreError, Update, UpdateError};
use slidegate::{Charge, Receipt, Rule};

/// A key of one value that is long, if there are logs.
const CHARGES: u64 = 80;

struct Case<'a> {
    quota: &'a Rule,
    dear: &'a Rule,
    receipt: Receipt,
    tale: String,
}

fn of_return<T>(answer: Result<T, UpdateError>) -> Option<StoreError> {
    match answer {
        Err(UpdateError::Store(error)) => Some(error),
        _ => None,
    }
}

impl Case<'_> {
    /// Every verb that writes, while there is no room; each begins with the key that has least to lose.
    async fn refuses(&self, store: &impl Store) {
        let (quota, dear, tale) = (self.quota, self.dear, self.tale.as_str());
        let requests = [
            admission(&[(quota, "alice", 1)]),
            admission(&[(quota, "alice", 1), (dear, "alice", 1), (quota, "bob", 1)]),
            admission(&[(quota, "bob", 1), (quota, "alice", 1)]),
            admission(&[(quota, "nobody", 1)]),
        ];
        for request in &requests {
            assert_refused(store.check(Call::now(), request).await.err(), tale);
        }
        for decision in store.check_batch(Call::now(), &requests).await {
            assert_refused(decision.err(), tale);
        }
        assert_refused(
            of_return(store.update(Call::now(), Update::Refund(&self.receipt)).await),
            &format!("{tale}, refund"),
        );
        let settled = store.update(Call::now(), Update::Settle(&self.receipt, 1)).await;
        assert_refused(of_return(settled), &format!("{tale}, settle for less"));
        let settled = store.update(Call::now(), Update::Settle(&self.receipt, 9)).await;
        assert_refused(of_return(settled), &format!("{tale}, settle for more"));
        assert!(
            store.update(Call::now(), Update::Credit(Charge::new(quota, key("alice"), 3))).await.is_err(),
            "{tale}, credit"
        );
        let changed = rule("quota", &["900/300d"], quota.algorithm());
        assert_refused(store.change(Call::now(), &changed).await.err(), &format!("{tale}, change"));
        let denied = check(store, Call::now(), dear, 4).await;
        assert!(!denied.allowed(), "{tale}: a denial needs no memory");
        assert_eq!(used(store, Call::now(), dear).await, 3, "{tale}: nor does a look");
    }
}

#[test]
fn a_redis_without_memory_charges_nothing() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let mut watch = Watch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let (quota, dear) =
                    (rule("quota", &["500/400d"], algorithm), rule("dear", &["5/400d"], algorithm));
                for _ in 0..CHARGES {
                    check(&store, Call::now(), &quota, 1).await;
                }
                let receipt = check(&store, Call::now(), &quota, 4).await.receipt().unwrap();
                check(&store, Call::now(), &dear, 3).await;
                let before = (watch.changes(), watch.everything());
                watch.command(&["CONFIG", "SET", "maxmemory", "1"]);
                let tale = format!("full, {layout:?}, {algorithm}");
                Case { quota: &quota, dear: &dear, receipt, tale: tale.clone() }.refuses(&store).await;
                watch.command(&["CONFIG", "SET", "maxmemory", "0"]);
                assert_eq!((watch.changes(), watch.everything()), before, "{tale}: something was written");
                let decision = check(&store, Call::now(), &quota, 1).await;
                assert!(decision.allowed(), "{tale}: memory is there again");
            }
        }
    });
}
