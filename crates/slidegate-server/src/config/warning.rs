//! What is legal but unwise.

use serde_saphyr::Location;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::Override;
use slidegate::{Algorithm, Rule};

use super::mistake::{Findings, Found, Source};
use super::rule::FileRule;
use super::setting::Given;
use crate::service::Settings;
use crate::stores::bytes_per_key;
use crate::text::excerpt;

/// An exact log of more units than these is worth a second thought.
const LOG_UNITS_MAX: u64 = 10_000;

/// Warnings about a file's rules and settings, given the settings that are in force in the end.
pub(super) fn find(file: &str, rules: &[FileRule], given: &Given, settings: &Settings) -> Vec<Found> {
    let mut found = Findings::of(file);
    let http = settings.http;
    if !http.ip().is_loopback() && settings.token.is_none() {
        let source = given.source("http").unwrap_or_else(|| Source::Name("http".to_owned()));
        let remedy = "give `token_file`, or listen on 127.0.0.1";
        let text = format!("http: anybody who reaches {http} may spend and reset; {remedy}");
        found.found.push(Found::new(source, &text));
    }
    let is_remote = settings.store.kind() != "memory";
    if let (true, Some(source)) = (is_remote, given.source("memory_budget")) {
        let text = "memory_budget: has no effect, as states live in another store; remove it";
        found.found.push(Found::new(source, text));
    }
    for rule in rules {
        of_rule(rule, is_remote, &mut found);
    }
    if !rules.is_empty() && rules.iter().all(|rule| rule.rule.shadow()) {
        let text =
            "every rule is a shadow, so nothing is ever refused; remove `shadow` from one once it is judged";
        found.add(rules[0].at, text);
    }
    found.found
}

fn of_rule(given: &FileRule, is_remote: bool, found: &mut Findings) {
    let FileRule { rule, overrides, at, has_policy } = given;
    let name = excerpt(rule.name());
    if is_remote && !has_policy {
        let text = "on_store_error: is not given, so all is denied while the store does not answer; write deny to agree, \
                    or allow";
        found.add(*at, &format!("rule `{name}`: {text}"));
    }
    if let OnStoreError::Local(_) = rule.on_store_error() {
        let text = "on_store_error: local acts as deny in this version; write deny or allow to choose";
        found.add(*at, &format!("rule `{name}`: {text}"));
    }
    long_logs(rule, &format!("rule `{name}`"), *at, found);
    for (key, meant) in overrides.iter() {
        let Override::Limited(own) = meant else { continue };
        let named = format!("rule `{name}`: overrides: `{}`", excerpt(key));
        long_logs(own, &named, *at, found);
    }
}

fn long_logs(rule: &Rule, named: &str, at: Location, found: &mut Findings) {
    for limit in rule.limits() {
        if limit.algorithm() == Algorithm::SlidingLog && limit.units() > LOG_UNITS_MAX {
            let (units, bytes) = (limit.units(), bytes_per_key(limit));
            let text = format!(
                "sliding-log remembers up to {units} requests of a key, {bytes} bytes; algorithm: compact-log never \
                 lets more through and takes at most 1536"
            );
            found.add(at, &format!("{named}: {text}"));
        }
    }
}
