//! The store on a real Redis Cluster.

mod cross_slot;
mod failover;
mod receipts;
mod resharding;
mod same_promises;
mod tags_and_shards;
mod templates;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::*;
use slidegate_redis::{RedisOptions, RedisStore};

/// Options for keys of their own in a cluster, and their prefix.
fn options_of(cluster: &RedisCluster) -> (RedisOptions, String) {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let prefix = format!("t{}", DRAWN.fetch_add(1, Ordering::Relaxed));
    (options(&cluster.url()).key_prefix(&prefix).unwrap(), prefix)
}

/// The same, with a user of its own, whose rights a test may take.
fn options_as(cluster: &RedisCluster, user: &str) -> (RedisOptions, String) {
    for node in cluster.nodes() {
        node.command(&["ACL", "SETUSER", user, "on", ">secret", "~*", "+@all"]);
    }
    let prefix = options_of(cluster).1;
    let url = cluster.url().replacen("://", &format!("://{user}:secret@"), 1);
    (options(&url).key_prefix(&prefix).unwrap(), prefix)
}

/// A store with keys of its own in a cluster.
async fn store_in(cluster: &RedisCluster) -> RedisStore {
    RedisStore::connect_with(&options_of(cluster).0).await.unwrap()
}

/// Keys whose slots a primary owns: what stands before a hash tag does not change its slot.
fn keys_on(cluster: &RedisCluster, primary: usize, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("key{number}"));
    names.filter(|name| cluster.primary_of(name) == primary).take(count).collect()
}

/// A key on every primary, in the order of their slots.
fn key_on_each(cluster: &RedisCluster) -> [String; 3] {
    [0, 1, 2].map(|primary| keys_on(cluster, primary, 1).remove(0))
}
