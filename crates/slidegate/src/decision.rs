//! Decisions: allowed or denied, with the numbers that explain it.

use std::time::Duration;

use crate::few::Few;
use crate::rule::{Limit, Rule};

/// What one rule says to one charge.
///
/// A rule with several limits speaks through the one that binds: `limit`, `used` and `remaining`
/// are that one's, `retry_after` and `reset_after` the latest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) limit: &'a Limit,
    pub(crate) used: u64,
    pub(crate) allowed: bool,
    pub(crate) retry_after_us: u64,
    pub(crate) reset_after_us: u64,
}

impl<'a> Verdict<'a> {
    /// The verdict of one limit of a rule.
    #[must_use]
    #[inline]
    pub fn new(rule: &'a Rule, limit: &'a Limit) -> Self {
        Self { rule, limit, used: 0, allowed: true, retry_after_us: 0, reset_after_us: 0 }
    }

    /// The same with `used` units in use, the last of them for `reset_after_us` more.
    #[must_use]
    pub fn with_usage(self, used: u64, reset_after_us: u64) -> Self {
        Self { used, reset_after_us, ..self }
    }

    /// The same as a refusal of a cost that passes after `retry_after_us`; 0 where no waiting admits it, which
    /// only shadow rules are asked for.
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
        self.rule.name()
    }

    /// Whether the rule only counts: its refusal does not refuse the request.
    #[must_use]
    pub fn shadow(&self) -> bool {
        self.rule.shadow()
    }

    /// Units that the limit enforces, after headroom.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.units()
    }

    /// Window of the limit.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.limit.rate().window()
    }

    /// Units in use, rounded up: this request included if it was charged.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Units left of this limit: whoever asks for so many passes it. Of several limits that bind, the
    /// smallest `remaining` is shown on an admission, but that of the longest wait on a denial.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.limit().saturating_sub(self.used)
    }

    /// Time until this same cost passes if nobody else spends, to the microsecond. Zero when allowed. A
    /// limit of a shadow rule that is asked for more than it has, which no waiting admits, adds nothing.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        Duration::from_micros(self.retry_after_us)
    }

    /// Time until nothing is used.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after_us)
    }

    /// As the answer to a request that nothing else limits: a shadow never refuses.
    #[inline]
    fn shown_alone(self) -> Self {
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
                // A never-passing shadow has no retry instant; a denial binds before any admission.
                let urgency = if allowed { u64::MAX - verdict.remaining() } else { verdict.retry_after_us };
                (!verdict.allowed, urgency, verdict.limit.window_us())
            };
            let binding = if rank(&second) > rank(&first) { second } else { first };
            Self { allowed, retry_after_us, reset_after_us, ..binding }
        })
    }
}

/// The answer to an admission.
///
/// All of it comes from the one step that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    verdicts: Verdicts<'a>,
    degraded: bool,
}

