//! What the suites of `slidegate::testing` ask of the store.

use slidegate::testing::Forgetting;
use slidegate::{Key, Rule};

use crate::link::ScriptCall;
use crate::scripts;
use crate::store::RedisStore;

/// It notes no time, and forgets by the server's clock only.
impl Forgetting for RedisStore {
    const LOOKS_EVERY: usize = 16;

    async fn seen(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let keys = vec![self.keys.name(rule.name(), key.as_str())];
        match self.link.call(None, ScriptCall { script: &scripts::LOOK, keys, args: Vec::new() }).await {
            Ok(redis::Value::BulkString(bytes)) => Some(bytes.into_iter().map(char::from).collect()),
            _ => None,
        }
    }
}
