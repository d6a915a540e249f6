//! Sets of other limiters with scores in milliseconds or seconds: taken over where the rule says so, never over, and with
//! bounded work in every call.

use std::collections::BTreeMap;

use redis::{Connection, Value};
use slidegate::testing::{Rng, search_size};
use slidegate_redis::scripts;

use crate::common::*;

const NAME: &str = "sg:{alice}:api";
const SETS: &str = "sliding-log/sorted-set";
const WINDOW_US: u64 = 60 * SECOND_US;
/// The units that a rule can name, and their microseconds.
const UNITS: [(&str, u64); 2] =
    [("sliding-log/sorted-set/ms", MILLISECOND_US), ("sliding-log/sorted-set/s", SECOND_US)];
/// How many members one call converts or removes at most.
const MEMBERS_MAX: u64 = 1_000;

/// A sliding log as others write it: the score is the caller's clock in its unit, the member is unique.
const OTHER: &str = "
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[2])
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
    return 1";

/// What `check` or `peek` replies to one charge of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply {
    allowed: bool,
    used: u64,
    retry_after_us: u64,
    reset_after_us: u64,
    place: Vec<u8>,
}

/// A program that calls the scripts under one rule of one limit.
struct Caller {
    connection: Connection,
    name: &'static str,
    form: &'static str,
    limit: u64,
    window_us: u64,
    nonce: u64,
}

