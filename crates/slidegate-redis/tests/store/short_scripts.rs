//! The short scripts equal the general ones in their domain, reply and stored bytes alike. Outside it they write nothing
//! and name the general script.

use std::ops::Range;

use crate::common::printed::{call, form, script, texts};
use crate::common::*;
use redis::{Connection, Value};
use slidegate::Algorithm;
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::testing::{Rng, search_size};
use slidegate_redis::scripts::{self, Script};

/// Decided by the general script alone, and by the short and the general script in turn.
const GENERAL_KEY: &str = "sg:{alice}:general";
const MIXED_KEY: &str = "sg:{alice}:mixed";
const TRACES: u64 = 4;
const STEPS: u64 = 300;

fn algorithms() -> [Algorithm; 6] {
    [
        Algorithm::SlidingLog,
        Algorithm::CompactLog(Entries::new(8).unwrap()),
        Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), Edge::Full),
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
        Algorithm::Gcra,
    ]
}

fn short(verb: &str, algorithm: Algorithm) -> &'static Script {
    scripts::short(verb, algorithm.name()).expect("every algorithm has short scripts")
}

/// The value and the TTL of a key.
fn stored(connection: &mut Connection, key: &str) -> (Value, Value) {
    let value = redis::cmd("GET").arg(key).query(connection).unwrap();
    (value, redis::cmd("PEXPIRETIME").arg(key).query(connection).unwrap_or(Value::Nil))
}

/// How often the short script decided, and how often it left the decision to the general one.
#[derive(Debug, Default)]
struct Decided {
    short: u64,
    general: u64,
    denied: u64,
}

/// Calls the short script; where it leaves the decision, nothing is written, and the general script decides.
fn decide(
    connection: &mut Connection,
    (verb, algorithm): (&str, Algorithm),
    args: &[String],
    decided: &mut Decided,
) -> Vec<String> {
    let before = stored(connection, MIXED_KEY);
    match call(connection, short(verb, algorithm), &[MIXED_KEY], args) {
        Ok(reply) => {
            decided.short += 1;
            texts(&reply)
        }
        Err(why) => {
            assert!(why.contains("general: ") && why.contains("slidegate redis script"), "{why}");
            assert_eq!(stored(connection, MIXED_KEY), before, "{why}");
            decided.general += 1;
            texts(&call(connection, script(verb), &[MIXED_KEY], args).unwrap())
        }
    }
}

/// One random trace: a rate that sometimes changes, costs up to a little more than the limit, times that stand still, run,
/// jump over windows and are set back.
fn trace(connection: &mut Connection, algorithm: Algorithm, seed: u64) -> Decided {
    let (mut rng, mut decided, mut at_us) = (Rng::new(seed), Decided::default(), BOUNDARY_US);
    redis::cmd("FLUSHDB").exec(connection).unwrap();
    let windows = [SECOND_US, 10 * SECOND_US];
    let (mut units, window_us) = (*rng.pick(&[1, 5, 9, 40, 300, 70_000]), *rng.pick(&windows));
    for step in 0..STEPS {
        let stays = rng.below(100);
        at_us = match stays {
            0..=9 => at_us,
            10..=11 => {
                at_us + *rng.pick(&[window_us - 1, window_us, window_us + 1, 2 * window_us, 7 * window_us])
            }
            12 => at_us - rng.below(window_us),
            _ => at_us + rng.below(window_us / 8),
        };
        if rng.one_in(60) {
            units = *rng.pick(&[3, 9, 40, 300]);
        }
        let asked_window_us = if rng.one_in(100) { 3 * window_us } else { window_us };
        let cost = if rng.one_in(30) { units + rng.below(2) } else { rng.below(units / 6 + 3).min(units) };
        let verb = if rng.one_in(4) { "peek" } else { "check" };
        let nonce = rng.below(1 << 48);
        let args = [at_us, nonce, cost].map(|number| number.to_string()).into_iter();
        let args = args.chain([form(algorithm, 1), units.to_string(), asked_window_us.to_string()]);
        let args: Vec<String> = args.collect();
        let expected = texts(&call(connection, script(verb), &[GENERAL_KEY], &args).unwrap());
        let case = format!("{algorithm}, seed {seed}, step {step}: {verb} {args:?}");
        // In turn, so that each script reads what the other wrote.
        let mixed = if rng.one_in(3) {
            texts(&call(connection, script(verb), &[MIXED_KEY], &args).unwrap())
        } else {
            decide(connection, (verb, algorithm), &args, &mut decided)
        };
        assert_eq!(mixed, expected, "{case}");
        assert_eq!(stored(connection, MIXED_KEY).0, stored(connection, GENERAL_KEY).0, "{case}");
        decided.denied += u64::from(expected[0] == "0");
    }
    decided
}

