//! Inspects a server: its keys, its counters and its clock.

use std::collections::BTreeMap;

use redis::{Connection, Value, from_redis_value};

use super::server::{RedisServer, command};

/// Inspects a server over a connection of its own.
pub struct ServerWatch {
    connection: Connection,
    /// The longest duration of a watched call, for tests that set it.
    pub longest_us: u64,
}

impl ServerWatch {
    pub fn new(server: &RedisServer) -> Self {
        Self { connection: server.connection(), longest_us: 0 }
    }

    pub fn command(&mut self, words: &[&str]) -> Value {
        command(&mut self.connection, words)
    }

    pub fn text(&mut self, words: &[&str]) -> String {
        from_redis_value(self.command(words)).expect("a reply that is text")
    }

    pub fn number(&mut self, words: &[&str]) -> i64 {
        from_redis_value(self.command(words)).expect("a reply that is a number")
    }

    /// Writes since the server started: Redis's own counter.
    pub fn changes(&mut self) -> u64 {
        let info = self.text(&["INFO", "persistence"]);
        let counter = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        counter.and_then(|count| count.trim().parse().ok()).expect("INFO names the counter")
    }

    /// The names of all keys, sorted.
    pub fn keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> =
            from_redis_value(self.command(&["KEYS", "*"])).expect("the names of keys are text here");
        keys.sort_unstable();
        keys
    }

    /// The TTL of a key in milliseconds. Panics if the key is missing or has none.
    pub fn pttl_ms(&mut self, key: &str) -> u64 {
        let pttl = self.number(&["PTTL", key]);
        u64::try_from(pttl).unwrap_or_else(|_| panic!("{key} has no TTL: PTTL {pttl}"))
    }

    /// The expiry of a key in microseconds since 1970. Panics if the key is missing or has none.
    pub fn ends_us(&mut self, key: &str) -> u64 {
        let ends_ms = self.ends_ms(key);
        1_000 * u64::try_from(ends_ms).unwrap_or_else(|_| panic!("{key} has no TTL: {ends_ms}"))
    }

    /// The answer of `PEXPIRETIME`, which Redis 6 does not have.
    fn ends_ms(&mut self, key: &str) -> i64 {
        loop {
            let before_ms = self.time_us() / 1_000;
            let pttl_ms = self.number(&["PTTL", key]);
            if pttl_ms < 0 {
                return pttl_ms;
            }
            // Only within one millisecond is the sum exact.
            if self.time_us() / 1_000 == before_ms {
                return i64::try_from(before_ms).expect("milliseconds fit") + pttl_ms;
            }
        }
    }

    /// The server's clock.
    pub fn time_us(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = from_redis_value(self.command(&["TIME"])).expect("two numbers");
        seconds * 1_000_000 + micros
    }

    /// Every key with its dumped value and its expiry.
    pub fn everything(&mut self) -> BTreeMap<String, (Value, i64)> {
        let mut values = BTreeMap::new();
        for key in self.keys() {
            let ends = self.ends_ms(&key);
            values.insert(key.clone(), (self.command(&["DUMP", &key]), ends));
        }
        values
    }

    /// Replaces a value and keeps its TTL.
    pub fn set(&mut self, key: &str, value: &[u8]) {
        let set = redis::cmd("SET").arg(key).arg(value).arg("KEEPTTL").exec(&mut self.connection);
        set.expect("a value can be set");
    }

    /// Bytes of all values, which must be strings.
    pub fn size(&mut self) -> i64 {
        self.keys().iter().map(|key| self.number(&["STRLEN", key])).sum()
    }

    /// Commands of scripts since [`ServerWatch::reset_calls`], by name.
    pub fn calls(&mut self) -> BTreeMap<String, u64> {
        let info = self.text(&["INFO", "commandstats"]);
        let of_line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let calls = rest.split_once(',')?.0.parse().ok()?;
            let ours = ["eval", "info", "config", "script", "client", "command", "hello"];
            (!ours.iter().any(|own| name.starts_with(own))).then(|| (name.to_owned(), calls))
        };
        info.lines().filter_map(of_line).collect()
    }

    pub fn reset_calls(&mut self) {
        self.command(&["CONFIG", "RESETSTAT"]);
    }
}
