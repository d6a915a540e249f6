//! Keys split into shards: never over, a little early, and every verb reaches the right shards.

use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::{Call, Store, Update};
use slidegate::testing::{Auditor, Rng};
use slidegate::{Admission, Algorithm, Charge, ChargeError, CheckError, Decision, Limiter, OwnedKey, Rule};
use slidegate_redis::RedisStore;

use crate::common::*;

fn split(name: &str, rate: &str, shards: u16, algorithm: Algorithm) -> Rule {
    let rule = Rule::builder(name).limit(rate.parse().unwrap()).algorithm(algorithm).shards(shards);
    rule.build().unwrap()
}

/// How many of `count` single requests at one instant are admitted.
async fn admitted(store: &RedisStore, when: Call, rule: &Rule, count: usize) -> usize {
    let single = admission(&[(rule, "alice", 1)]);
    let mut allowed = 0;
    for batch in vec![single; count].chunks(250) {
        let decided = store.check_batch(when, batch).await;
        allowed += decided.iter().filter(|decided| decided.as_ref().unwrap().allowed()).count();
    }
    allowed
}

/// The toy version draws a shard and compares with the whole limit. Traffic at twice the limit, in bursts, with costs.
#[test]
fn no_window_exceeds_the_limit() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        let exact = [
            Algorithm::SlidingLog,
            Algorithm::CompactLog(Entries::new(16).unwrap()),
            Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), Edge::Full),
        ];
        for (number, algorithm) in exact.into_iter().enumerate() {
            let rule = split(&format!("hot-{number}"), "40/1s", 4, algorithm);
            let (mut auditor, mut random) = (Auditor::new(40, SECOND_US), Rng::new(7));
            let (mut now_us, mut units) = (BOUNDARY_US, 0);
            for _ in 0..600 {
                now_us += random.below(60_000) * u64::from(random.below(3) == 0);
                let cost = 1 + random.below(4);
                let decision = check(&store, Call::at_us(now_us), &rule, cost).await;
                auditor.saw(now_us, cost, decision.allowed());
                units += if decision.allowed() { cost } else { 0 };
                assert_eq!(decision.limit(), Some(10), "{algorithm}: the shard's numbers are shown");
            }
            let findings = auditor.findings();
            assert!(findings.most_in_window <= 40, "{algorithm}: {findings:?}");
            assert!(units > 200, "{algorithm}: {units} units passed");
        }
    });
}

/// A single draw refuses about sqrt(n / (2 pi L)) of a load that equals the limit; two draws refuse less.
#[test]
fn a_key_at_full_load_is_denied_a_little_early() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        for (limit, shards) in [(1_000_u32, 4_u16), (1_000, 16), (4_000, 8)] {
            let rule = split(
                &format!("{limit}-{shards}"),
                &format!("{limit}/10s"),
                shards,
                Algorithm::SlidingCounter,
            );
            let count = usize::try_from(limit).unwrap();
            let passed = admitted(&store, Call::at_us(BOUNDARY_US), &rule, count).await;
            let early = 1.0 - f64::from(u32::try_from(passed).unwrap()) / f64::from(limit);
            let bound = (f64::from(shards) / (std::f64::consts::TAU * f64::from(limit))).sqrt();
            println!(
                "limit {limit}, {shards} shards: {:.2} % early, one draw {:.2} %",
                100.0 * early,
                100.0 * bound
            );
            assert!(early <= 1.5 * bound, "limit {limit}, {shards} shards: {early} early, {bound} expected");

            let more = admitted(&store, Call::at_us(BOUNDARY_US), &rule, 2 * count).await;
            let whole = usize::from(shards) * (count / usize::from(shards));
            assert_eq!(passed + more, whole, "a flood fills every shard, and no more than that");
        }
    });
}

