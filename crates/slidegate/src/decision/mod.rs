//! Decisions: allowed or denied, with the numbers that explain it.

mod several;
mod single;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use crate::charge::{Admission, Charge, ChargeTreatment};
use crate::error::StoreError;
use crate::receipt::{ChargePlace, OrderedPosition, Receipt, ReceiptCharge, ReceiptStamp};
use crate::rule::Rule;

use several::Several;
use single::{Single, SingleAnswer};

pub use several::StateAnswer;
pub use verdict::Verdict;

/// The answer to an admission.
///
/// All numbers come from the one atomic step that decided. It borrows the rules and keys of the request;
/// [`Decision::into_owned`] copies them. For one charge of a rule with one limit it is 96 bytes and allocates
/// nothing; [`Decision::receipt`] builds the receipt on demand.
///
/// ```
/// use slidegate::{Limiter, Rule};
///
/// let limiter = Limiter::in_memory();
/// let login = Rule::new("login", "5/1m")?;
/// let decision = limiter.check(&login, "alice")?;
/// assert!(decision.allowed());
/// assert_eq!((decision.used(), decision.remaining()), (Some(1), Some(4)));
///
/// // The attempt does not count after all.
/// if let Some(receipt) = decision.receipt() {
///     limiter.refund(&receipt)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decision<'a>(Form<'a>);

