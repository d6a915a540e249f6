//! `slidegate check`: asks for units from a script; the exit status is the answer.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;
use slidegate::rule::OnStoreError;
use slidegate::store::{Store, When};
use slidegate::{Admission, Algorithm, Charge, Decision, Key, Rate, Rule};

use super::duration::rounded_up;
use crate::config::Config;
use crate::service::{Opened, Resolved, StoreUrl};

/// Ask for units; exit status 0 if they were granted, 1 if not
///
/// All who ask with the same key, the same limit and the same store share one count. A refusal costs nothing and
/// says when the same request passes.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Who is limited: a client, a credential, an address
    key: String,

    /// The limit, as LIMIT/WINDOW: 60/1m, 9500/24h
    #[arg(long, value_name = "RATE", required_unless_present = "rule", conflicts_with = "rule")]
    limit: Option<Rate>,

    /// Units asked for
    #[arg(long, value_name = "N", default_value_t = 1)]
    cost: u64,

    /// How the window is kept [default: sliding-log]
    #[arg(long, value_name = "NAME", conflicts_with = "rule")]
    algorithm: Option<Algorithm>,

    /// A rule of the configuration, in place of --limit
    #[arg(long, value_name = "NAME", requires = "config")]
    rule: Option<String>,

    /// Rules by name (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where states live: redis://HOST:PORT, or what the configuration says
    #[arg(long, value_name = "URL")]
    store: Option<StoreUrl>,

    /// What to answer when the store does not [default: what the rule says, else deny]
    #[arg(long, value_name = "POLICY")]
    on_store_error: Option<Policy>,

    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "Example: eight jobs share 9,500 units a day, and a search costs 100:

  slidegate check yt:quota:key1 --limit 9500/24h --cost 100 \\
      --store redis://localhost:6379 || exit 0

Exit status: 0 allowed, 1 denied, 2 neither (a mistake, or a store that does not
answer; --on-store-error allow turns the latter into 0).";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Without an answer nothing passes: exit status 2
    Deny,
    /// Without an answer everything passes, marked as degraded
    Allow,
}

/// The whole answer.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    allowed: bool,
    rule: &'a str,
    limit: u64,
    used: u64,
    remaining: u64,
    retry_after_ms: u128,
    reset_after_ms: u128,
    degraded: bool,
}

/// Asks, and says how the program ends.
pub(super) fn run(args: &Args, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    let config = args.config.as_deref().map(Config::load).transpose()?;
    let store = match (&args.store, &config) {
        (Some(store), _) => store.clone(),
        (None, Some(config)) => config.store(),
        (None, None) => StoreUrl::Memory,
    };
    if matches!(store, StoreUrl::Memory) {
        bail!("store: memory forgets everything when this program ends; give --store redis://HOST:PORT");
    }
    let rule = match (args.limit, &args.rule, config) {
        (Some(limit), ..) => Rule::inline(limit, args.algorithm.unwrap_or_default()),
        (None, Some(name), Some(config)) => match config.rules().resolve(name, &args.key)? {
            Resolved::Limited(rule) => rule.clone(),
            Resolved::Unlimited(rule) => return overridden(args, rule, true, out),
            Resolved::Blocked(rule) => return overridden(args, rule, false, out),
        },
        _ => bail!("limit: is missing; give --limit 60/1m, or --rule NAME with --config FILE"),
    };
    let admission = Admission::new(&[Charge { rule: &rule, key: Key::new(&args.key)?, cost: args.cost }])?;
    let passes_without = match args.on_store_error {
        Some(policy) => policy == Policy::Allow,
        None => rule.on_store_error() == OnStoreError::Allow,
    };
    let asked = Opened::open(&store).map_err(anyhow::Error::from).and_then(|opened| {
        Ok(opened.wait(opened.store.check(When::Now, &admission)).map(|outcome| outcome.decision)?)
    });
    match asked {
        Ok(decision) => {
            write(args, &decision, out)?;
            Ok(if decision.allowed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        Err(error) if passes_without => {
            writeln!(err, "degraded: {error:#}").ok();
            write_degraded(args, &rule, out)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
    }
}

fn write(args: &Args, decision: &Decision<'_>, out: &mut impl Write) -> Result<()> {
    let (remaining, limit, rule) = (decision.remaining(), decision.limit(), decision.rule());
    let text = if args.json {
        serde_json::to_string(&Answer {
            allowed: decision.allowed(),
            rule,
            limit,
            used: decision.used(),
            remaining,
            retry_after_ms: decision.retry_after().as_micros().div_ceil(1_000),
            reset_after_ms: decision.reset_after().as_micros().div_ceil(1_000),
            degraded: decision.degraded(),
        })?
    } else if decision.allowed() {
        format!("allowed: {remaining} of {limit} units left (rule {rule})")
    } else {
        let wait = rounded_up(decision.retry_after());
        format!("denied: {remaining} of {limit} units left, retry in {wait} (rule {rule})")
    };
    writeln!(out, "{text}").context("cannot write the answer")
}

/// An override has the answer, and nothing is counted.
fn overridden(args: &Args, rule: &Rule, allowed: bool, out: &mut impl Write) -> Result<ExitCode> {
    let (name, word) = (rule.name(), if allowed { "unlimited" } else { "blocked" });
    let text = match (args.json, allowed) {
        (true, _) => serde_json::json!({ "allowed": allowed, "rule": name, "override": word }).to_string(),
        (false, true) => format!("allowed: the key is unlimited (rule {name})"),
        (false, false) => format!("denied: the key is blocked, waiting does not help (rule {name})"),
    };
    writeln!(out, "{text}").context("cannot write the answer")?;
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The store did not answer, and the policy lets the request pass: nothing is known of what is used.
fn write_degraded(args: &Args, rule: &Rule, out: &mut impl Write) -> Result<()> {
    let (limit, name) = (rule.limits()[0].units(), rule.name());
    let text = if args.json {
        serde_json::to_string(&Answer {
            allowed: true,
            rule: name,
            limit,
            used: 0,
            remaining: limit,
            retry_after_ms: 0,
            reset_after_ms: 0,
            degraded: true,
        })?
    } else {
        format!("allowed: degraded, the store did not answer (rule {name})")
    };
    writeln!(out, "{text}").context("cannot write the answer")
}
