//! What came of it, as people and programs read it.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use serde::{Deserialize, Serialize};
use slidegate::{Decision, Verdict};

use crate::cli::duration::rounded_up;
use crate::text::escaped;

/// The whole answer, with the names of the HTTP interface. Numbers are missing where nothing is counted or known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) allowed: bool,
    pub(super) rule: String,
    limit: Option<u64>,
    used: Option<u64>,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    pub(super) degraded: bool,
    /// Why nothing is counted.
    #[serde(rename = "override", default, skip_serializing_if = "Option::is_none")]
    by_override: Option<Override>,
    /// Why the store did not answer, where the outage policy did; goes to stderr.
    #[serde(skip)]
    pub(super) why: Option<String>,
    /// Every charge's own verdict, where there are several or one differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Override {
    Unlimited,
    Blocked,
}

/// What one rule said to one charge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Check {
    rule: String,
    key: String,
    allowed: bool,
    limit: Option<u64>,
    used: Option<u64>,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shadow: bool,
}

impl Answer {
    /// What a store decided, or the outage policy in its place.
    pub(super) fn decided(decision: &Decision<'_>) -> Self {
        let (binding, degraded) = (decision.binding(), decision.degraded());
        let differs = |verdict: &Verdict<'_>| verdict.allowed() != binding.allowed();
        let shows = decision.verdicts().count() > 1 || decision.verdicts().any(|verdict| differs(&verdict));
        let checks = decision.verdicts().filter(|_| shows && !degraded);
        Self {
            allowed: binding.allowed(),
            rule: binding.rule().to_owned(),
            limit: binding.limit(),
            used: binding.used(),
            remaining: binding.remaining(),
            retry_after_ms: binding.retry_after().map(whole_ms).filter(|_| !degraded),
            reset_after_ms: binding.reset_after().map(whole_ms),
            degraded,
            checks: checks.map(|verdict| Check::of(&verdict)).collect(),
            why: decision.store_error().map(ToString::to_string),
            ..Self::default()
        }
    }

    /// The server did not answer, and the caller lets the request pass: nothing is known of what is used.
    pub(super) fn degraded(rule: &str, error: &Error) -> Self {
        Self { allowed: true, rule: rule.to_owned(), degraded: true, ..Self::default() }.because(error)
    }

    /// The same with another cause.
    pub(super) fn because(self, error: &Error) -> Self {
        Self { why: Some(format!("{error:#}")), ..self }
    }

    /// An override has the answer, and nothing is counted.
    pub(super) fn overridden(by_override: Override, rule: &str) -> Self {
        let allowed = by_override == Override::Unlimited;
        Self { allowed, rule: rule.to_owned(), by_override: Some(by_override), ..Self::default() }
    }

    /// What a server answered.
    pub(super) fn of_server(body: &[u8]) -> Result<Self, serde_json::Error> {
        let answer: Self = serde_json::from_slice(body)?;
        // It has an answer without a limit, and it did not guess: an override of its own.
        let free = answer.allowed && answer.limit.is_none() && !answer.degraded;
        Ok(if free { Self::overridden(Override::Unlimited, &answer.rule) } else { answer })
    }

    /// Until the same request passes; `None` if waiting does not help, or is not needed.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.filter(|_| !self.allowed).map(Duration::from_millis)
    }

    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).context("an answer is text and numbers")
    }

    /// The key whose numbers these are, where that is not clear by itself.
    fn key(&self) -> Option<&str> {
        let binds = |check: &&Check| {
            check.rule == self.rule
                && (check.limit, check.used) == (self.limit, self.used)
                && (self.allowed || check.retry_after_ms == self.retry_after_ms)
        };
        if self.checks.len() < 2 {
            None
        } else {
            self.checks.iter().find(binds).map(|check| check.key.as_str())
        }
    }
}

impl Check {
    fn of(verdict: &Verdict<'_>) -> Self {
        Self {
            rule: verdict.rule().to_owned(),
            key: verdict.key().to_owned(),
            allowed: verdict.allowed(),
            limit: verdict.limit(),
            used: verdict.used(),
            remaining: verdict.remaining(),
            retry_after_ms: Some(verdict.retry_after().map_or(0, whole_ms)),
            reset_after_ms: Some(verdict.reset_after().map_or(0, whole_ms)),
            shadow: verdict.shadow(),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allowed { "allowed: " } else { "denied: " })?;
        match (self.by_override, self.remaining, self.limit) {
            (Some(Override::Unlimited), ..) => f.write_str("the key is unlimited")?,
            (Some(Override::Blocked), ..) => f.write_str("the key is blocked, waiting does not help")?,
            (None, Some(remaining), Some(limit)) => write!(f, "{remaining} of {limit} units left")?,
            _ => f.write_str("degraded, the store did not answer")?,
        }
        if let Some(wait) = self.retry_after() {
            write!(f, ", retry in {}", rounded_up(wait))?;
        }
        // Names may be a server's words, which is not trusted with the terminal.
        let rule = escaped(&self.rule);
        match self.key() {
            Some(key) => write!(f, " (rule {rule}, key {})", escaped(key)),
            None => write!(f, " (rule {rule})"),
        }
    }
}

/// Milliseconds, rounded up: a retry after so long does not come too early.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
