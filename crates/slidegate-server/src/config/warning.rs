//! Warnings: legal but unwise rules and settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_saphyr::Location;
use slidegate::ruleset::Override;
use slidegate::{Algorithm, Rule};

use super::finding::{Finding, Findings, Source};
use super::rule::FileRule;
use super::setting::{GivenSettings, SECRET_FILES};
use crate::service::{STORE_FIELD, Settings};
use crate::stores::bytes_per_key;
use crate::text::excerpt;

/// A sliding log of more units than this takes enough memory for a warning.
const LOG_UNITS_MAX: u64 = 10_000;

/// Warnings about the rules of a file and the final settings.
pub(super) fn find(
    file: &str,
    rules: &[FileRule],
    given: &GivenSettings,
    settings: &Settings,
) -> Vec<Finding> {
    let mut findings = Findings::of(file);
    let http = settings.http;
    if !http.ip().is_loopback() && settings.tokens().is_empty() && settings.tls.client_ca.is_none() {
        let source = given.source("http").unwrap_or_else(|| Source::Name("http".to_owned()));
        let remedy = "give `tokens`, or listen on 127.0.0.1";
        let text = format!("http: anybody who can reach {http} can charge and reset keys; {remedy}");
        findings.list.push(Finding::new(source, &text));
    }
    for setting in SECRET_FILES {
        let (Some(source), Some([path])) = (given.source(setting), given.texts(setting)) else { continue };
        findings
            .list
            .extend(readable_by_others(path).map(|text| Finding::new(source, &format!("{setting}: {text}"))));
    }
    let (body_bytes, buffer_bytes) = (settings.bounds.body_bytes, settings.bounds.buffer_bytes);
    if body_bytes > buffer_bytes {
        let source = given.source("bounds.buffer_bytes").or(given.source("bounds.body_bytes"));
        let text = format!(
            "bounds.buffer_bytes: {buffer_bytes} bytes hold no body of bounds.body_bytes, {body_bytes} bytes; raise it"
        );
        findings.list.extend(source.map(|source| Finding::new(source, &text)));
    }
    store_parameters(given, settings, &mut findings.list);
    let kind = settings.store.kind();
    let (is_external, is_local) = (kind != "memory", matches!(kind, "memory" | "sqlite"));
    if let (true, Some(source)) = (is_external, given.source("memory_budget")) {
        let text = "memory_budget: has no effect, as states live in another store; remove it";
        findings.list.push(Finding::new(source, text));
    }
    let keeps_sets = settings.store_url().is_ok_and(|url| url.keeps_sorted_sets());
    for rule in rules {
        of_rule(rule, is_external, &mut findings);
        if is_local && rule.rule.shards() > 1 {
            let name = excerpt(rule.rule.name());
            let text = "shards: has no effect, as only a Redis splits keys; remove it, or choose a Redis as the store";
            findings.add(rule.at, &format!("rule `{name}`: {text}"));
        }
        if let (Some(unit), false) = (rule.rule.take_over(), keeps_sets) {
            let (name, unit) = (excerpt(rule.rule.name()), unit.name());
            let text = format!(
                "rule `{name}`: take_over: {unit} has no effect without a Redis and log_layout: sorted-set; set both, or \
                 remove it"
            );
            findings.add(rule.at, &text);
        }
    }
    if !rules.is_empty() && rules.iter().all(|rule| rule.rule.shadow()) {
        let text = "every rule is a shadow, so nothing is ever refused; remove `shadow` from the rules that should refuse";
        findings.add(rules[0].at, text);
    }
    findings.list
}

/// Settings of a Redis that have no effect.
fn store_parameters(given: &GivenSettings, settings: &Settings, list: &mut Vec<Finding>) {
    let fields = settings.store_parameters.keys().map(|name| (*name, format!("{STORE_FIELD}{name}")));
    for (parameter, setting) in fields.chain([("deadline", "deadline".to_owned())]) {
        let Some(source) = given.source(&setting) else { continue };
        let why = if settings.store.has_parameter(parameter) {
            "has no effect, as the URL of the store gives it; remove one of them"
        } else if parameter != "deadline" && settings.store.kind() != "redis" {
            "has no effect, as states do not live in a Redis; remove it"
        } else {
            continue;
        };
        list.push(Finding::new(source, &format!("{setting}: {why}")));
    }
}

/// A warning if users other than the owner may open the file.
fn readable_by_others(path: &str) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let path = excerpt(path);
    (mode & 0o077 != 0).then(|| format!("other users may open `{path}`; run `chmod 600` on it"))
}

fn of_rule(given: &FileRule, is_external: bool, findings: &mut Findings) {
    let FileRule { rule, overrides, at, has_policy } = given;
    let name = excerpt(rule.name());
    if is_external && !has_policy {
        let text = "on_store_error: is not given, so everything is denied while the store does not answer; write deny to \
                    confirm, allow, or { local: 0.25 }";
        findings.add(*at, &format!("rule `{name}`: {text}"));
    }
    long_logs(rule, &format!("rule `{name}`"), *at, findings);
    for (key, key_override) in overrides.iter() {
        let Override::Limited(own) = key_override else { continue };
        let named = format!("rule `{name}`: overrides: `{}`", excerpt(key));
        long_logs(own, &named, *at, findings);
    }
}

fn long_logs(rule: &Rule, named: &str, at: Location, findings: &mut Findings) {
    for limit in rule.limits() {
        if limit.algorithm() == Algorithm::SlidingLog && limit.units() > LOG_UNITS_MAX {
            let (units, bytes) = (limit.units(), bytes_per_key(limit));
            let text = format!(
                "sliding-log keeps up to {units} requests of a key, {bytes} bytes; algorithm: compact-log never lets more \
                 through and takes at most 1536"
            );
            findings.add(at, &format!("{named}: {text}"));
        }
    }
}