impl Caller {
    fn new(server: &RedisServer, form: &'static str, limit: u64) -> Self {
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

    fn ask(&mut self, verb: &str, at_us: u64, cost: u64) -> Result<Reply, String> {
        let reply = self.call(verb, at_us, &[cost.to_string().as_bytes()], self.form, b"")?;
        let (allowed, used, retry_after_us, reset_after_us, place) = redis::from_redis_value(reply).unwrap();
        Ok(Reply { allowed, used, retry_after_us, reset_after_us, place })
    }

    fn check(&mut self, at_us: u64, cost: u64) -> Reply {
        self.ask("check", at_us, cost).unwrap()
    }

    fn peek(&mut self, at_us: u64, cost: u64) -> Reply {
        self.ask("peek", at_us, cost).unwrap()
    }

    /// Units that a credit or a refund gives back.
    fn given_back(&mut self, verb: &str, at_us: u64, units: u64, place: &[u8]) -> u64 {
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

fn add(watch: &mut ServerWatch, name: &str, scores: &[String]) {
    for (number, score) in scores.iter().enumerate() {
        watch.command(&["ZADD", name, score, &format!("{score}-{number}")]);
    }
}

fn members(watch: &mut ServerWatch, name: &str) -> Vec<(String, u64)> {
    redis::from_redis_value(watch.command(&["ZRANGE", name, "0", "-1", "WITHSCORES"])).unwrap()
}

/// Members with a score of another unit.
fn unconverted(watch: &mut ServerWatch) -> u64 {
    u64::try_from(watch.number(&["ZCOUNT", NAME, "-inf", "(1000000000000000"])).unwrap()
}

/// The end of the unit that an instant lies in.
fn end_us(at_us: u64, unit_us: u64) -> u64 {
    at_us - at_us % unit_us + unit_us - 1
}

#[test]
fn a_set_is_taken_over_by_the_first_write_and_only_once() {
    for (form, unit_us) in UNITS {
        let server = RedisServer::start();
        let mut watch = ServerWatch::new(&server);
        let mut caller = Caller::new(&server, form, 5);
        // The last request was made in the unit that has not ended.
        let now_us = BOUNDARY_US + WINDOW_US + 7 * SECOND_US + 300;
        let times_us =
            [BOUNDARY_US, BOUNDARY_US + 20 * SECOND_US, BOUNDARY_US + 40 * SECOND_US, now_us - 200];
        add(&mut watch, NAME, &times_us.map(|at_us| (at_us / unit_us).to_string()));
        let before = watch.everything();

        let denied = caller.check(now_us, 3);
        assert_eq!((denied.allowed, denied.used), (false, 3), "{form}");
        let first_leaves_us = end_us(times_us[1], unit_us) + WINDOW_US;
        assert_eq!(denied.retry_after_us, first_leaves_us - now_us, "{form}");
        assert_eq!(denied.reset_after_us, end_us(now_us, unit_us) + WINDOW_US - now_us, "{form}");
        let [earlier, there] = [first_leaves_us - 1, first_leaves_us].map(|at_us| caller.peek(at_us, 3));
        assert_eq!((earlier.allowed, earlier.used), (false, 3), "{form}");
        assert_eq!((there.allowed, there.used), (true, 2), "{form}");
        assert_eq!(watch.everything(), before, "{form}: a denial or a peek has written");

        let admitted = caller.check(now_us, 1);
        assert_eq!(
            (admitted.allowed, admitted.used, admitted.reset_after_us),
            (true, 4, WINDOW_US),
            "{form}"
        );
        let kept: BTreeMap<_, _> = members(&mut watch, NAME).into_iter().collect();
        let stamps_us = [end_us(times_us[1], unit_us), end_us(times_us[2], unit_us), now_us];
        for (number, stamp_us) in (1..).zip(stamps_us) {
            let member = format!("{}-{number}", times_us[number] / unit_us);
            assert_eq!(kept.get(&member), Some(&stamp_us), "{form}: {kept:?}");
        }
        assert_eq!(kept.len(), 4, "{form}: what had left is removed: {kept:?}");
        assert_eq!(watch.keys(), [NAME.to_owned(), format!("{NAME}%state")]);
        for key in watch.keys() {
            assert!(watch.pttl_ms(&key) > 0, "{form}: {key}");
        }

        // What is stored is now as if it had always been ours.
        assert!(caller.check(now_us, 1).allowed && !caller.check(now_us, 1).allowed, "{form}");
        let again: BTreeMap<_, _> = members(&mut watch, NAME).into_iter().collect();
        assert!(kept.iter().all(|entry| again.get(entry.0) == Some(entry.1)), "{form}: {again:?}");
        assert!(caller.check(first_leaves_us, 1).allowed, "{form}");
        assert_eq!(caller.check(first_leaves_us, 1).used, 5, "{form}");
    }
}

/// Requests of the other limiter counted as made at the beginning of their unit would leave too early.
#[test]
fn no_window_is_exceeded_across_a_takeover() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let mut other = server.connection();
    for (form, unit_us) in UNITS {
        let mut tight = 0;
        for seed in 0..search_size(30) {
            watch.command(&["FLUSHALL"]);
            let mut rng = Rng::new(seed);
            let mut caller = Caller::new(&server, form, rng.between(1, 6));
            // Windows of some units, so that a unit matters.
            caller.window_us = rng.between(1, 4) * unit_us;
            let (limit, window_us) = (caller.limit, caller.window_us);
            let mut now_us = BOUNDARY_US + rng.below(SECOND_US);
            let mut asked_us = Vec::new();
            for number in 0..40_u64 {
                now_us += rng.below(window_us / limit);
                let mut ask = redis::cmd("EVAL");
                ask.arg(OTHER)
                    .arg(1)
                    .arg(NAME)
                    .arg(now_us / unit_us)
                    .arg(window_us / unit_us)
                    .arg(limit)
                    .arg(number);
                ask.exec(&mut other).unwrap();
                asked_us.push(now_us);
            }
            // What the other limiter has removed, also if too early, cannot be known.
            let asked =
                members(&mut watch, NAME).into_iter().map(|(member, _)| member.parse::<usize>().unwrap());
            let mut admitted_us: Vec<u64> = asked.map(|number| asked_us[number]).collect();
            for number in 0..60 {
                now_us += rng.below(window_us / limit);
                let reply = caller.check(now_us, 1);
                let within = admitted_us.iter().filter(|&&at_us| at_us + window_us > now_us).count() as u64;
                let case = format!("{form}, seed {seed}, request {number}: {within} of {limit}, {reply:?}");
                if reply.allowed {
                    assert!(within < limit, "{case}");
                    tight += u64::from(within + 1 == limit);
                    admitted_us.push(now_us);
                } else {
                    let at_us = now_us + reply.retry_after_us;
                    assert!(caller.peek(at_us, 1).allowed && !caller.peek(at_us - 1, 1).allowed, "{case}");
                }
            }
        }
        assert!(tight > 5 * search_size(30), "{form}: {tight} admissions filled a window");
    }
}

/// A set of any size is decided on at once, and converted by the calls that write. Meanwhile every answer equals that on
/// the same set in microseconds.
#[test]
fn a_large_set_is_converted_step_by_step_with_equal_answers() {
    const LIVE: u64 = 3_500;
    const GONE: u64 = 2_300;
    for (form, unit_us) in UNITS {
        let server = RedisServer::start();
        let mut watch = ServerWatch::new(&server);
        let mut mixed = Caller::new(&server, form, LIVE + 60);
        let mut plain = Caller { name: "sg:{bob}:api", ..Caller::new(&server, SETS, LIVE + 60) };
        (mixed.window_us, plain.window_us) = (3_600 * SECOND_US, 3_600 * SECOND_US);
        let window_us = mixed.window_us;
        let first_us = BOUNDARY_US + window_us + 999_800;
        let (mut scored, mut stamped) = (redis::cmd("ZADD"), redis::cmd("ZADD"));
        scored.arg(NAME);
        stamped.arg(plain.name);
        for number in 0..LIVE + GONE {
            let at_us = if number < GONE {
                BOUNDARY_US - 2 * SECOND_US - number
            } else {
                first_us - (number - GONE) * (window_us - 2 * SECOND_US) / LIVE
            };
            scored.arg(at_us / unit_us).arg(number);
            stamped.arg(end_us(at_us, unit_us).min(first_us)).arg(number);
        }
        let mut connection = server.connection();
        scored.exec(&mut connection).unwrap();
        stamped.exec(&mut connection).unwrap();

        let (mut rng, mut now_us, mut denied, mut mixed_calls) = (Rng::new(unit_us), first_us, 0, 0);
        let mut left = unconverted(&mut watch);
        for step in 0..400 {
            let case = format!("{form}, step {step}, {left} to convert");
            let cost = rng.between(1, 40);
            match rng.below(if step == 0 { 1 } else { 8 }) {
                0..=4 => {
                    let reply = mixed.check(now_us, cost);
                    assert_eq!(plain.check(now_us, cost), reply, "{case}");
                    denied += u64::from(!reply.allowed);
                    if reply.allowed && rng.below(4) == 0 {
                        let [given, expected] = [&mut mixed, &mut plain]
                            .map(|caller| caller.given_back("refund", now_us, cost, &reply.place));
                        assert_eq!((given, expected), (cost, cost), "{case}");
                    }
                }
                5 => assert_eq!(mixed.peek(now_us, cost), plain.peek(now_us, cost), "{case}"),
                6 => {
                    let given = mixed.given_back("credit", now_us, cost, b"");
                    assert_eq!(plain.given_back("credit", now_us, cost, b""), given, "{case}");
                    assert_eq!(given, cost, "{case}");
                }
                _ => now_us += rng.below(60 * SECOND_US),
            }
            let now_left = unconverted(&mut watch);
            // A refund writes too. Neither may do more than its share.
            assert!(left - now_left <= 4 * MEMBERS_MAX, "{case}: {now_left} are left");
            mixed_calls += u64::from(now_left > 0);
            left = now_left;
        }
        assert!(
            denied > 20 && mixed_calls > 2,
            "{form}: {denied} denied, {mixed_calls} calls on a mixed set"
        );
        assert_eq!(left, 0, "{form}");
        let value_bytes = watch.number(&["STRLEN", &format!("{NAME}%state")]);
        assert_eq!(value_bytes, 36, "{form}: the set is as any other");
    }
}

/// One call converts a thousand members at most, and removes as many that have left.
#[test]
fn a_call_on_a_large_set_does_bounded_work() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let (form, unit_us) = UNITS[0];
    let mut caller = Caller::new(&server, form, 1_000_000);
    let mut add = redis::cmd("ZADD");
    add.arg(NAME);
    for number in 0..9_000 {
        // A third has left.
        let at_us = BOUNDARY_US - (number * 10 + 5) * MILLISECOND_US;
        add.arg(at_us / unit_us).arg(number);
    }
    add.exec(&mut server.connection()).unwrap();
    let size = |watch: &mut ServerWatch| watch.number(&["ZCARD", NAME]);
    assert_eq!(caller.peek(BOUNDARY_US, 1).used, 6_000);
    for call in 1..=6 {
        assert_eq!(caller.check(BOUNDARY_US, 1).used, 6_000 + call);
        let gone = 3_000.min(1_000 * call);
        assert_eq!(unconverted(&mut watch), 9_000 - gone - MEMBERS_MAX * call, "call {call}");
        assert_eq!(u64::try_from(size(&mut watch)).unwrap(), 9_000 - gone + call, "call {call}");
    }
}

#[test]
fn a_set_in_another_unit_than_the_rule_says_is_refused_and_unchanged() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let [ms, s] = UNITS;
    let seconds = BOUNDARY_US / SECOND_US;
    let scores = |text: &str| [text.to_owned(), (seconds / 2).to_string()];
    for (form, score) in [
        (SETS, (1_000 * seconds).to_string()),
        (SETS, seconds.to_string()),
        (ms.0, seconds.to_string()),
        (s.0, (1_000 * seconds).to_string()),
        (s.0, "7".to_owned()),
        (ms.0, "inf".to_owned()),
        (SETS, "inf".to_owned()),
    ] {
        watch.command(&["FLUSHALL"]);
        add(&mut watch, NAME, &scores(&score));
        let before = watch.everything();
        let mut caller = Caller::new(&server, form, 5);
        for verb in ["check", "peek"] {
            let error = caller.ask(verb, BOUNDARY_US, 1).expect_err(&score);
            assert!(
                error.contains("SLIDEGATE") && error.contains("microseconds"),
                "{form}, {score}: {error}"
            );
        }
        assert_eq!(watch.everything(), before, "{form}, {score}");
    }
    watch.command(&["FLUSHALL"]);
    add(&mut watch, NAME, &scores(&(1_000 * seconds).to_string()));
    let mut eval = redis::cmd("EVAL");
    eval.arg(scripts::CHECK.text).arg(1).arg(NAME).arg(BOUNDARY_US).arg(7).arg(1);
    eval.arg(format!("{},0,,2", ms.0)).arg(&[5, 1_000_000, 50, 60_000_000]);
    let error = eval.query::<Value>(&mut server.connection()).unwrap_err().to_string();
    assert!(error.contains("several limits"), "{error}");
}

/// So a state that lost the value beside it goes on.
#[test]
fn a_set_in_microseconds_is_taken_over_whatever_the_rule_says() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    for (form, _) in UNITS {
        watch.command(&["FLUSHALL"]);
        let mut caller = Caller::new(&server, form, 5);
        assert_eq!(caller.check(BOUNDARY_US, 3).used, 3);
        watch.command(&["DEL", &format!("{NAME}%state")]);
        assert_eq!(caller.check(BOUNDARY_US + 1, 1).used, 4, "{form}");
        assert_eq!(caller.check(BOUNDARY_US + WINDOW_US, 1).used, 2, "{form}");
    }
}