fn equal_the_general_scripts(name: &str) {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let algorithm = algorithms().into_iter().find(|algorithm| algorithm.name() == name).unwrap();
    let mut all = Decided::default();
    for seed in 0..search_size(TRACES) {
        let decided = trace(&mut connection, algorithm, seed);
        all.short += decided.short;
        all.general += decided.general;
        all.denied += decided.denied;
    }
    let steps = all.short + all.general;
    assert!(all.short > steps / 3 && all.general > 0 && all.denied > steps / 20, "{name}: {all:?}");
}

mod short_scripts_equal_the_general_ones {
    crate::common::test_each_algorithm!(super::equal_the_general_scripts);
}

/// A call with numbers as arguments; the form stands after the cost.
fn args(algorithm: Algorithm, cost: u64, units: u64, window_us: u64) -> Vec<String> {
    [
        String::new(),
        "4711".to_owned(),
        cost.to_string(),
        form(algorithm, 1),
        units.to_string(),
        window_us.to_string(),
    ]
    .to_vec()
}

/// Without changes of the limit, and with few requests in the window, no decision is left to the general script.
#[test]
fn in_its_domain_a_short_script_always_decides() {
    const REQUESTS_MAX: u64 = 57;
    let server = RedisServer::start();
    let mut connection = server.connection();
    let compact = Algorithm::CompactLog(Entries::new(64).unwrap());
    for algorithm in algorithms().into_iter().chain([compact]) {
        let units = if algorithm == algorithms()[1] { 8 } else { REQUESTS_MAX };
        let (mut rng, mut at_us, mut denied) = (Rng::new(57), BOUNDARY_US, 0);
        for _ in 0..STEPS {
            at_us += rng.below(2 * SECOND_US / units);
            let mut request = args(algorithm, rng.between(1, 2), units, SECOND_US);
            request[0] = at_us.to_string();
            let mut decided = Decided::default();
            for verb in ["peek", "check"] {
                let reply = decide(&mut connection, (verb, algorithm), &request, &mut decided);
                denied += u64::from(reply[0] == "0");
            }
            assert_eq!(decided.general, 0, "{algorithm} at {at_us}");
        }
        assert!(denied > STEPS / 10, "{algorithm}: {denied} denied");
        server.command(&["FLUSHALL"]);
    }
}

/// By the clock of Redis: a fresh key is charged to its limit and no further, and it has the TTL of the general script.
#[test]
fn a_fresh_key_is_charged_up_to_its_limit_by_the_clock_of_redis() {
    const WINDOW_MS: u64 = 400 * DAY_US / 1_000;
    const TTL_MS: Range<u64> = WINDOW_MS - 60_000..3 * WINDOW_MS + 1;
    let server = RedisServer::start();
    let (mut connection, mut watch) = (server.connection(), ServerWatch::new(&server));
    for algorithm in algorithms() {
        server.command(&["FLUSHALL"]);
        let args = args(algorithm, 2, 5, 1_000 * WINDOW_MS);
        for used in [0, 2, 4] {
            let peeked =
                texts(&call(&mut connection, short("peek", algorithm), &[MIXED_KEY], &args).unwrap());
            let checked =
                texts(&call(&mut connection, short("check", algorithm), &[MIXED_KEY], &args).unwrap());
            assert_eq!(peeked[1], used.to_string(), "{algorithm}");
            if used < 4 {
                assert_eq!(
                    (checked[0].as_str(), checked[1].as_str()),
                    ("1", &*(used + 2).to_string()),
                    "{algorithm}"
                );
                assert!(TTL_MS.contains(&watch.pttl_ms(MIXED_KEY)), "{algorithm}");
            } else {
                assert_eq!((checked[0].as_str(), checked[1].as_str(), checked[4].as_str()), ("0", "4", ""));
                let wait_us: u64 = checked[2].parse().unwrap();
                assert!((1..=2_000 * WINDOW_MS).contains(&wait_us), "{algorithm}: {wait_us}");
            }
        }
    }
}