/// One charge is the common case, and a decision is handed from call to call: it stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdicts<'a> {
    One(Verdict<'a>),
    Several(Box<Several<'a>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Several<'a> {
    binding: Verdict<'a>,
    verdicts: Vec<Verdict<'a>>,
}

impl<'a> Decision<'a> {
    /// Joins the verdicts of every charge, in the order of the charges, of which there is at least one.
    ///
    /// Shadow rules take no part, unless there are no others: then their numbers are shown with an
    /// admission.
    pub(crate) fn new(verdicts: Few<Verdict<'a>>) -> Self {
        let verdicts = match verdicts {
            Few::One([verdict]) => return Self::one(verdict),
            Few::Many(verdicts) => verdicts,
        };
        let enforced = Verdict::join(verdicts.iter().filter(|verdict| !verdict.shadow()).copied());
        let binding = enforced.unwrap_or_else(|| {
            Verdict::join(verdicts.iter().copied()).expect("an admission has a charge").shown_alone()
        });
        Self { verdicts: Verdicts::Several(Box::new(Several { binding, verdicts })), degraded: false }
    }

    /// The answer that the verdicts of every charge make, in the order of the charges; `None` for no verdicts.
    ///
    /// ```
    /// use slidegate::{Decision, Rule, Verdict};
    ///
    /// let (api, dear) =
    ///     (Rule::builder("api").limit("9/1m".parse()?).build()?, Rule::builder("dear").limit("2/1m".parse()?).build()?);
    /// let passes = Verdict::new(&api, &api.limits()[0]).with_usage(5, 30_000_000);
    /// let waits = Verdict::new(&dear, &dear.limits()[0]).with_usage(2, 60_000_000).denied(45_000_000);
    /// let decision = Decision::of_verdicts([passes, waits]).expect("two verdicts");
    /// assert!(!decision.allowed());
    /// assert_eq!((decision.rule(), decision.retry_after().as_secs()), ("dear", 45));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_verdicts(verdicts: impl IntoIterator<Item = Verdict<'a>>) -> Option<Self> {
        let verdicts: Few<_> = verdicts.into_iter().collect();
        (!verdicts.is_empty()).then(|| Self::new(verdicts))
    }

    /// The answer to a single charge.
    #[inline]
    pub(crate) fn one(verdict: Verdict<'a>) -> Self {
        Self { verdicts: Verdicts::One(verdict), degraded: false }
    }

    #[inline]
    fn binding(&self) -> Verdict<'a> {
        match &self.verdicts {
            Verdicts::One(verdict) => verdict.shown_alone(),
            Verdicts::Several(several) => several.binding,
        }
    }

    /// An admission of charges on these rules by the outage policy: nothing is known of what is used.
    pub(crate) fn degraded_admission(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let verdicts = rules.map(|rule| Verdict::new(rule, &rule.limits()[0])).collect();
        Self { degraded: true, ..Self::new(verdicts) }
    }

    /// Whether the request may go ahead.
    #[must_use]
    #[inline]
    pub fn allowed(&self) -> bool {
        self.binding().allowed
    }

    /// Name of the rule that binds: on a denial the one with the latest `retry_after`, on an
    /// admission the one with the least `remaining`.
    #[must_use]
    pub fn rule(&self) -> &'a str {
        self.binding().rule()
    }

    /// Units that the binding limit enforces.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.binding().limit()
    }

    /// Window of the binding limit.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.binding().window()
    }

    /// Units of the binding limit in use: this request included if admitted, not if denied or peeked.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.binding().used()
    }

    /// Units left of the binding limit; see [`Verdict::remaining`].
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.binding().remaining()
    }

    /// Time until this same request passes if nobody else spends, to the microsecond; zero when
    /// allowed.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.binding().retry_after()
    }

    /// Time until nothing is used of any charged limit.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        self.binding().reset_after()
    }

    /// Whether this answer was given without the store, by the outage policy. What is used is not known then,
    /// and its numbers say nothing.
    #[must_use]
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Every charge's own verdict, in the order of the charges.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict<'a>] {
        match &self.verdicts {
            Verdicts::One(verdict) => std::slice::from_ref(verdict),
            Verdicts::Several(several) => &several.verdicts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    /// Rules that outlive the verdicts of the tests.
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let rates = ["10/1s", "10/1m", "10/1h", "10/60s"];
        let build = |name: &str, shadow: bool, rate: &str| {
            Rule::builder(name).limit(rate.parse().unwrap()).shadow(shadow).build().unwrap()
        };
        let named = ["a", "b", "c", "s"].into_iter();
        named.flat_map(|name| rates.map(|rate| build(name, name == "s", rate))).collect()
    });

    fn verdict(name: &str, rate: &str, used: u64, retry_after_us: u64) -> Verdict<'static> {
        let rule = RULES
            .iter()
            .find(|rule| rule.name() == name && rule.limits()[0].rate() == rate.parse().unwrap())
            .unwrap();
        Verdict {
            used,
            retry_after_us,
            allowed: retry_after_us == 0,
            reset_after_us: used,
            ..Verdict::new(rule, &rule.limits()[0])
        }
    }

    fn joined(verdicts: impl IntoIterator<Item = Verdict<'static>>) -> Decision<'static> {
        Decision::new(verdicts.into_iter().collect())
    }

    #[test]
    fn an_admission_is_bound_by_the_least_remaining() {
        let decision = joined([verdict("a", "10/1s", 3, 0), verdict("b", "10/1m", 8, 0)]);
        assert!(decision.allowed());
        assert_eq!((decision.rule(), decision.remaining()), ("b", 2));
        assert_eq!(decision.reset_after(), Duration::from_micros(8));
    }

    #[test]
    fn a_denial_is_bound_by_the_latest_retry() {
        let decision = joined([
            verdict("a", "10/1s", 10, 0),
            verdict("b", "10/1m", 8, 500),
            verdict("c", "10/1h", 2, 900),
        ]);
        assert!(!decision.allowed());
        assert_eq!((decision.rule(), decision.used()), ("c", 2));
        assert_eq!(decision.retry_after(), Duration::from_micros(900));
        assert_eq!(decision.reset_after(), Duration::from_micros(10));
    }

    #[test]
    fn ties_go_to_the_longest_window_then_the_first() {
        let decision =
            joined([verdict("a", "10/1s", 5, 0), verdict("b", "10/1m", 5, 0), verdict("c", "10/60s", 5, 0)]);
        assert_eq!(decision.rule(), "b");
        let decision = joined([verdict("a", "10/1s", 5, 7), verdict("b", "10/1m", 5, 7)]);
        assert_eq!(decision.rule(), "b");
    }

    #[test]
    fn a_shadow_takes_no_part_unless_alone() {
        let shadow = verdict("s", "10/1h", 10, 900);
        let decision = joined([verdict("a", "10/1s", 3, 0), shadow]);
        assert!(decision.allowed());
        assert_eq!((decision.rule(), decision.retry_after()), ("a", Duration::ZERO));
        let alone = joined([shadow]);
        assert!(alone.allowed());
        assert_eq!((alone.rule(), alone.used(), alone.retry_after()), ("s", 10, Duration::ZERO));
        assert!(!alone.verdicts()[0].allowed());
    }
}
