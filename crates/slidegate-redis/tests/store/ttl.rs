//! TTLs: every key expires, and none while it counts.

use crate::common::*;
use slidegate::store::{Call, LimitUsage, Store, Update};
use slidegate::{Algorithm, Charge, Rule};

const TEN_SECONDS_US: u64 = 10 * SECOND_US;
const HOUR_MS: u64 = 3_600_000;
/// Redis counts in milliseconds: a TTL is rounded up, and added to a time that is rounded down.
const ROUNDED_US: u64 = 2 * MILLISECOND_US;

/// A verb, and when it began by the server's clock.
struct Verb {
    name: String,
    began_us: u64,
    /// The longest duration of this verb or an earlier one. An expiry is counted from an instant within the verb that
    /// set it, and a denial does not change it.
    longest_us: u64,
}

/// How long a state outlives its use.
fn margin_us(usage: &LimitUsage) -> u64 {
    usage.limit.window_us().max(TEN_SECONDS_US)
}

/// How long from now a limit's state must live.
fn needed_us(usage: &LimitUsage) -> u64 {
    assert!(usage.used > 0, "{usage:?}: only the end of a use does not move");
    u64::try_from(usage.reset_after.as_micros()).unwrap() + margin_us(usage)
}

/// Compares the expiries of alice's keys with the use of the rule. A use ends at the same instant whenever it is
/// inspected, so the tolerance is the time that passed by the server's clock.
async fn assert_bounds(store: &impl Store, watch: &mut ServerWatch, rule: &Rule, verb: &Verb) {
    let case = format!("{} after {}", rule.algorithm(), verb.name);
    let from_us = watch.time_us();
    let usages = store.inspect(Call::now(), rule, key("alice")).await.unwrap();
    let until_us = watch.time_us();
    let needed_us = usages.iter().map(needed_us).max().unwrap();
    let least_us = from_us + needed_us - ROUNDED_US;
    let most_us = until_us + needed_us + verb.longest_us + ROUNDED_US;
    let windows_us = || usages.iter().map(|usage| usage.limit.window_us());
    let mut states = 0;
    for name in watch.keys() {
        let ends_us = watch.ends_us(&name);
        if name.contains("%spent:") {
            // A charge may count until the end of the window after its own.
            let most_us = until_us + 2 * windows_us().max().unwrap() + TEN_SECONDS_US + ROUNDED_US;
            let least_us = verb.began_us + TEN_SECONDS_US - ROUNDED_US;
            assert!((least_us..=most_us).contains(&ends_us), "{case}: {name} ends at {ends_us}");
        } else {
            states += 1;
            let bounds = least_us..=most_us;
            assert!(bounds.contains(&ends_us), "{case}: {name} ends at {ends_us}, not within {bounds:?}");
        }
    }
    assert!(states > 0, "{case}: no state");
}

/// Keys without a TTL, or with one that is too short.
#[test]
fn row_08_every_key_has_a_ttl_within_its_bounds_after_every_verb() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let small = rule("api", &["50/100d", "100/400d"], algorithm);
                every_verb(&store, &mut watch, &small).await;
            }
        }
    });
}

/// Makes a call, reads the clock before and after, and checks the expiries of the keys.
macro_rules! bounded {
    ($store:expr, $watch:expr, $rule:expr, $name:expr, $call:expr) => {{
        let began_us = $watch.time_us();
        let answer = $call.await.unwrap();
        $watch.longest_us = $watch.longest_us.max($watch.time_us() - began_us);
        let verb = Verb { name: $name.to_string(), began_us, longest_us: $watch.longest_us };
        assert_bounds($store, $watch, $rule, &verb).await;
        answer
    }};
}