#[test]
fn inspect_sums_the_shards_and_a_larger_cost_is_never() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let limiter = Limiter::new(store(&server.url()).await);
        let rule = split("hot", "100/10s", 4, Algorithm::SlidingLog);
        let mut names = 0;
        for _ in 0..12 {
            assert!(limiter.check_n_async(&rule, "alice", 2).await.unwrap().allowed());
        }
        for name in watch.keys() {
            let shard = name.strip_prefix("sg:{alice%s").and_then(|rest| rest.strip_suffix("}:hot"));
            assert!(shard.is_some_and(|shard| ["0", "1", "2", "3"].contains(&shard)), "{name}");
            names += 1;
        }
        assert!(names > 1, "the draw is not always the same");
        let usage = limiter.inspect_async(&rule, "alice").await.unwrap();
        assert_eq!((usage[0].used, usage[0].limit.units()), (24, 100));

        let never = limiter.check_n_async(&rule, "alice", 26).await.unwrap_err();
        let expected = ChargeError::NeverInShard { rule: "hot".into(), cost: 26, limit: 25, shards: 4 };
        assert_eq!(never, CheckError::Charge(expected.clone()));
        let twice = [rule.charge("bob", 13).unwrap(), rule.charge("bob", 13).unwrap()];
        assert_eq!(limiter.peek_all_async(&twice).await.unwrap_err(), CheckError::Charge(expected));
        let batch = [(); 2].map(|()| admission(&[(&rule, "carol", 26)]));
        let answers = limiter.check_batch_async(&batch).await;
        assert!(answers.iter().all(|answer| matches!(answer, Err(CheckError::Charge(_)))), "{answers:?}");
        assert!(limiter.check_n_async(&rule, "carol", 25).await.unwrap().allowed());
    });
}

/// A receipt names its shard; credits and resets reach all of them.
#[test]
fn units_are_given_back_to_the_shards_that_have_them() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        for (number, algorithm) in every_algorithm().into_iter().enumerate() {
            let rule = split(&format!("hot-{number}"), "80/10s", 8, algorithm);
            let now = Call::at_us(BOUNDARY_US);
            let mut receipts = Vec::new();
            for _ in 0..10 {
                receipts.push(check(&store, now, &rule, 2).await.receipt().unwrap());
            }
            for (given, receipt) in receipts[..3].iter().enumerate() {
                assert!(receipt.charges()[0].key().shard().is_some_and(|shard| shard < 8));
                let refunded = store.update(now, Update::Refund(receipt)).await.unwrap();
                assert_eq!((refunded.applied, refunded.units), (true, 2), "{algorithm}: refund {given}");
                let again = store.update(now, Update::Refund(receipt)).await.unwrap();
                assert_eq!((again.applied, again.units), (false, 0), "{algorithm}: a receipt works once");
            }
            let settled = store.update(now, Update::Settle(&receipts[3], 5)).await.unwrap();
            assert_eq!((settled.applied, settled.units), (true, 3), "{algorithm}: settle");
            assert_eq!(used(&store, now, &rule).await, 17, "{algorithm}");

            let credit = |units| Update::Credit(Charge::new(&rule, key("alice"), units));
            assert_eq!(store.update(now, credit(7)).await.unwrap().units, 7, "{algorithm}: credit");
            assert_eq!(used(&store, now, &rule).await, 10, "{algorithm}");
            assert_eq!(store.update(now, credit(1_000)).await.unwrap().units, 10, "{algorithm}: all of it");
            let receipt = check(&store, now, &rule, 4).await.receipt().unwrap();
            let reset = store.update(now, Update::Reset(&rule, key("alice"))).await.unwrap();
            assert_eq!((reset.applied, reset.units), (true, 4), "{algorithm}: reset");
            assert_eq!(used(&store, now, &rule).await, 0, "{algorithm}");
            assert!(
                !store.update(now, Update::Refund(&receipt)).await.unwrap().applied,
                "{algorithm}: it is void"
            );
        }
    });
}

