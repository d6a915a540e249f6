//! The output line of an input line. The order of the fields is part of the format.

use serde::Serialize;
use slidegate::store::LimitUsage;
use slidegate::{Applied, Decision, Key, Rule, Verdict};

use super::line_error::LineError;
use crate::text::whole_us;

/// The answer to one line.
#[derive(Debug, Serialize)]
pub(crate) struct LineAnswer {
    pub(super) line: u64,
    #[serde(flatten)]
    pub(super) body: AnswerBody,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum AnswerBody {
    /// A decision, and every charge's own verdict. Unlimited keys have no numbers.
    Decided {
        allowed: bool,
        rule: String,
        limit: Option<u64>,
        used: Option<u64>,
        remaining: Option<u64>,
        retry_after_us: u64,
        reset_after_us: u64,
        /// Left out where it is true.
        #[serde(skip_serializing_if = "Clone::clone")]
        atomic: bool,
        checks: Vec<ChargeAnswer>,
    },
    Applied {
        applied: bool,
        units: u64,
    },
    Inspected {
        rule: String,
        key: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        limits: Vec<LimitAnswer>,
    },
    Changed {
        applied: bool,
        rule: String,
        limits: Vec<String>,
    },
    Failed(LineError),
}

impl LineAnswer {
    /// Whether the line was not executed.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(&self.body, AnswerBody::Failed(error) if !error.is_answer())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ChargeAnswer {
    rule: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    allowed: bool,
    used: Option<u64>,
    remaining: Option<u64>,
    retry_after_us: u64,
}

/// A limit and what is used of it.
#[derive(Debug, Serialize)]
pub(super) struct LimitAnswer {
    limit: u64,
    window_us: u64,
    used: u64,
    remaining: u64,
    reset_after_us: u64,
}

impl AnswerBody {
    /// The answer to a check or a peek.
    pub(super) fn decided(decision: &Decision<'_>) -> Self {
        let binding = decision.binding();
        Self::Decided {
            allowed: binding.allowed(),
            rule: binding.rule().to_owned(),
            limit: binding.limit(),
            used: binding.used(),
            remaining: binding.remaining(),
            retry_after_us: binding.retry_after().map_or(0, whole_us),
            reset_after_us: binding.reset_after().map_or(0, whole_us),
            atomic: decision.atomic(),
            checks: decision.verdicts().map(|verdict| ChargeAnswer::of(&verdict)).collect(),
        }
    }

    pub(super) fn inspected(rule: &Rule, key: Key<'_>, usages: &[LimitUsage]) -> Self {
        let limits = usages.iter().map(|usage| LimitAnswer {
            limit: usage.limit.units(),
            window_us: usage.limit.window_us(),
            used: usage.used,
            remaining: usage.limit.units().saturating_sub(usage.used),
            reset_after_us: whole_us(usage.reset_after),
        });
        let (text, tag) = (key.as_str().to_owned(), key.tag().map(str::to_owned));
        Self::Inspected { rule: rule.name().to_owned(), key: text, tag, limits: limits.collect() }
    }

    pub(super) fn changed(rule: &Rule) -> Self {
        let limits = rule.limits().iter().map(|limit| limit.rate().to_string()).collect();
        Self::Changed { applied: true, rule: rule.name().to_owned(), limits }
    }
}

impl ChargeAnswer {
    fn of(verdict: &Verdict<'_>) -> Self {
        Self {
            rule: verdict.rule().to_owned(),
            key: verdict.key().to_owned(),
            tag: verdict.tag().map(str::to_owned),
            allowed: verdict.allowed(),
            used: verdict.used(),
            remaining: verdict.remaining(),
            retry_after_us: verdict.retry_after().map_or(0, whole_us),
        }
    }
}

impl From<Applied> for AnswerBody {
    fn from(Applied { applied, units }: Applied) -> Self {
        Self::Applied { applied, units }
    }
}
