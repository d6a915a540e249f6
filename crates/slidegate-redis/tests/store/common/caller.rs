//! A program that calls the scripts on a sorted set, under a rule of one limit.

use redis::{Connection, Value};
use slidegate_redis::scripts;

use super::{MILLISECOND_US, RedisServer, SECOND_US, ServerWatch};

/// The key that a [`Caller`] uses.
pub const NAME: &str = "sg:{alice}:api";
/// The form of a rule on sorted sets.
pub const SETS: &str = "sliding-log/sorted-set";
pub const WINDOW_US: u64 = 60 * SECOND_US;
/// The forms of rules that take sets in other units over, and the microseconds of those units.
pub const UNITS: [(&str, u64); 2] =
    [("sliding-log/sorted-set/ms", MILLISECOND_US), ("sliding-log/sorted-set/s", SECOND_US)];

/// What `check` or `peek` replies to one charge of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub allowed: bool,
    pub used: u64,
    pub retry_after_us: u64,
    pub reset_after_us: u64,
    pub place: Vec<u8>,
}

/// A program that calls the scripts under one rule of one limit.
pub struct Caller {
    pub connection: Connection,
    pub name: &'static str,
    pub form: &'static str,
    pub limit: u64,
    pub window_us: u64,
    pub nonce: u64,
}

impl Caller {
    pub fn new(server: &RedisServer, form: &'static str, limit: u64) -> Self {
        Self { connection: server.connection(), name: NAME, form, limit, window_us: WINDOW_US, nonce: 0 }
    }

    fn call(
        &mut self,
        verb: &str,
        at_us: u64,
        before: &[&[u8]],
        form: &str,
        place: &[u8],
    ) -> Result<Value, String> {
        self.nonce += 1;
        let scripts = scripts::all();
        let script = scripts.iter().find(|script| script.name == verb).unwrap();
        let mut eval = redis::cmd("EVAL");
        if verb == "refund" {
            eval.arg(script.text).arg(2).arg(self.name).arg(format!("{}%spent:{}", self.name, self.nonce));
        } else {
            eval.arg(script.text).arg(1).arg(self.name);
        }
        eval.arg(at_us).arg(self.nonce).arg(before).arg(form).arg(self.limit).arg(self.window_us);
        if !place.is_empty() {
            eval.arg(place);
        }
        eval.query(&mut self.connection).map_err(|error| error.to_string())
    }

    pub fn ask(&mut self, verb: &str, at_us: u64, cost: u64) -> Result<Reply, String> {
        let reply = self.call(verb, at_us, &[cost.to_string().as_bytes()], self.form, b"")?;
        let (allowed, used, retry_after_us, reset_after_us, place) = redis::from_redis_value(reply).unwrap();
        Ok(Reply { allowed, used, retry_after_us, reset_after_us, place })
    }

    pub fn check(&mut self, at_us: u64, cost: u64) -> Reply {
        self.ask("check", at_us, cost).unwrap()
    }

    pub fn peek(&mut self, at_us: u64, cost: u64) -> Reply {
        self.ask("peek", at_us, cost).unwrap()
    }

    /// Units that a credit or a refund gives back.
    pub fn given_back(&mut self, verb: &str, at_us: u64, units: u64, place: &[u8]) -> u64 {
        let units = units.to_string();
        // A receipt is presented with its expiry and the latest time of the caller.
        let times: [&[u8]; 5] = [b"99999999999", b"0", b"0", b"0", units.as_bytes()];
        let before = if verb == "refund" { &times[..] } else { &times[4..] };
        let form = if verb == "refund" { SETS } else { self.form };
        let reply = self.call(verb, at_us, before, form, place).unwrap();
        let (_, _, _, units): (u64, u64, u64, u64) = redis::from_redis_value(reply).unwrap();
        units
    }
}

/// Members with a score of another unit.
pub fn unconverted(watch: &mut ServerWatch) -> u64 {
    u64::try_from(watch.number(&["ZCOUNT", NAME, "-inf", "(1000000000000000"])).unwrap()
}

/// The end of the unit that an instant lies in.
pub fn end_us(at_us: u64, unit_us: u64) -> u64 {
    at_us - at_us % unit_us + unit_us - 1
}
