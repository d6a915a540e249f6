//! What Redis itself says of what was done to it.

use std::collections::BTreeMap;

use redis::{Connection, Value, from_redis_value};

use super::server::{RedisServer, command};

/// A look into a server, over a connection of its own.
pub struct Watch {
    connection: Connection,
    /// The longest that something took which was watched, for tests that ask for it.
    pub longest_us: u64,
}

impl Watch {
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

    /// Milliseconds that a key still lives. A key without an end is a mistake, and so is one that is not there.
    pub fn pttl_ms(&mut self, key: &str) -> u64 {
        let pttl = self.number(&["PTTL", key]);
        u64::try_from(pttl).unwrap_or_else(|_| panic!("{key} has no end: PTTL {pttl}"))
    }

    /// When a key ends, in microseconds since 1970. A key without an end is a mistake, and so is one that is not there.
    pub fn ends_us(&mut self, key: &str) -> u64 {
        let ends_ms = self.ends_ms(key);
        1_000 * u64::try_from(ends_ms).unwrap_or_else(|_| panic!("{key} has no end: {ends_ms}"))
    }

    /// What `PEXPIRETIME` answers, which Redis 6 does not have.
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

    /// What the server's clock says.
    pub fn time_us(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = from_redis_value(self.command(&["TIME"])).expect("two numbers");
        seconds * 1_000_000 + micros
    }

    /// Every key with its value as Redis would save it and the instant at which it ends.
    pub fn everything(&mut self) -> BTreeMap<String, (Value, i64)> {
        let mut found = BTreeMap::new();
        for key in self.keys() {
            let ends = self.ends_ms(&key);
            found.insert(key.clone(), (self.command(&["DUMP", &key]), ends));
        }
        found
    }

    /// Replaces a value and keeps its end.
    pub fn set(&mut self, key: &str, value: &[u8]) {
        let set = redis::cmd("SET").arg(key).arg(value).arg("KEEPTTL").exec(&mut self.connection);
        set.expect("a value can be set");
    }

    /// Bytes of all values, which must be strings.
    pub fn size(&mut self) -> i64 {
        self.keys().iter().map(|key| self.number(&["STRLEN", key])).sum()
    }

    /// Commands that scripts have called since [`Watch::forget_calls`], by name.
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

    pub fn forget_calls(&mut self) {
        self.command(&["CONFIG", "RESETSTAT"]);
    }
}
