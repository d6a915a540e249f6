//! The hooks that the test suites of `slidegate::testing` need.

use std::sync::LazyLock;

use slidegate::testing::ExpiringStore;
use slidegate::{Key, Rule};

use crate::link::ScriptCall;
use crate::scripts::Script;
use crate::store::RedisStore;

/// Dumps the bytes of a state, in both layouts.
static DUMP: LazyLock<Script> = LazyLock::new(|| {
    let text = "local value, beside = redis.call('DUMP', KEYS[1]), redis.call('DUMP', KEYS[1] .. '%state')
return (value or beside) and (value or '') .. (beside or '')";
    Script::new("dump", text)
});

/// States expire by the server's clock only.
impl ExpiringStore for RedisStore {
    const INSPECT_EVERY: usize = 16;

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let keys = vec![self.keys.state(rule.name(), key)];
        match self.link.call(None, ScriptCall { script: &DUMP, keys, args: Vec::new() }).await {
            Ok(redis::Value::BulkString(bytes)) => Some(bytes.into_iter().map(char::from).collect()),
            _ => None,
        }
    }
}
