//! The whole text, read back.

use std::sync::Arc;
use std::time::Duration;

use slidegate::store::Stats;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Rule, RuleSet};

use super::parser::{Family, parse};
use super::*;

fn metrics() -> (Metrics, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_us(1_745_000_145_000_000));
    (Metrics::new("memory", Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

fn rules() -> RuleSet {
    let api = Rule::builder("api").limit("60/1m".parse().unwrap()).build().unwrap();
    let quota = Rule::builder("quota")
        .limit("10000/24h".parse().unwrap())
        .limit("500/1500ms".parse().unwrap())
        .headroom("0.05".parse().unwrap());
    [api, quota.build().unwrap()].into_iter().collect()
}

fn exposed(metrics: &Metrics) -> Vec<Family> {
    let stats = Stats { keys: 3, swept: 5, evicted: 7, ..Stats::default() };
    let text = metrics.expose(&rules(), Some(&stats));
    parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// The value of the one sample that has these labels among its own.
fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> String {
    let all = families.iter().flat_map(|family| &family.samples);
    let has = |(name, value): &(&str, &str), own: &std::collections::BTreeMap<String, String>| {
        own.get(*name).is_some_and(|own| own == value)
    };
    let wanted: Vec<_> = all
        .filter(|sample| sample.name == name && labels.iter().all(|label| has(label, &sample.labels)))
        .collect();
    assert_eq!(wanted.len(), 1, "{name} {labels:?}: {wanted:?}");
    wanted[0].value.clone()
}

#[test]
fn everything_that_happened_is_in_the_text() {
    let (metrics, clock) = metrics();
    metrics.decided(Transport::Http, "api", Outcome::Allowed, 3);
    metrics.decided(Transport::Http, "api", Outcome::Denied, 1);
    metrics.decided(Transport::Http, "sliding-log/60s", Outcome::ShadowDenied, 1);
    metrics.decided(Transport::Http, "/login", Outcome::Denied, 1);
    metrics.took(Transport::Http, Duration::from_micros(12));
    metrics.store_took("check", Duration::from_micros(2));
    metrics.store_failed("check", "ambiguous");
    metrics.connection_opened();
    metrics.connection_opened();
    metrics.connection_closed();
    clock.advance(Duration::from_millis(1_500));
    metrics.reloaded(true);
    clock.advance(Duration::from_secs(60));
    metrics.reloaded(false);
    let found = exposed(&metrics);
    for (name, labels, expected) in [
        (
            "slidegate_decisions_total",
            &[("rule", "api"), ("result", "allowed"), ("transport", "http")][..],
            "1",
        ),
        ("slidegate_decisions_total", &[("rule", "api"), ("result", "denied")], "1"),
        ("slidegate_decisions_total", &[("rule", "inline"), ("result", "shadow_denied")], "1"),
        ("slidegate_decisions_total", &[("rule", "/login"), ("result", "denied")], "1"),
        ("slidegate_decisions_total", &[("rule", "quota"), ("result", "error_denied")], "0"),
        ("slidegate_hits_total", &[("rule", "api")], "3"),
        ("slidegate_limit_units", &[("rule", "api"), ("window_seconds", "60")], "60"),
        ("slidegate_limit_units", &[("rule", "quota"), ("window_seconds", "86400")], "9500"),
        ("slidegate_limit_units", &[("rule", "quota"), ("window_seconds", "1.5")], "475"),
        ("slidegate_decision_duration_seconds_count", &[("transport", "http"), ("store", "memory")], "1"),
        ("slidegate_decision_duration_seconds_bucket", &[("le", "0.00002")], "1"),
        ("slidegate_store_operation_duration_seconds_sum", &[("op", "check")], "0.000002"),
        ("slidegate_store_errors_total", &[("op", "check"), ("kind", "ambiguous")], "1"),
        ("slidegate_keys", &[("store", "memory")], "3"),
        ("slidegate_keys_evicted_total", &[("reason", "expired")], "5"),
        ("slidegate_keys_evicted_total", &[("reason", "capacity")], "7"),
        ("slidegate_config_reloads_total", &[("result", "ok")], "1"),
        ("slidegate_config_reloads_total", &[("result", "failed")], "1"),
        ("slidegate_config_last_reload_successful", &[], "0"),
        ("slidegate_config_last_reload_success_timestamp_seconds", &[], "1745000146.5"),
        ("slidegate_connections", &[], "1"),
        ("slidegate_connections_total", &[], "2"),
        ("slidegate_build_info", &[("version", env!("CARGO_PKG_VERSION"))], "1"),
        ("process_start_time_seconds", &[], "1745000145"),
    ] {
        assert_eq!(value(&found, name, labels), expected, "{name} {labels:?}");
    }
}

#[test]
fn a_store_elsewhere_has_no_keys_to_show() {
    let (metrics, _clock) = metrics();
    let text = metrics.expose(&rules(), None);
    assert!(parse(&text).unwrap().iter().all(|family| !family.name.starts_with("slidegate_keys")));
}

#[test]
fn labels_are_bounded_however_many_rules_there_are() {
    let (metrics, _clock) = metrics();
    let rule =
        |number| Rule::builder(&format!("rule-{number}")).limit("5/1m".parse().unwrap()).build().unwrap();
    let rules: RuleSet = (0..3 * decisions::RULES_MAX).map(rule).collect();
    for rule in rules.iter() {
        metrics.decided(Transport::Http, rule.name(), Outcome::Allowed, 1);
    }
    let found = parse(&metrics.expose(&rules, None)).unwrap();
    let samples = |name: &str| found.iter().find(|family| family.name == name).unwrap().samples.len();
    assert_eq!(samples("slidegate_hits_total"), decisions::RULES_MAX + 1);
    assert_eq!(samples("slidegate_limit_units"), decisions::RULES_MAX);
    assert_eq!(value(&found, "slidegate_hits_total", &[("rule", "other")]), "2000");
}