#[derive(Debug, Clone)]
enum Form<'a> {
    Single(Single<'a>),
    Several(Box<Several<'a>>),
}

// Callers rely on this size: it is what passing a decision on costs.
const _: () = assert!(size_of::<Decision<'_>>() <= 96);

impl<'a> Decision<'a> {
    /// A decision from a store's answers: one for each of the admission's [asks](Admission::asks), in their order, and
    /// the stamp of the receipt if something was charged.
    ///
    /// ```
    /// use slidegate::decision::StateAnswer;
    /// use slidegate::{Admission, Decision, Rule, Verdict};
    ///
    /// let (api, search) = (Rule::new("api", "9/1m")?, Rule::new("search", "2/1m")?);
    /// let admission = Admission::new(&[api.charge("alice", 1)?, search.charge("alice", 1)?])?;
    /// let [api, search] = admission.asks() else { panic!("two states") };
    /// let passes = Verdict::new(api, &api.rule().limits()[0]).with_usage(5, 30_000_000);
    /// let waits = Verdict::new(search, &search.rule().limits()[0]).with_usage(2, 60_000_000).denied(45_000_000);
    /// let decision = Decision::new(&admission, [passes, waits].map(StateAnswer::uncharged), None);
    /// assert!(!decision.allowed());
    /// assert_eq!((decision.rule(), decision.retry_after().unwrap().as_secs()), ("search", 45));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there are fewer answers than asks.
    pub fn new(
        admission: &Admission<'a>,
        answers: impl IntoIterator<Item = StateAnswer>,
        stamp: Option<ReceiptStamp>,
    ) -> Self {
        let mut answers = answers.into_iter();
        match (admission.only(), answers.next()) {
            (Some(charge), Some(answer)) if charge.rule.limits().len() == 1 && answer.shard.is_none() => {
                Self::of_answer(charge, &answer, stamp)
            }
            (_, first) => {
                let (asked, answers) =
                    ((admission.asks(), admission.treatments()), first.into_iter().chain(answers));
                Self(Form::Several(Box::new(Several::new(asked, answers, stamp, None))))
            }
        }
    }

    fn of_answer(charge: &Charge<'a>, answer: &StateAnswer, stamp: Option<ReceiptStamp>) -> Self {
        let StateAnswer { allowed, used, retry_after_us, reset_after_us, .. } = *answer;
        match (stamp, answer.positions.first()) {
            (Some(stamp), Some(position)) => Self::charged(charge, used, reset_after_us, stamp, *position),
            _ if allowed => Self::single(charge, SingleAnswer::Uncharged { used, reset_after_us }),
            _ => Self::denied(charge, used, retry_after_us, reset_after_us),
        }
    }

    #[inline]
    fn single(charge: &Charge<'a>, answer: SingleAnswer) -> Self {
        Self(Form::Single(Single { charge: *charge, answer }))
    }

    /// The admission of one charge of a rule with one limit.
    #[inline]
    pub(crate) fn charged(
        charge: &Charge<'a>,
        used: u64,
        reset_after_us: u64,
        stamp: ReceiptStamp,
        position: OrderedPosition,
    ) -> Self {
        Self::single(charge, SingleAnswer::charged(used, reset_after_us, stamp, position))
    }

    /// The denial of one charge of a rule with one limit.
    #[inline]
    pub(crate) fn denied(charge: &Charge<'a>, used: u64, retry_after_us: u64, reset_after_us: u64) -> Self {
        Self::single(charge, SingleAnswer::Denied { used, retry_after_us, reset_after_us })
    }

    /// An admission by the outage policy: `used` is unknown.
    #[cold]
    pub(crate) fn degraded_admission(admission: &Admission<'a>, error: StoreError) -> Self {
        Self(Form::Several(Box::new(Several::degraded(admission, error))))
    }

    /// A decision by the limits within this process. `local` has an answer, and the rule that it is about, for every
    /// ask that they limit.
    #[cold]
    pub(crate) fn degraded_locally(
        admission: &Admission<'a>,
        local: impl Iterator<Item = Option<(Arc<Rule>, StateAnswer)>>,
        error: StoreError,
    ) -> Self {
        Self(Form::Several(Box::new(Several::degraded_locally(admission, local, error))))
    }

    /// The same decision, denying the charges for which `wait_us` returns a wait. Shadow rules never deny.
    pub(crate) fn refused(mut self, wait_us: impl Fn(&Charge<'_>) -> Option<u64>) -> Self {
        match &mut self.0 {
            Form::Single(single) if !single.charge.rule.shadow() => {
                if let Some(retry_after_us) = wait_us(&single.charge) {
                    let Verdict { used, reset_after_us, .. } = single.verdict();
                    single.answer = SingleAnswer::Denied { used, retry_after_us, reset_after_us };
                }
            }
            Form::Single(_) => {}
            Form::Several(several) => several.refuse(wait_us),
        }
        self
    }

    /// The binding verdict: on a denial the one with the latest `retry_after`, on an admission the one with the least
    /// `remaining`. Its waits are the latest of all.
    #[must_use]
    pub fn binding(&self) -> Verdict<'_> {
        match &self.0 {
            Form::Single(single) => single.verdict().shown_alone(),
            Form::Several(several) => several.binding(),
        }
    }

    /// Whether the request may go ahead.
    #[must_use]
    #[inline]
    pub fn allowed(&self) -> bool {
        match &self.0 {
            Form::Single(single) => single.allowed(),
            Form::Several(several) => several.binding().allowed,
        }
    }

    /// Name of the rule that binds.
    #[must_use]
    pub fn rule(&self) -> &str {
        self.binding().rule()
    }

    /// Units that the binding limit enforces; `None` if nothing was counted.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.binding().limit()
    }

    /// Window of the binding limit.
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.binding().window()
    }

    /// Units of the binding limit in use: this request included if admitted, not if denied or peeked.
    #[must_use]
    pub fn used(&self) -> Option<u64> {
        self.binding().used()
    }

    /// Units left of the binding limit; see [`Verdict::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.binding().remaining()
    }

    /// Time until this same request passes if nothing else is charged meanwhile, to the microsecond; zero when allowed,
    /// `None` if unknown.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.binding().retry_after()
    }

    /// Time until nothing is used of any limit that took part in the decision, on a denial too; `None` if unknown.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.binding().reset_after()
    }

    /// Whether the outage policy answered instead of the store. `used` is unknown then.
    #[must_use]
    pub fn degraded(&self) -> bool {
        self.store_error().is_some()
    }

    /// The store's failure, if the outage policy answered.
    #[must_use]
    pub fn store_error(&self) -> Option<&StoreError> {
        match &self.0 {
            Form::Single(_) => None,
            Form::Several(several) => several.error.as_ref(),
        }
    }

    /// Every charge's own verdict, in the order of the charges.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict<'_>> + Clone {
        let (single, several) = match &self.0 {
            Form::Single(single) => (Some(single.verdict()), None),
            Form::Several(several) => (None, Some(several.verdicts())),
        };
        single.into_iter().chain(several.into_iter().flatten())
    }

    /// One verdict per state: charges on the same state share one. Each unlimited charge has its own.
    pub fn state_verdicts(&self) -> impl Iterator<Item = Verdict<'_>> + Clone {
        let (single, several) = match &self.0 {
            Form::Single(single) => (Some(single.verdict()), None),
            Form::Several(several) => (None, Some(several.state_verdicts())),
        };
        single.into_iter().chain(several.into_iter().flatten())
    }

    /// Whether it was decided in one step, as nearly every decision is. An admission whose states lie in several slots of a
    /// Redis Cluster was not: others may have seen some of its charges a moment before the rest, or one that was given
    /// back. It too is admitted as a whole or not at all, and never over any limit.
    #[must_use]
    pub fn atomic(&self) -> bool {
        match &self.0 {
            Form::Single(_) => true,
            Form::Several(several) => several.atomic,
        }
    }

    /// The same decision, made in one step or in several; for stores.
    #[must_use]
    pub fn with_atomic(self, atomic: bool) -> Self {
        let mut several = match self.0 {
            Form::Single(_) if atomic => return self,
            Form::Single(single) => Box::new(Self::several_of(&single)),
            Form::Several(several) => several,
        };
        several.atomic = atomic;
        Self(Form::Several(several))
    }

    fn several_of(single: &Single<'a>) -> Several<'a> {
        let (stamp, position) = single.answer.receipt().unzip();
        let answer = StateAnswer::charged(single.verdict(), position);
        Several::new((&[single.charge], &[ChargeTreatment::Ask(0)]), [answer], stamp, None)
    }

    /// The receipt, with which this admission can be refunded or settled; `None` if nothing was charged. Its id was
    /// fixed when the admission was decided, so every call returns the same receipt, which works for one refund.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        match &self.0 {
            Form::Single(Single { charge, answer }) => {
                let (stamp, OrderedPosition { order, position }) = answer.receipt()?;
                let place = ChargePlace { limit: charge.rule.limits()[0], order, position };
                let charged = ReceiptCharge::new(charge.rule.name(), charge.key, charge.cost, [place]);
                Some(Receipt::new(stamp, [charged]))
            }
            Form::Several(several) => several.receipt(),
        }
    }

    /// Whether something was charged: there is a receipt.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        match &self.0 {
            Form::Single(single) => single.answer.receipt().is_some(),
            Form::Several(several) => several.is_charged(),
        }
    }

    /// What [`Decision::new`] made it from: an answer for each ask, and the stamp of the receipt if something was
    /// charged. A store that passes the admission on to another store under other keys makes its own decision from them.
    ///
    /// ```
    /// use slidegate::{Admission, Decision, Limiter, Rule};
    ///
    /// let api = Rule::new("api", "5/1m")?;
    /// let (hashed, clear) = (api.charge("2bd806c9", 2)?, api.charge("alice", 2)?);
    /// let stored = Limiter::in_memory().check_all(&[hashed])?;
    /// let (answers, stamp) = stored.state_answers();
    /// let shown = Decision::new(&Admission::new(&[clear])?, answers, stamp);
    /// assert_eq!((shown.binding().key(), shown.used()), ("alice", stored.used()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn state_answers(&self) -> (Vec<StateAnswer>, Option<ReceiptStamp>) {
        match &self.0 {
            Form::Single(single) => {
                let (stamp, position) = single.answer.receipt().unzip();
                (vec![StateAnswer::charged(single.verdict(), position)], stamp)
            }
            Form::Several(several) => several.state_answers(),
        }
    }

    /// The same decision with its own copies of rules and keys, to be sent to another task.
    ///
    /// ```
    /// use slidegate::{Decision, Limiter, Rule};
    ///
    /// fn ask(limiter: &Limiter) -> Result<Decision<'static>, Box<dyn std::error::Error>> {
    ///     let login = Rule::new("login", "5/1m")?;
    ///     Ok(limiter.check(&login, "alice")?.into_owned())
    /// }
    /// assert_eq!(ask(&Limiter::in_memory())?.remaining(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Decision<'static> {
        let several = match self.0 {
            Form::Several(several) => *several,
            Form::Single(single) => Self::several_of(&single),
        };
        Decision(Form::Several(Box::new(several.into_owned())))
    }
}

