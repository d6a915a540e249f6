//! `slidegate validate`: explains a configuration file, or lists all its mistakes.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use slidegate::rule::{Decimal, Limit, OnStoreError};
use slidegate::ruleset::{Override, Overrides};
use slidegate::time::WallClock;
use slidegate::{Rule, RuleSet};

use super::output::write_data;
use crate::config::{Config, ConfigError, Finding, GivenSettings, Source};
use crate::service::Settings;
use crate::stores::bytes_per_key;
use crate::tls::Tls;
use crate::tokens::Scope;

/// Explain a configuration file, or list all its mistakes
///
/// Reads only the file, its secret files and its TLS files; contacts no server and starts none.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The configuration file (YAML)
    file: PathBuf,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "Example:

  slidegate config example > slidegate.yaml
  slidegate validate slidegate.yaml

Exit status: 0 if a server starts with the file, 2 if not. Every mistake is a line
error: FILE:LINE:COLUMN: FIELD: mistake; remedy. Warnings do not change the status.";

/// Prints the explanation or the mistakes.
pub(super) fn run(args: &Args, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    let no_flags = GivenSettings::default();
    let checked = Config::load(&args.file).and_then(with_usable_tls).and_then(|config| {
        config.check_together(&no_flags, &config.settings)?;
        Ok(config)
    });
    let config = match checked {
        Ok(config) => config,
        Err(error) if args.json => {
            let mistakes: Vec<Value> = error.mistakes.iter().map(finding_json).collect();
            let refused = json!({ "valid": false, "mistakes": mistakes });
            write_data(format!("{refused}\n").as_bytes(), out)?;
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(error.into()),
    };
    let settings = &config.settings;
    let (rules, warnings) = (config.rules(&no_flags), config.warnings(&no_flags, settings));
    if args.json {
        let report = json!({
            "valid": true,
            "rules": rules.with_overrides().map(rule_json).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(finding_json).collect::<Vec<_>>(),
        });
        write_data(format!("{report}\n").as_bytes(), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &warnings {
        writeln!(err, "warning: {warning}").ok();
    }
    let text = described(&rules, settings, warnings.len());
    write_data(text.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration, if a server can serve TLS with its files.
fn with_usable_tls(config: Config) -> Result<Config, ConfigError> {
    match Tls::open(&config.settings.tls, &[], Arc::new(WallClock)) {
        Ok(_) => Ok(config),
        Err(error) => Err(config.mistake(error.setting(), &error.to_string())),
    }
}

fn finding_json(finding: &Finding) -> Value {
    let (file, at) = match &finding.source {
        Source::File(file, at) => (Some(file), *at),
        Source::Name(_) => (None, None),
    };
    let (line, column) = at.unzip();
    json!({ "file": file, "line": line, "column": column, "text": finding.text })
}

fn rule_json((rule, overrides): (&Rule, &Overrides)) -> Value {
    let overrides = overrides.iter().map(|(key, key_override)| {
        let key_override = match key_override {
            Override::Limited(rule) => json!(rule.limits().iter().map(limit_json).collect::<Vec<_>>()),
            Override::Unlimited => json!("unlimited"),
            Override::Blocked => json!("blocked"),
        };
        (key.to_owned(), key_override)
    });
    json!({
        "name": rule.name(),
        "algorithm": rule.algorithm().to_string(),
        "limits": rule.limits().iter().map(limit_json).collect::<Vec<_>>(),
        "shadow": rule.shadow(),
        "on_store_error": policy(rule.on_store_error()),
        "bytes_per_key_max": bytes_of(rule),
        "overrides": overrides.collect::<serde_json::Map<String, Value>>(),
    })
}

fn limit_json(limit: &Limit) -> Value {
    json!({ "rate": limit.rate().to_string(), "enforced": limit.units(), "window_ms": limit.window_us() / 1_000 })
}

fn policy(policy: OnStoreError) -> String {
    match policy {
        OnStoreError::Deny => "deny".to_owned(),
        OnStoreError::Allow => "allow".to_owned(),
        OnStoreError::Local(share) => format!("local {share}"),
    }
}

fn bytes_of(rule: &Rule) -> u64 {
    rule.limits().iter().map(bytes_per_key).fold(0, u64::saturating_add)
}

fn described(rules: &RuleSet, settings: &Settings, warnings: usize) -> String {
    let mut lines = Vec::new();
    for (rule, overrides) in rules.with_overrides() {
        let shadow = if rule.shadow() { ", shadow" } else { "" };
        lines.push(format!("rule {}: {}{shadow}", rule.name(), rates(rule)));
        let policy = policy(rule.on_store_error());
        let bytes = bytes_of(rule);
        lines.push(format!(
            "  {}, up to {bytes} bytes per key, without the store: {policy}",
            rule.algorithm()
        ));
        for (key, key_override) in overrides.iter() {
            let key_override = match key_override {
                Override::Limited(rule) => rates(rule),
                Override::Unlimited => "unlimited".to_owned(),
                Override::Blocked => "blocked".to_owned(),
            };
            lines.push(format!("  {key}: {key_override}"));
        }
    }
    for (name, token) in &settings.tokens {
        let scopes: Vec<_> = token.scopes.iter().map(Scope::name).collect();
        lines.push(format!("token {name}: {}", scopes.join(", ")));
    }
    let inline = if rules.allows_inline() { "allowed" } else { "not allowed" };
    lines.push(format!("http {}, store {}, inline rules {inline}", settings.http, settings.store.kind()));
    let warnings = if warnings == 1 { "1 warning".to_owned() } else { format!("{warnings} warnings") };
    lines.push(format!("valid, {warnings}"));
    lines.iter().map(|line| crate::text::escaped(line) + "\n").collect()
}

/// The rates, and the enforced limits after headroom.
fn rates(rule: &Rule) -> String {
    let rate = |limit: &Limit| {
        let rate = limit.rate();
        if rule.headroom() == Decimal::ZERO {
            return rate.to_string();
        }
        format!("{rate} of which {} after headroom {}", limit.units(), rule.headroom())
    };
    rule.limits().iter().map(rate).collect::<Vec<_>>().join(" and ")
}
