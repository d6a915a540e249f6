//! Sets of other limiters with scores in milliseconds or seconds: taken over where the rule says so, and never over.

use std::collections::BTreeMap;

use redis::Value;
use slidegate::rule::TakeOver;
use slidegate::store::{Call, Store, Update};
use slidegate::testing::{Rng, search_size};
use slidegate::{Charge, Rule};
use slidegate_redis::scripts;

use crate::common::caller::*;
use crate::common::*;

/// A sliding log as others write it: the score is the caller's clock in its unit, the member is unique.
const OTHER: &str = "
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[2])
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
    return 1";

fn add(watch: &mut ServerWatch, name: &str, scores: &[String]) {
    for (number, score) in scores.iter().enumerate() {
        watch.command(&["ZADD", name, score, &format!("{score}-{number}")]);
    }
}

fn members(watch: &mut ServerWatch, name: &str) -> Vec<(String, u64)> {
    redis::from_redis_value(watch.command(&["ZRANGE", name, "0", "-1", "WITHSCORES"])).unwrap()
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

/// The verbs of a store send what the rule says; a refund comes after the takeover.
#[test]
fn a_store_takes_over_what_its_rule_says() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    for (unit, (_, unit_us)) in [TakeOver::Milliseconds, TakeOver::Seconds].into_iter().zip(UNITS) {
        run(async {
            let (_, store) = stores(&server.url()).await.remove(1);
            let log = Rule::builder("api").limit("5/60s".parse().unwrap());
            let (plain, rule) = (log.clone().build().unwrap(), log.take_over(unit).build().unwrap());
            watch.command(&["FLUSHALL"]);
            let just_before = (BOUNDARY_US / unit_us - 1).to_string();
            add(&mut watch, NAME, &[just_before.clone(), just_before]);
            let now = Call::at_us(BOUNDARY_US);
            assert!(ask(&store, now, &plain, 1).await.is_err(), "{unit:?}");
            assert!(!peek(&store, now, &rule, 4).await.allowed(), "{unit:?}");
            assert_eq!((used(&store, now, &rule).await, unconverted(&mut watch)), (2, 2), "{unit:?}");
            let receipt = check(&store, now, &rule, 3).await.receipt().unwrap();
            assert_eq!((used(&store, now, &plain).await, unconverted(&mut watch)), (5, 0), "{unit:?}");
            assert_eq!(store.update(now, Update::Refund(&receipt)).await.unwrap().units, 3, "{unit:?}");
            let credit = Update::Credit(Charge::new(&rule, key("alice"), 5));
            assert_eq!(store.update(now, credit).await.unwrap().units, 2, "{unit:?}");
            assert!(check(&store, now, &rule, 5).await.allowed(), "{unit:?}");
        });
    }
}