/// One call charges the shard and the key that is not split, or none; a denial by the latter draws no second shard.
#[test]
fn a_split_key_and_others_pass_together_or_not_at_all() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let store = store(&server.url()).await;
        let (hot, quota) =
            (split("hot", "100/10s", 4, Algorithm::SlidingLog), rule("quota", &["5/10s"], Algorithm::Gcra));
        let both = admission(&[(&hot, "alice", 1), (&quota, "alice", 1)]);
        let now = Call::at_us(BOUNDARY_US);
        watch.reset_calls();
        for _ in 0..5 {
            let decision = store.check(now, &both).await.unwrap();
            assert!(decision.allowed());
            let rules: Vec<_> =
                decision.verdicts().map(|verdict| (verdict.rule(), verdict.key(), verdict.limit())).collect();
            assert_eq!(rules, [("hot", "alice", Some(25)), ("quota", "alice", Some(5))]);
            assert_eq!(decision.receipt().unwrap().charges().len(), 2);
        }
        for _ in 0..5 {
            let denied = store.check(now, &both).await.unwrap();
            assert_eq!((denied.allowed(), denied.rule()), (false, "quota"));
        }
        let sent = watch.text(&["INFO", "commandstats"]);
        let scripts = sent.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let scripts: u64 = scripts.unwrap().split(',').next().unwrap().parse().unwrap();
        assert!(scripts <= 11, "{scripts} calls for ten admissions and one NOSCRIPT");
        assert_eq!(used(&store, now, &hot).await, 5, "a denial charges nowhere");

        let tagged = OwnedKey::tagged("alice", "team").unwrap();
        let charge = Admission::new(&[hot.charge(&tagged, 1).unwrap()]).unwrap();
        assert!(store.check(now, &charge).await.unwrap().allowed());
        let names = watch.keys();
        assert!(names.iter().any(|name| name.starts_with("sg:{team}{alice%s")), "{names:?}");
    });
}

/// A denial is that of two shards; a cached one would deny the key although others have room.
#[test]
fn the_deny_cache_does_not_answer_for_a_split_key() {
    let server = RedisServer::start();
    run(async {
        let limiter = Limiter::new(store(&server.url()).await);
        let (hot, cold) =
            (split("hot", "4/1h", 4, Algorithm::SlidingLog), rule("cold", &["1/1h"], Algorithm::SlidingLog));
        let mut allowed = 0;
        for _ in 0..200 {
            allowed += usize::from(limiter.check_async(&hot, "alice").await.unwrap().allowed());
        }
        assert_eq!((allowed, limiter.stats().cached_denials), (4, 0), "every shard is found");
        for _ in 0..3 {
            limiter.check_async(&cold, "alice").await.unwrap();
        }
        assert_eq!(limiter.stats().cached_denials, 1);
    });
}

#[test]
fn a_live_change_reaches_every_shard() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        let (old, new) = (
            split("hot", "40/10s", 4, Algorithm::SlidingLog),
            split("hot", "80/20s", 4, Algorithm::SlidingLog),
        );
        let now = Call::at_us(BOUNDARY_US);
        for _ in 0..20 {
            check(&store, now, &old, 1).await;
        }
        let before = used(&store, now, &old).await;
        store.change(now, &new).await.unwrap();
        assert_eq!(used(&store, now, &new).await, before);
        let late = Call::at_us(BOUNDARY_US + 15 * SECOND_US);
        assert_eq!(used(&store, late, &new).await, before, "in the longer window they still count");
    });
}

/// Owned, so that it can be sent to another task.
#[test]
fn a_decision_on_a_shard_can_be_owned() {
    let server = RedisServer::start();
    run(async {
        let store = store(&server.url()).await;
        let owned: Decision<'static> = {
            let rule = split("hot", "40/10s", 4, Algorithm::Gcra);
            check(&store, Call::at_us(BOUNDARY_US), &rule, 3).await.into_owned()
        };
        assert_eq!((owned.limit(), owned.used()), (Some(10), Some(3)));
        let refunded =
            store.update(Call::at_us(BOUNDARY_US), Update::Refund(&owned.receipt().unwrap())).await;
        assert_eq!(refunded.unwrap().units, 3);
    });
}