async fn every_verb(store: &impl Store, watch: &mut ServerWatch, rule: &Rule) {
    let requests = [3, 4, 5, 6].map(|cost| admission(&[(rule, "alice", cost)]));
    let mut charged = Vec::new();
    for request in &requests {
        let decision = bounded!(store, watch, rule, "a check", store.check(Call::now(), request));
        charged.push(decision.receipt().unwrap());
    }
    let too_much = admission(&[(rule, "alice", 40)]);
    let denied = bounded!(store, watch, rule, "a denial", store.check(Call::now(), &too_much));
    assert!(!denied.allowed());
    bounded!(store, watch, rule, "a peek", store.peek(Call::now(), &too_much));
    bounded!(store, watch, rule, "a refund", store.update(Call::now(), Update::Refund(&charged[0])));
    bounded!(
        store,
        watch,
        rule,
        "a refund that came twice",
        store.update(Call::now(), Update::Refund(&charged[0]))
    );
    bounded!(
        store,
        watch,
        rule,
        "a refund of the newest",
        store.update(Call::now(), Update::Refund(&charged[3]))
    );
    bounded!(
        store,
        watch,
        rule,
        "a settlement below",
        store.update(Call::now(), Update::Settle(&charged[1], 1))
    );
    bounded!(
        store,
        watch,
        rule,
        "a settlement above",
        store.update(Call::now(), Update::Settle(&charged[2], 70))
    );
    bounded!(
        store,
        watch,
        rule,
        "a credit",
        store.update(Call::now(), Update::Credit(Charge::new(rule, key("alice"), 30)))
    );
    let larger = crate::common::rule("api", &["70/100d", "100/400d"], rule.algorithm());
    bounded!(store, watch, &larger, "another limit", store.change(Call::now(), &larger));
    let longer = crate::common::rule("api", &["70/200d", "100/400d"], rule.algorithm());
    bounded!(store, watch, &longer, "another window", store.change(Call::now(), &longer));
    store.update(Call::now(), Update::Reset(&longer, key("alice"))).await.unwrap();
    let left = watch.keys().into_iter().filter(|name| !name.contains("%spent:"));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new(), "a reset leaves nothing");
}

/// With a short window a key outlives its use by ten seconds.
#[test]
fn row_08_keys_of_short_windows_outlive_their_use_by_ten_seconds() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let short = rule("api", &["50/1s"], algorithm);
                let began_us = watch.time_us();
                let decision = check(&store, Call::now(), &short, 1).await;
                let ended_us = watch.time_us();
                let needed_us =
                    u64::try_from(decision.reset_after().unwrap().as_micros()).unwrap() + TEN_SECONDS_US;
                let bounds = began_us + needed_us - ROUNDED_US..=ended_us + needed_us + ROUNDED_US;
                for key in watch.keys() {
                    let ends_us = watch.ends_us(&key);
                    assert!(
                        bounds.contains(&ends_us),
                        "{algorithm}: {key} ends at {ends_us}, not in {bounds:?}"
                    );
                }
            }
        }
    });
}

/// A long log is written in place, without SET: both paths must extend its TTL.
#[test]
fn row_08_a_charge_extends_the_ttl_of_a_long_log() {
    const DAYS_300_US: u64 = 300 * 24 * 3_600 * SECOND_US;
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let (long, other) =
        (rule("long", &["500/400d"], Algorithm::SlidingLog), Rule::new("other", "5/400d").unwrap());
    let name = "sg:{alice}:long";
    run(async {
        let store = store(&server.url()).await;
        for _ in 0..80 {
            check(&store, Call::now(), &long, 1).await;
        }
        // One charge takes the fast path of the script, two charges the general one.
        for request in
            [admission(&[(&long, "alice", 1)]), admission(&[(&long, "alice", 1), (&other, "alice", 1)])]
        {
            watch.command(&["PEXPIRE", name, "60000"]);
            watch.reset_calls();
            assert!(store.check(Call::now(), &request).await.unwrap().allowed());
            assert!(watch.calls().contains_key("setrange"), "the log is long: {:?}", watch.calls());
            assert!(watch.ends_us(name) > watch.time_us() + DAYS_300_US, "{} us", watch.ends_us(name));
        }
    });
}

/// Injected time is unrelated to the server's clock, so it cannot set a TTL.
#[test]
fn row_08_keys_of_injected_time_live_an_hour() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let rule = rule("api", &["50/1s", "100/400d"], algorithm);
                let when = Call::at_us(BOUNDARY_US);
                let receipt = check(&store, when, &rule, 5).await.receipt().unwrap();
                check(&store, when, &rule, 5).await;
                store.update(when, Update::Refund(&receipt)).await.unwrap();
                store.update(when, Update::Credit(Charge::new(&rule, key("alice"), 1))).await.unwrap();
                for key in watch.keys() {
                    let life_ms = watch.pttl_ms(&key);
                    assert!(
                        (HOUR_MS / 2..=HOUR_MS).contains(&life_ms),
                        "{algorithm}: {key} lives {life_ms} ms"
                    );
                }
            }
        }
    });
}
