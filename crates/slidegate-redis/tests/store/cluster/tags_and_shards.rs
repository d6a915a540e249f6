//! A tag keeps keys in one slot; shards of a key are spread over the nodes.

use std::collections::BTreeSet;

use super::{key_on_each, options_of};
use crate::common::*;
use slidegate::store::{Call, Store, Update};
use slidegate::{Admission, Algorithm, OwnedKey, Rule};
use slidegate_redis::RedisStore;

#[test]
fn charges_on_keys_of_one_tag_are_one_step() {
    let cluster = RedisCluster::shared();
    let keys = key_on_each(&cluster);
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let api = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let tagged = keys.each_ref().map(|key| OwnedKey::tagged(key, "team:7").unwrap());
        let charges = tagged.each_ref().map(|key| api.charge(key, 2).unwrap());
        let together = Admission::new(&charges).unwrap();
        for allowed in [true, true, false] {
            let decision = store.check(Call::now(), &together).await.unwrap();
            assert_eq!((decision.allowed(), decision.atomic()), (allowed, true));
        }
        let slots: BTreeSet<u16> =
            cluster.keys(&format!("{prefix}:")).iter().map(|name| cluster.slot(name)).collect();
        assert_eq!(slots, BTreeSet::from([cluster.slot("team:7")]));
        let untagged = keys.each_ref().map(|key| api.charge(key, 2).unwrap());
        let decision = store.check(Call::now(), &Admission::new(&untagged).unwrap()).await.unwrap();
        assert_eq!((decision.allowed(), decision.atomic(), decision.used()), (true, false, Some(2)));
    });
}

#[test]
fn the_shards_of_a_key_are_on_several_nodes_and_one_key_to_its_users() {
    let cluster = RedisCluster::shared();
    run(async {
        let (options, prefix) = options_of(&cluster);
        let store = RedisStore::connect_with(&options).await.unwrap();
        let hot = Rule::builder("hot").limit("1600/1h".parse().unwrap()).shards(16).build().unwrap();
        let batch = vec![admission(&[(&hot, "alice", 1)]); 100];
        let mut receipts = Vec::new();
        for decision in store.check_batch(Call::now(), &batch).await {
            let decision = decision.unwrap();
            assert_eq!((decision.allowed(), decision.atomic(), decision.limit()), (true, true, Some(100)));
            receipts.push(decision.receipt().unwrap());
        }
        let names = cluster.keys(&format!("{prefix}:"));
        let nodes: BTreeSet<usize> = names.iter().map(|name| cluster.primary_of(name)).collect();
        assert_eq!(nodes.len(), 3, "{names:?}");
        assert_eq!(used(&store, Call::now(), &hot).await, 100);
        for receipt in &receipts[..10] {
            assert!(store.update(Call::now(), Update::Refund(receipt)).await.unwrap().applied);
        }
        let credit = Update::Credit(hot.charge("alice", 30).unwrap());
        assert_eq!(store.update(Call::now(), credit).await.unwrap().units, 30);
        assert_eq!(used(&store, Call::now(), &hot).await, 60);
        let quota = rule("quota", &["500/1h"], Algorithm::Gcra);
        let both = admission(&[(&hot, "alice", 1), (&quota, "alice", 1)]);
        assert!(store.check(Call::now(), &both).await.unwrap().allowed(), "in whatever slots");
        let reset = store.update(Call::now(), Update::Reset(&hot, key("alice"))).await.unwrap();
        assert_eq!((reset.units, used(&store, Call::now(), &hot).await), (61, 0));
    });
}