impl PartialEq for Decision<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.verdicts().eq(other.verdicts())
            && self.store_error() == other.store_error()
            && self.receipt() == other.receipt()
    }
}

impl Eq for Decision<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
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

    fn verdict(name: &'static str, rate: &str, used: u64, retry_after_us: u64) -> Verdict<'static> {
        let rule = RULES
            .iter()
            .find(|rule| rule.name() == name && rule.limits()[0].rate() == rate.parse().unwrap())
            .unwrap();
        let charge = Charge::new(rule, Key::new(name).unwrap(), 1);
        let verdict = Verdict::new(&charge, &rule.limits()[0]).with_usage(used, used);
        if retry_after_us == 0 { verdict } else { verdict.denied(retry_after_us) }
    }

    fn joined<const N: usize>(verdicts: [Verdict<'static>; N]) -> Decision<'static> {
        let admission = Admission::new(&verdicts.map(|verdict| verdict.charge)).unwrap();
        Decision::new(&admission, verdicts.map(StateAnswer::uncharged), None)
    }

    #[test]
    fn an_admission_is_bound_by_the_least_remaining() {
        let decision = joined([verdict("a", "10/1s", 3, 0), verdict("b", "10/1m", 8, 0)]);
        assert!(decision.allowed());
        assert_eq!((decision.rule(), decision.remaining()), ("b", Some(2)));
        assert_eq!(decision.reset_after(), Some(Duration::from_micros(8)));
    }

    #[test]
    fn a_denial_is_bound_by_the_latest_retry() {
        let decision = joined([
            verdict("a", "10/1s", 10, 0),
            verdict("b", "10/1m", 8, 500),
            verdict("c", "10/1h", 2, 900),
        ]);
        assert!(!decision.allowed());
        assert_eq!((decision.rule(), decision.used()), ("c", Some(2)));
        assert_eq!(decision.retry_after(), Some(Duration::from_micros(900)));
        assert_eq!(decision.reset_after(), Some(Duration::from_micros(10)));
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
        assert_eq!((decision.rule(), decision.retry_after()), ("a", Some(Duration::ZERO)));
        let alone = joined([shadow]);
        assert!(alone.allowed());
        assert_eq!((alone.rule(), alone.used(), alone.retry_after()), ("s", Some(10), Some(Duration::ZERO)));
        assert!(!alone.verdicts().next().unwrap().allowed());
    }

    #[test]
    fn a_decision_in_several_steps_keeps_everything_else() {
        for decision in [
            joined([verdict("a", "10/1s", 3, 0)]),
            joined([verdict("a", "10/1s", 3, 0), verdict("b", "10/1m", 8, 5)]),
        ] {
            assert!(decision.atomic());
            let divided = decision.clone().with_atomic(false);
            assert!(!divided.atomic() && !divided.clone().into_owned().atomic());
            assert_eq!(divided, decision);
            assert!(divided.with_atomic(true).atomic());
        }
    }
}
