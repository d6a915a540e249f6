//! The stores under test: both layouts, with long timeouts.

use std::time::Duration;

use slidegate::Algorithm;
use slidegate_redis::{LogLayout, RedisOptions, RedisStore};

use super::every_algorithm;
use super::server::async_connection;

/// Enough on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The packed layout.
pub async fn store(url: &str) -> RedisStore {
    connect(options(url)).await
}

/// The packed layout, with calls that end within `deadline`.
pub async fn store_within(url: &str, deadline: Duration) -> RedisStore {
    connect(options(url).deadline(deadline).unwrap()).await
}

/// A layout under keys of its own.
pub async fn prefixed(url: &str, prefix: &str, layout: LogLayout) -> RedisStore {
    connect(options(url).key_prefix(prefix).unwrap().log_layout(layout)).await
}

/// A layout in an empty database of its own, with one connection.
pub async fn in_database(url: &str, database: u64, layout: LogLayout) -> RedisStore {
    let url = format!("{url}/{database}");
    let mut connection = async_connection(&redis::Client::open(url.as_str()).unwrap()).await;
    redis::cmd("FLUSHDB").exec_async(&mut connection).await.unwrap();
    connect(options(&url).connections(1).unwrap().log_layout(layout)).await
}

/// Every layout.
pub async fn stores(url: &str) -> Vec<(LogLayout, RedisStore)> {
    let mut stores = Vec::new();
    for layout in [LogLayout::Packed, LogLayout::SortedSet] {
        stores.push((layout, connect(options(url).log_layout(layout)).await));
    }
    stores
}

/// The algorithms that a layout affects.
pub fn algorithms_of(layout: LogLayout) -> Vec<Algorithm> {
    match layout {
        LogLayout::Packed => every_algorithm(),
        LogLayout::SortedSet => vec![Algorithm::SlidingLog],
    }
}

pub fn options(url: &str) -> RedisOptions {
    RedisOptions::new(url).unwrap().deadline(TIMEOUT).unwrap().connect_timeout(TIMEOUT).unwrap()
}

async fn connect(options: RedisOptions) -> RedisStore {
    RedisStore::connect_with(&options).await.unwrap()
}
