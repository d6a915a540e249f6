//! Large sets of other limiters are converted step by step, so that no call takes long.

use slidegate::testing::Rng;

use crate::common::caller::*;
use crate::common::*;

/// How many members one call converts or removes at most.
const MEMBERS_MAX: u64 = 1_000;

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