/// The place of a charge of one limit goes back into `refund`, from the short and from the general script.
#[test]
fn a_refund_takes_the_place_of_a_single_charge() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for algorithm in algorithms() {
        for check in [script("check"), short("check", algorithm)] {
            server.command(&["FLUSHALL"]);
            let mut request = args(algorithm, 5, 60, SECOND_US);
            request[0] = BOUNDARY_US.to_string();
            let place = texts(&call(&mut connection, check, &[MIXED_KEY], &request).unwrap())[4].clone();
            let (record, nothing) = (format!("{MIXED_KEY}%spent:00c0ffee00c0ffee"), String::new());
            let receipt = [
                &request[..2],
                &[nothing.clone(), nothing.clone(), nothing.clone(), nothing],
                &request[2..],
                &[place],
            ];
            let refunded = texts(
                &call(&mut connection, script("refund"), &[MIXED_KEY, &record], &receipt.concat()).unwrap(),
            );
            assert_eq!((refunded[0].as_str(), refunded[3].as_str()), ("1", "5"), "{algorithm}");
            let left =
                texts(&call(&mut connection, short("peek", algorithm), &[MIXED_KEY], &request).unwrap());
            assert_eq!(left[1], "0", "{algorithm}");
        }
    }
}

/// What is outside the domain leaves the key as it was, and the error names the general script.
#[test]
fn other_states_and_requests_are_left_to_the_general_script() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for algorithm in algorithms() {
        let request = args(algorithm, 2, 5, SECOND_US);
        let mut refused = |keys: &[&str], args: &[String]| {
            let before = stored(&mut connection, MIXED_KEY);
            let why =
                call(&mut connection, short("check", algorithm), keys, args).expect_err("outside the domain");
            assert!(
                why.contains("general: ") && why.contains("slidegate redis script"),
                "{algorithm}: {why}"
            );
            assert_eq!(stored(&mut connection, MIXED_KEY), before, "{algorithm}");
        };
        server.command(&["FLUSHALL"]);
        refused(&[MIXED_KEY, GENERAL_KEY], &[&request[..], &request[2..]].concat());
        refused(&[], &request);
        refused(&[MIXED_KEY], &args(algorithm, 6, 5, SECOND_US));
        refused(&[MIXED_KEY], &[&["8900000000000000".to_owned()], &request[1..]].concat());
        server.command(&["SET", MIXED_KEY, "another program's"]);
        refused(&[MIXED_KEY], &request);
        server.command(&["DEL", MIXED_KEY]);
        server.command(&["ZADD", MIXED_KEY, "1", "another program's"]);
        let why = call(&mut connection, short("check", algorithm), &[MIXED_KEY], &request).unwrap_err();
        assert!(why.contains("general: "), "{why}");
    }
}

/// The same mistakes are refused with the same text as in the general script.
#[test]
fn wrong_arguments_are_named_as_by_the_general_script() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for algorithm in algorithms() {
        let right = args(algorithm, 2, 5, SECOND_US);
        let wrong = ["now", "-1", "1.5", "0x10", "", "nan", "281474976710656000000"];
        for (index, wrong) in (0..6).flat_map(|index| wrong.map(|wrong| (index, wrong))) {
            let mut request = right.clone();
            wrong.clone_into(&mut request[index]);
            if index == 0 && wrong.is_empty() {
                continue;
            }
            assert_refused_alike(&mut connection, algorithm, &request, index + 1);
        }
        for count in 0..6 {
            assert_refused_alike(&mut connection, algorithm, &right[..count], count + 1);
        }
        for (index, wrong) in
            [(1, "281474976710656"), (4, "0"), (4, "1000000000001"), (5, "0"), (5, "34560000000001")]
        {
            let mut request = right.clone();
            wrong.clone_into(&mut request[index]);
            assert_refused_alike(&mut connection, algorithm, &request, index + 1);
        }
    }
    let outside =
        [(Algorithm::Gcra, "gcra,0,,2"), (Algorithm::CompactLog(Entries::new(8).unwrap()), "compact-log,3")];
    for (algorithm, form) in outside {
        let mut request = args(algorithm, 2, 5, SECOND_US);
        form.clone_into(&mut request[3]);
        let why = call(&mut connection, short("check", algorithm), &[MIXED_KEY], &request).unwrap_err();
        assert!(why.contains("ARGV[4], the form of a charge, is wrong; give "), "{why}");
    }
}

fn assert_refused_alike(connection: &mut Connection, algorithm: Algorithm, args: &[String], at: usize) {
    let short = call(connection, short("check", algorithm), &[MIXED_KEY], args).expect_err("wrong");
    let general = call(connection, script("check"), &[MIXED_KEY], args).expect_err("wrong");
    let name = |why: &str| why.split_once("; ").expect("a remedy").0.to_owned();
    assert_eq!(name(&short), name(&general), "{algorithm} {args:?}");
    assert!(short.contains(&format!("ARGV[{at}], ")), "{algorithm} {args:?}: {short}");
    assert_eq!(redis::cmd("DBSIZE").query::<u64>(connection).unwrap(), 0);
}
