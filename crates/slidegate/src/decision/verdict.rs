//! A rule's verdict on a charge, and how several verdicts are joined.

use std::time::Duration;

use crate::charge::Charge;
use crate::rule::Limit;

/// One rule's verdict on one charge.
///
/// For a rule with several limits, `limit`, `used` and `remaining` are those of the binding limit, `retry_after` and
/// `reset_after` the latest of all. Unknown numbers are `None`: those of an unlimited key, and those of a store that
/// failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'a> {
    pub(crate) charge: Charge<'a>,
    pub(crate) basis: Basis<'a>,
    pub(crate) allowed: bool,
    pub(crate) used: u64,
    pub(crate) retry_after_us: u64,
    pub(crate) reset_after_us: u64,
}

/// The basis of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis<'a> {
    /// The units used of a limit.
    Counted(&'a Limit),
    /// An override: the charge is not counted.
    Unlimited,
    /// The outage policy: the numbers are unknown.
    Degraded,
}

impl<'a> Verdict<'a> {
    /// An admission by one limit of the charge's rule, with nothing used.
    #[must_use]
    pub fn new(charge: &Charge<'a>, limit: &'a Limit) -> Self {
        Self::on(*charge, Basis::Counted(limit))
    }

    /// An admission on this basis.
    pub(crate) fn on(charge: Charge<'a>, basis: Basis<'a>) -> Self {
        Self { charge, basis, allowed: true, used: 0, retry_after_us: 0, reset_after_us: 0 }
    }

    /// The same verdict with `used` units in use, the last of them for `reset_after_us` more.
    #[must_use]
    pub fn with_usage(self, used: u64, reset_after_us: u64) -> Self {
        Self { used, reset_after_us, ..self }
    }

    /// The same verdict as a denial of a cost that passes after `retry_after_us`; 0 if the cost can never pass, which
    /// happens for shadow rules only.
    #[must_use]
    pub fn denied(self, retry_after_us: u64) -> Self {
        Self { allowed: false, retry_after_us, ..self }
    }

    /// Whether this rule, asked alone, admits the charge.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// Name of the rule.
    #[must_use]
    pub fn rule(&self) -> &'a str {
        self.charge.rule.name()
    }

    /// Who is limited.
    #[must_use]
    pub fn key(&self) -> &'a str {
        self.charge.key.as_str()
    }

    /// The tag of the key, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&'a str> {
        self.charge.key.tag()
    }

    /// Units asked for, all charges on the same state together.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.charge.cost
    }

    /// Whether the rule is a shadow: its denial does not deny the request.
    #[must_use]
    pub fn shadow(&self) -> bool {
        self.charge.rule.shadow()
    }

    /// Whether an override lets the key pass without counting it.
    #[must_use]
    pub fn unlimited(&self) -> bool {
        self.basis == Basis::Unlimited
    }

    /// Whether it denies a cost that never passes.
    pub(super) fn never_passes(&self) -> bool {
        !self.allowed && self.retry_after_us == 0
    }

    fn counted(&self) -> Option<&'a Limit> {
        match self.basis {
            Basis::Counted(limit) => Some(limit),
            Basis::Unlimited | Basis::Degraded => None,
        }
    }

    /// Units that the limit enforces, after headroom.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.counted().map(Limit::units)
    }

    /// Window of the limit.
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.counted().map(|limit| limit.rate().window())
    }

    /// Units in use, rounded up: this request included if it was charged.
    #[must_use]
    pub fn used(&self) -> Option<u64> {
        self.counted().map(|_| self.used)
    }

    /// Units left of this limit: a request for as many passes it. Of several limits, an admission shows the
    /// smallest `remaining`, a denial that of the limit with the longest wait.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.counted().map(|limit| limit.units().saturating_sub(self.used))
    }

    /// Time until this same cost passes if nobody else spends, to the microsecond. Zero when allowed; `None` if the
    /// cost can never pass, as for a shadow rule that is asked for more than its limit.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        (self.allowed || self.retry_after_us > 0).then(|| Duration::from_micros(self.retry_after_us))
    }

    /// Time until nothing is used.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.counted().map(|_| Duration::from_micros(self.reset_after_us))
    }

    /// The verdict as the answer to the whole request: a shadow never denies.
    #[inline]
    pub(super) fn shown_alone(self) -> Self {
        if self.shadow() { Self { allowed: true, retry_after_us: 0, ..self } } else { self }
    }

    /// Joins verdicts that must all admit: the binding one's numbers, the latest of the waits.
    ///
    /// On a denial the latest `retry_after` binds, on an admission the smallest `remaining`; ties go
    /// to the longest window, then to the first. `None` for no verdicts.
    pub fn join(verdicts: impl Iterator<Item = Self>) -> Option<Self> {
        verdicts.reduce(|first, second| {
            let allowed = first.allowed && second.allowed;
            let (retry_after_us, reset_after_us) = (
                first.retry_after_us.max(second.retry_after_us),
                first.reset_after_us.max(second.reset_after_us),
            );
            let rank = |verdict: &Self| {
                // A shadow that can never admit has no retry instant; a denial binds before any admission.
                let remaining = verdict.remaining().unwrap_or(u64::MAX);
                let urgency = if allowed { u64::MAX - remaining } else { verdict.retry_after_us };
                (!verdict.allowed, urgency, verdict.counted().map_or(0, Limit::window_us))
            };
            let binding = if rank(&second) > rank(&first) { second } else { first };
            Self { allowed, retry_after_us, reset_after_us, ..binding }
        })
    }
}
