//! Rules are read as they are written; decisions have the fields of `slidegate replay`.

use serde_json::{Value, from_value, json, to_value};
use slidegate::rule::{AtBudget, OnStoreError, TakeOver};
use slidegate::{Algorithm, Limiter, Rule};

use crate::common::{every_algorithm, rule};

fn error(rule: Value) -> String {
    from_value::<Rule>(rule).unwrap_err().to_string()
}

#[test]
fn every_rule_is_read_as_it_was_written() {
    let quota = Rule::builder("quota")
        .limit("10000/24h".parse().unwrap())
        .headroom("0.05".parse().unwrap())
        .shadow(true)
        .on_store_error(OnStoreError::Local("0.25".parse().unwrap()))
        .at_budget(AtBudget::EvictOldest)
        .build()
        .unwrap();
    let migrating = Rule::builder("old").limit("5/1m".parse().unwrap()).take_over(TakeOver::Seconds);
    let inline = Rule::inline("5/60s".parse().unwrap(), Algorithm::Gcra);
    let mut rules = vec![quota, migrating.build().unwrap(), inline];
    rules.extend(every_algorithm().into_iter().map(|algorithm| rule("api", &["5/1s", "60/30s"], algorithm)));
    for rule in rules {
        let text = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule, "{text}");
    }
}

#[test]
fn a_rule_is_written_like_one_of_the_configuration_file() {
    let rule: Rule = from_value(json!({
        "name": "yt-quota", "limit": "10000/24h", "headroom": 0.05, "on_store_error": { "local": 0.25 },
    }))
    .unwrap();
    assert_eq!(rule.limits()[0].units(), 9_500);
    assert_eq!(
        to_value(&rule).unwrap(),
        json!({
            "name": "yt-quota", "limits": ["10000/1d"], "algorithm": "sliding-log", "headroom": "0.05",
            "shadow": false, "on_store_error": { "local": "0.25" }, "at_budget": "refuse",
        })
    );
}

#[test]
fn a_rule_that_is_not_valid_is_refused_with_the_remedy() {
    assert!(error(json!({ "name": "a" })).contains("limits: 0 given"));
    assert!(error(json!({ "name": "a", "limit": "60/fortnight" })).contains("60/fortnight"));
    assert!(error(json!({ "name": "a", "limit": "5/1m", "limits": ["5/1m"] })).contains("give one of them"));
    assert!(error(json!({ "name": "a", "limt": "5/1m" })).contains("unknown field `limt`"));
    assert!(error(json!({ "name": "a", "limit": "5/1m", "headroom": 1.5 })).contains("1.5"));
    assert!(error(json!({ "name": "a", "limit": "5/1m", "algorithm": "leaky" })).contains("leaky"));
    assert!(
        error(json!({ "name": "a", "limit": "5/1m", "buckets": 7 })).contains("belongs to sliding-buckets")
    );
    let zero = json!({ "name": "a", "limit": "5/1m", "algorithm": "sliding-buckets", "buckets": 0 });
    assert!(error(zero).contains("buckets: 0"));
    assert!(error(json!({ "name": "gcra/60s", "limit": "5/1m" })).contains("inline"));
}

#[test]
fn decisions_have_exact_microseconds_and_every_verdict() {
    let limiter = Limiter::in_memory();
    let search = Rule::new("search", "5/10s").unwrap();
    let charges = [search.charge("alice", 3).unwrap()];
    let at = limiter.at_us(1_000_000);
    let allowed = to_value(at.check_all(&charges).unwrap()).unwrap();
    let check = |allowed, retry_after_us: u64| {
        json!([{ "rule": "search", "key": "alice", "allowed": allowed, "limit": 5, "used": 3, "remaining": 2,
                 "retry_after_us": retry_after_us }])
    };
    assert_eq!(
        allowed,
        json!({ "allowed": true, "rule": "search", "limit": 5, "used": 3, "remaining": 2, "retry_after_us": 0,
                "reset_after_us": 10_000_000, "degraded": false, "checks": check(true, 0) })
    );
    let at = limiter.at_us(1_000_001);
    let denied = to_value(at.check_all(&charges).unwrap()).unwrap();
    assert_eq!(denied["retry_after_us"], 9_999_999);
    assert_eq!(denied["checks"], check(false, 9_999_999));
}
