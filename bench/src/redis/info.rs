//! Version and processor time of redis-server.

use anyhow::{Context, Result};
use redis::{Connection, from_redis_value};

use crate::server::command;

/// Its processor time in microseconds.
pub(crate) fn cpu_us(connection: &mut Connection) -> Result<u64> {
    let info: String = from_redis_value(command(connection, &["INFO", "cpu"]))?;
    let [user, system] = ["used_cpu_user:", "used_cpu_sys:"].map(|name| seconds_us(&info, name));
    Ok(user? + system?)
}

/// Its version.
pub(crate) fn version(connection: &mut Connection) -> Result<String> {
    let info: String = from_redis_value(command(connection, &["INFO", "server"]))?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(version.context("INFO names no version")?.trim().to_owned())
}

/// A figure in seconds with six decimals.
fn seconds_us(info: &str, name: &str) -> Result<u64> {
    let text = info.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let (seconds, decimals) = text.trim().split_once('.').context("seconds with decimals")?;
    Ok(seconds.parse::<u64>()? * 1_000_000 + format!("{decimals:0<6}")[..6].parse::<u64>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_parsed_to_the_microsecond() {
        let info = "# CPU\r\nused_cpu_sys:0.085401\r\nused_cpu_user:12.5\r\n";
        assert_eq!(seconds_us(info, "used_cpu_sys:").unwrap(), 85_401);
        assert_eq!(seconds_us(info, "used_cpu_user:").unwrap(), 12_500_000);
        assert!(seconds_us(info, "used_cpu:").is_err());
    }
}
