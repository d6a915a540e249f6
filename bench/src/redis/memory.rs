//! Memory of one key by `MEMORY USAGE`.

use anyhow::{Result, ensure};
use redis::{Connection, from_redis_value};

use crate::server::command;

/// Bytes of all keys of a rule: one, or one per limit.
pub(crate) fn key_bytes(connection: &mut Connection, rule_name: &str) -> Result<u64> {
    let pattern = format!("sg:*:{rule_name}*");
    let keys: Vec<String> = from_redis_value(command(connection, &["KEYS", &pattern]))?;
    ensure!(!keys.is_empty(), "no key matches {pattern}");
    let mut bytes = 0;
    for key in &keys {
        // `SAMPLES 0` counts every element; their sizes may differ.
        let usage: u64 = from_redis_value(command(connection, &["MEMORY", "USAGE", key, "SAMPLES", "0"]))?;
        bytes += usage;
    }
    Ok(bytes)
}
