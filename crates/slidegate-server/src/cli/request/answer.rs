//! The answer to a check or a peek, as text and as JSON.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use serde::{Deserialize, Serialize};
use slidegate::{Decision, Receipt, Verdict};

use crate::cli::duration::rounded_up;
use crate::metrics::StoreCause;
use crate::text::{escaped, whole_ms};

/// The answer, with the field names of the HTTP interface. Numbers are `None` where nothing is counted or known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::cli) struct CheckAnswer {
    pub(in crate::cli) allowed: bool,
    pub(super) rule: String,
    limit: Option<u64>,
    used: Option<u64>,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    pub(super) degraded: bool,
    /// Why the store did not answer, if the outage policy did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The override that decided, if any; then nothing is counted.
    #[serde(rename = "override", default, skip_serializing_if = "Option::is_none")]
    by_override: Option<KeyOverride>,
    /// The error of the store, if the outage policy answered; printed to stderr.
    #[serde(skip)]
    pub(super) store_error: Option<String>,
    /// Gives the charge back; `None` if nothing was charged.
    #[serde(default, skip_serializing)]
    pub(super) receipt: Option<ChargeReceipt>,
    /// Every charge's own verdict, where there are several or one differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<ChargeVerdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeyOverride {
    Unlimited,
    Blocked,
}

/// The receipt of a charge: of a store, or the text of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(super) enum ChargeReceipt {
    Store(Receipt),
    Server(String),
}

impl From<String> for ChargeReceipt {
    fn from(text: String) -> Self {
        Self::Server(text)
    }
}

/// The verdict of one rule on one charge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ChargeVerdict {
    rule: String,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    allowed: bool,
    limit: Option<u64>,
    used: Option<u64>,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shadow: bool,
}

impl CheckAnswer {
    /// The answer of a store, or of the outage policy.
    pub(super) fn from_decision(decision: &Decision<'_>) -> Self {
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
            cause: decision.store_error().map(|error| StoreCause::of(error).name().to_owned()),
            checks: checks.map(|verdict| ChargeVerdict::of(&verdict)).collect(),
            store_error: decision.store_error().map(ToString::to_string),
            receipt: decision.receipt().map(ChargeReceipt::Store),
            ..Self::default()
        }
    }

    /// The answer of the outage policy `allow` for a server that did not answer.
    pub(super) fn degraded(rule: &str, error: &Error) -> Self {
        Self { allowed: true, rule: rule.to_owned(), degraded: true, ..Self::default() }
            .with_store_error(error)
    }

    /// Replaces the error of the store.
    pub(super) fn with_store_error(self, error: &Error) -> Self {
        Self { store_error: Some(format!("{error:#}")), ..self }
    }

    /// The answer of an override.
    pub(super) fn overridden(by_override: KeyOverride, rule: &str) -> Self {
        let allowed = by_override == KeyOverride::Unlimited;
        Self { allowed, rule: rule.to_owned(), by_override: Some(by_override), ..Self::default() }
    }

    /// The answer of a server.
    pub(super) fn from_server(body: &[u8]) -> Result<Self, serde_json::Error> {
        let answer: Self = serde_json::from_slice(body)?;
        // An answer without a limit that is not degraded comes from an override of the server.
        let unlimited = answer.allowed && answer.limit.is_none() && !answer.degraded;
        Ok(if unlimited { Self::overridden(KeyOverride::Unlimited, &answer.rule) } else { answer })
    }

    /// The wait until the same request passes; `None` if it passed or never will.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.filter(|_| !self.allowed).map(Duration::from_millis)
    }

    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).context("an answer is text and numbers")
    }

    /// The key of the binding verdict, if there are several.
    fn key(&self) -> Option<&str> {
        let binds = |check: &&ChargeVerdict| {
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

impl ChargeVerdict {
    fn of(verdict: &Verdict<'_>) -> Self {
        Self {
            rule: verdict.rule().to_owned(),
            key: verdict.key().to_owned(),
            tag: verdict.tag().map(str::to_owned),
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

impl fmt::Display for CheckAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allowed { "allowed: " } else { "denied: " })?;
        match (self.by_override, self.remaining, self.limit) {
            (Some(KeyOverride::Unlimited), ..) => f.write_str("the key is unlimited")?,
            (Some(KeyOverride::Blocked), ..) => f.write_str("the key is blocked, waiting does not help")?,
            (None, Some(remaining), Some(limit)) => write!(f, "{remaining} of {limit} units left")?,
            _ => f.write_str("degraded, the store did not answer")?,
        }
        if self.degraded && self.remaining.is_some() {
            f.write_str(" by limits of the server alone, whose store did not answer")?;
        }
        if let Some(wait) = self.retry_after() {
            write!(f, ", retry in {}", rounded_up(wait))?;
        }
        // Names may come from a server, which must not write escapes to the terminal.
        let rule = escaped(&self.rule);
        match self.key() {
            Some(key) => write!(f, " (rule {rule}, key {})", escaped(key)),
            None => write!(f, " (rule {rule})"),
        }
    }
}
