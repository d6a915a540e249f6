//! Calls the scripts for other languages, as a client of another language does.

use redis::{Connection, Value};
use slidegate::Algorithm;
use slidegate_redis::scripts::{self, Script};

/// The script of a verb.
pub fn script(verb: &str) -> &'static Script {
    let scripts = scripts::all();
    scripts.into_iter().find(|script| script.name == verb).expect("a verb")
}

/// The form of a rule, as the contract of `check` describes it.
pub fn form(algorithm: Algorithm, limits: usize) -> String {
    let name = algorithm.name();
    match algorithm {
        Algorithm::CompactLog(entries) if limits == 1 => format!("{name},{}", entries.get()),
        Algorithm::CompactLog(entries) => format!("{name},{},,{limits}", entries.get()),
        Algorithm::SlidingBuckets(buckets, edge) if limits == 1 => {
            format!("{name},{},{}", buckets.get(), edge.name())
        }
        Algorithm::SlidingBuckets(buckets, edge) => {
            format!("{name},{},{},{limits}", buckets.get(), edge.name())
        }
        _ if limits == 1 => name.to_owned(),
        _ => format!("{name},0,,{limits}"),
    }
}

/// Calls a script by its hash, or by its text where Redis does not know it. An error reply is its text.
pub fn call(
    connection: &mut Connection,
    script: &Script,
    keys: &[&str],
    args: &[String],
) -> Result<Vec<Value>, String> {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(keys.len()).arg(keys).arg(args);
    let reply: redis::RedisResult<Value> = command.query(connection);
    let reply = match reply {
        Err(error) if error.to_string().contains("NOSCRIPT") || error.to_string().contains("NoScript") => {
            let mut command = redis::cmd("EVAL");
            command.arg(script.text).arg(keys.len()).arg(keys).arg(args);
            command.query(connection)
        }
        reply => reply,
    };
    match reply {
        Ok(Value::Array(items)) => Ok(items),
        Ok(other) => Ok(vec![other]),
        Err(error) => Err(error.to_string()),
    }
}

/// A reply as text: what a client that decodes replies gets.
pub fn texts(reply: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => {
            assert!(bytes.iter().all(u8::is_ascii_hexdigit), "{bytes:?} is not text-safe");
            String::from_utf8(bytes.clone()).expect("ASCII")
        }
        other => panic!("{other:?} is no number and no text"),
    };
    reply.iter().map(text).collect()
}
