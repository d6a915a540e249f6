//! The suite that every store must pass. `differential.rs` compares with the model.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::RedisServer;
use slidegate::testing::conformance;
use slidegate_redis::LogLayout;

/// Databases are reused. Each test needs one of its own, because a rule change scans all keys of a database.
const DATABASES: u64 = 64;

#[tokio::test]
async fn the_shared_store_passes_the_conformance_suite() {
    let server = RedisServer::start_with(&["--databases", &DATABASES.to_string()]);
    let stores = AtomicU64::new(0);
    let fresh = async || {
        let database = stores.fetch_add(1, Ordering::Relaxed) % DATABASES;
        crate::common::in_database(&server.url(), database, LogLayout::Packed).await
    };
    conformance::promises(&fresh).await.unwrap_or_else(|broken| panic!("{broken}"));
}
