//! The connection layer against real servers, and against stubs with replies that no real server sends.

mod deadlines;
mod error_replies;
mod handshake;
mod lazy;
mod load;
mod scripts;
mod server;
mod stub;
mod stub_replies;

use std::sync::LazyLock;
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;

use super::{Link, ScriptCall};
use crate::options::RedisOptions;
use crate::scripts::Script;
use server::RedisServer;

/// Enough on a slow machine.
const AMPLE: Duration = Duration::from_secs(60);

static ONE: LazyLock<Script> = LazyLock::new(|| Script::new("one", "return 1"));
static ECHO: LazyLock<Script> = LazyLock::new(|| Script::new("echo", "return {KEYS[1], ARGV[1]}"));
static COUNT: LazyLock<Script> = LazyLock::new(|| Script::new("count", "return redis.call('INCR', KEYS[1])"));

fn one() -> ScriptCall {
    ScriptCall { script: &ONE, keys: Vec::new(), args: Vec::new() }
}

fn echo(key: &[u8], arg: &[u8]) -> ScriptCall {
    ScriptCall { script: &ECHO, keys: vec![key.to_vec()], args: vec![arg.to_vec()] }
}

/// Increments the number at `key`.
fn count(key: &str) -> ScriptCall {
    ScriptCall { script: &COUNT, keys: vec![key.into()], args: Vec::new() }
}

fn echoed(key: &[u8], arg: &[u8]) -> Value {
    Value::Array(vec![Value::BulkString(key.to_vec()), Value::BulkString(arg.to_vec())])
}

/// Options whose deadline does not pass on a slow machine.
fn options(url: &str) -> RedisOptions {
    RedisOptions::new(url).unwrap().deadline(AMPLE).unwrap().connect_timeout(AMPLE).unwrap()
}

async fn link(server: &RedisServer) -> Link {
    Link::connect(&options(&server.url())).await.unwrap()
}

fn counted(server: &RedisServer, key: &str) -> i64 {
    match server.command(&["GET", key]) {
        Value::BulkString(number) => String::from_utf8(number).unwrap().parse().unwrap(),
        Value::Nil => 0,
        other => panic!("{other:?}"),
    }
}

/// Counts the results of many calls.
#[derive(Debug, Default)]
struct Tally {
    answered: i64,
    ambiguous: i64,
    /// Certainly not executed.
    failed: i64,
}

impl Tally {
    fn count(&mut self, answer: &Result<Value, StoreError>) {
        match answer {
            Ok(Value::Int(_)) => self.answered += 1,
            Err(error) if error.maybe_charged() => self.ambiguous += 1,
            Err(StoreError::Unavailable { .. }) => self.failed += 1,
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn join(&mut self, other: &Self) {
        self.answered += other.answered;
        self.ambiguous += other.ambiguous;
        self.failed += other.failed;
    }

    /// Asserts that no call was executed twice, and every answered one was executed.
    fn assert_executed(&self, executed: i64) {
        let bounds = self.answered..=self.answered + self.ambiguous;
        assert!(bounds.contains(&executed), "{executed} were executed: {self:?}");
    }
}
