//! Receipts and credits at the bounds of the stored form.

use crate::common::*;
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::{Call, Store, Update};
use slidegate::{Algorithm, Charge};

/// A settlement may fill a counter exactly to the first number that its width does not hold.
#[test]
fn a_settlement_widens_the_counters_of_buckets() {
    let server = RedisServer::start();
    let algorithm = Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), Edge::Full);
    run(async {
        let store = store(&server.url()).await;
        for (limit, units) in [(200_u64, 256_u64), (60_000, 65_536), (4_000_000_000, 4_294_967_296)] {
            let rule = rule(&format!("to-{limit}"), &[&format!("{limit}/10s")], algorithm);
            let now = Call::at_us(BOUNDARY_US);
            let receipt = check(&store, now, &rule, 100).await.receipt().unwrap();
            store.update(now, Update::Settle(&receipt, units)).await.unwrap();
            assert_eq!(used(&store, now, &rule).await, units);
        }
    });
}

/// A credit takes units of a merged entry. Whose units are left is unknown, so its charges give nothing back.
#[test]
fn a_charge_that_was_merged_and_credited_gives_nothing_back() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        let rule = rule("api", &["100/10s"], Algorithm::CompactLog(Entries::new(4).unwrap()));
        let mut receipts = Vec::new();
        for after_us in 0..5 {
            receipts
                .push(check(&store, Call::at_us(BOUNDARY_US + after_us), &rule, 2).await.receipt().unwrap());
        }
        let now = Call::at_us(BOUNDARY_US + 10);
        let refunded = store.update(now, Update::Refund(&receipts[0])).await.unwrap();
        assert_eq!(refunded.units, 2, "before the credit");
        let credited = store.update(now, Update::Credit(Charge::new(&rule, key("alice"), 1))).await.unwrap();
        assert_eq!(credited.units, 1);
        let refunded = store.update(now, Update::Refund(&receipts[1])).await.unwrap();
        assert_eq!((refunded.applied, refunded.units), (false, 0), "after the credit");
        assert_eq!(used(&store, now, &rule).await, 7);
    });
}

/// A backlog that drained under another limit meanwhile: how much of the charge is left is unknown.
#[test]
fn a_charge_of_gcra_gives_nothing_back_after_the_limit_changed_twice() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        let [fast, slow] = ["100/10s", "50/10s"].map(|rate| rule("api", &[rate], Algorithm::Gcra));
        let receipt = check(&store, Call::at_us(BOUNDARY_US), &fast, 10).await.receipt().unwrap();
        check(&store, Call::at_us(BOUNDARY_US + 1), &slow, 1).await;
        check(&store, Call::at_us(BOUNDARY_US + 2), &fast, 1).await;
        let refunded = store.update(Call::at_us(BOUNDARY_US + 3), Update::Refund(&receipt)).await.unwrap();
        assert_eq!((refunded.applied, refunded.units), (false, 0));
    });
}
