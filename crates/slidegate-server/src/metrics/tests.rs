//! The whole text of the metrics. The program's tests also parse it with the client of Prometheus.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use slidegate::rule::OnStoreError;
use slidegate::store::Stats;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Rule, RuleSet};

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

/// Asserts what Prometheus requires and its client does not check: each family once and contiguous, each sample once,
/// unsigned numbers, and `_total` on counters only.
fn assert_well_formed(text: &str) {
    assert!(text.ends_with('\n'), "{text}");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let (mut name, mut kind) = ("", "");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let family = help.split_once(' ').filter(|(_, help)| !help.is_empty());
            name = family.expect(line).0;
            kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).expect(line);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(families.insert(name), "a second time: {line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect(line);
        assert!(samples.insert(sample), "a second time: {line}");
        assert!(value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let suffix = sample.split('{').next().unwrap().strip_prefix(name).expect(line);
        let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "of another family: {line}");
    }
}

fn exposed(metrics: &Metrics) -> String {
    let stats = Stats { keys: 3, swept: 5, evicted: 7, spent_receipts: 9, ..Stats::default() };
    let figures = StoreFigures { breaker_is_open: true, cached_denials: 11, stats: Some(stats) };
    let text = metrics.expose(&rules(), &figures);
    assert_well_formed(&text);
    text
}

#[test]
fn every_counter_is_in_the_text() {
    let (metrics, clock) = metrics();
    metrics.decisions.count(Transport::Http, "api", ChargeOutcome::Allowed, 3);
    metrics.decisions.count(Transport::Http, "api", ChargeOutcome::Denied, 1);
    metrics.decisions.count(Transport::Http, "sliding-log/60s", ChargeOutcome::ShadowDenied, 1);
    metrics.decisions.count(Transport::Http, "/login", ChargeOutcome::Denied, 1);
    metrics.observe_decision(Transport::Http, 12);
    metrics.operations.observe_call("check", 2);
    metrics.operations.failed("check", StoreCause::Ambiguous);
    metrics.outage_answers.count("api", OnStoreError::Allow, StoreCause::Ambiguous);
    metrics.connection_opened();
    metrics.connection_opened();
    metrics.connection_closed();
    metrics.set_dropped_log_lines(Arc::new(AtomicU64::new(3)));
    clock.advance(Duration::from_millis(1_500));
    metrics.count_reload(true);
    clock.advance(Duration::from_secs(60));
    metrics.count_reload(false);
    let text = exposed(&metrics);
    for line in [
        r#"slidegate_decisions_total{rule="api",result="allowed",transport="http"} 1"#,
        r#"slidegate_decisions_total{rule="api",result="denied",transport="http"} 1"#,
        r#"slidegate_decisions_total{rule="inline",result="shadow_denied",transport="http"} 1"#,
        r#"slidegate_decisions_total{rule="/login",result="denied",transport="http"} 1"#,
        r#"slidegate_decisions_total{rule="quota",result="error_denied",transport="http"} 0"#,
        r#"slidegate_hits_total{rule="api"} 3"#,
        r#"slidegate_limit_units{rule="api",window_seconds="60"} 60"#,
        r#"slidegate_limit_units{rule="quota",window_seconds="86400"} 9500"#,
        r#"slidegate_limit_units{rule="quota",window_seconds="1.5"} 475"#,
        r#"slidegate_decision_duration_seconds_count{transport="http",store="memory"} 1"#,
        r#"slidegate_decision_duration_seconds_bucket{transport="http",store="memory",le="0.00001"} 0"#,
        r#"slidegate_decision_duration_seconds_bucket{transport="http",store="memory",le="0.00002"} 1"#,
        r#"slidegate_store_operation_duration_seconds_sum{store="memory",op="check"} 0.000002"#,
        r#"slidegate_store_errors_total{store="memory",op="check",kind="ambiguous"} 1"#,
        r#"slidegate_outage_answers_total{rule="api",policy="allow",cause="ambiguous"} 1"#,
        r#"slidegate_breaker_open{store="memory"} 1"#,
        r#"slidegate_deny_cache_hits_total{store="memory"} 11"#,
        r#"slidegate_keys{store="memory"} 3"#,
        r#"slidegate_spent_receipts{store="memory"} 9"#,
        r#"slidegate_keys_evicted_total{store="memory",reason="expired"} 5"#,
        r#"slidegate_keys_evicted_total{store="memory",reason="capacity"} 7"#,
        r#"slidegate_config_reloads_total{result="ok"} 1"#,
        r#"slidegate_config_reloads_total{result="failed"} 1"#,
        "slidegate_config_last_reload_successful 0",
        "slidegate_config_last_reload_success_timestamp_seconds 1745000146.5",
        "slidegate_connections 1",
        "slidegate_connections_total 2",
        "slidegate_log_lines_dropped_total 3",
        "process_start_time_seconds 1745000145",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
    let build = format!("\nslidegate_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&build), "{text}");
}

#[test]
fn a_store_without_stats_has_no_key_metrics() {
    let (metrics, _clock) = metrics();
    let text = metrics.expose(&rules(), &StoreFigures::default());
    assert_well_formed(&text);
    assert!(!text.contains(" slidegate_keys"), "{text}");
}

#[test]
fn labels_are_bounded_however_many_rules_there_are() {
    let (metrics, _clock) = metrics();
    let rule =
        |number| Rule::builder(&format!("rule-{number}")).limit("5/1m".parse().unwrap()).build().unwrap();
    let rules: RuleSet = (0..3 * decisions::RULES_MAX).map(rule).collect();
    for rule in rules.iter() {
        metrics.decisions.count(Transport::Http, rule.name(), ChargeOutcome::Allowed, 1);
    }
    let text = metrics.expose(&rules, &StoreFigures::default());
    assert_well_formed(&text);
    let samples = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(samples("slidegate_hits_total{"), decisions::RULES_MAX + 1);
    assert_eq!(samples("slidegate_limit_units{"), decisions::RULES_MAX);
    assert!(text.contains("\nslidegate_hits_total{rule=\"other\"} 2000\n"), "{text}");
}
