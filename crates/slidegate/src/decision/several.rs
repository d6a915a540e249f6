//! The general form of a decision: several charges, several limits, an outage policy, or owned.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::verdict::{Basis, Verdict};
use crate::charge::{Admission, Charge, ChargeTreatment};
use crate::error::StoreError;
use crate::few::Few;
use crate::key::Key;
use crate::receipt::{ChargePlace, OrderedPosition, Receipt, ReceiptCharge, ReceiptStamp};
use crate::rule::Rule;

/// A store's answer to one ask of an admission. It borrows nothing, so a store can make it on another thread.
#[derive(Debug, Clone)]
pub struct StateAnswer {
    /// Index of the rule's limit that binds; `None` if unknown.
    limit: Option<usize>,
    pub(super) allowed: bool,
    pub(super) used: u64,
    pub(super) retry_after_us: u64,
    pub(super) reset_after_us: u64,
    /// One per limit if the ask was charged, else none.
    pub(super) positions: Few<OrderedPosition>,
    /// The shard of the key that answered, if the store split it.
    pub(super) shard: Option<u16>,
}

impl StateAnswer {
    /// A verdict that charged nothing: a denial, a peek, or a shadow rule that would deny.
    #[must_use]
    pub fn uncharged(verdict: Verdict<'_>) -> Self {
        Self::charged(verdict, [])
    }

    /// The verdict after a charge, and the position of the charge in the state of every limit of the rule.
    #[must_use]
    pub fn charged(verdict: Verdict<'_>, positions: impl IntoIterator<Item = OrderedPosition>) -> Self {
        let limit = match verdict.basis {
            Basis::Counted(binding) => verdict.charge.rule.limits().iter().position(|limit| limit == binding),
            Basis::Unlimited | Basis::Degraded => None,
        };
        let Verdict { allowed, used, retry_after_us, reset_after_us, .. } = verdict;
        let positions = positions.into_iter().collect();
        Self { limit, allowed, used, retry_after_us, reset_after_us, positions, shard: None }
    }

    /// The same answer as that of one shard of the key, under [`Rule::of_shard`]: its numbers are those of the shard, and
    /// a receipt names it.
    #[must_use]
    pub fn of_shard(self, shard: u16) -> Self {
        Self { shard: Some(shard), ..self }
    }

    /// The same denial `elapsed_us` later: the waits are shorter. One that has passed is shown as an admission.
    pub(crate) fn after(&self, elapsed_us: u64) -> Self {
        let retry_after_us = self.retry_after_us.saturating_sub(elapsed_us);
        let reset_after_us = self.reset_after_us.saturating_sub(elapsed_us);
        // A shadow rule that can never admit has no wait.
        let allowed = self.allowed || (self.retry_after_us > 0 && retry_after_us == 0);
        Self { allowed, retry_after_us, reset_after_us, ..self.clone() }
    }

    /// The verdict on `charge`, which must be the one that this answers.
    #[must_use]
    pub fn verdict<'a>(&self, charge: Charge<'a>) -> Verdict<'a> {
        let Self { limit, allowed, used, retry_after_us, reset_after_us, .. } = *self;
        let basis = limit.map_or(Basis::Degraded, |index| Basis::Counted(&charge.rule.limits()[index]));
        Verdict { charge, basis, allowed, used, retry_after_us, reset_after_us }
    }
}

/// The answers to all asks, and which of them belongs to which charge.
#[derive(Debug, Clone)]
pub(super) struct Several<'a> {
    asks: Vec<AnsweredAsk<'a>>,
    sources: Vec<VerdictSource<'a>>,
    stamp: Option<ReceiptStamp>,
    pub(super) error: Option<StoreError>,
    pub(super) atomic: bool,
}

/// One ask and its answer; the rule and the identity of the key are borrowed or owned.
#[derive(Debug, Clone)]
struct AnsweredAsk<'a> {
    rule: HeldRule<'a>,
    key: Cow<'a, str>,
    cost: u64,
    answer: StateAnswer,
}

/// The caller's rule, or one that outlives the call: a copy, or the rule of a local limit.
#[derive(Debug, Clone)]
enum HeldRule<'a> {
    Borrowed(&'a Rule),
    Shared(Arc<Rule>),
}

impl Deref for HeldRule<'_> {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        match self {
            Self::Borrowed(rule) => rule,
            Self::Shared(rule) => rule,
        }
    }
}

impl HeldRule<'_> {
    fn into_owned(self) -> HeldRule<'static> {
        HeldRule::Shared(match self {
            Self::Borrowed(rule) => Arc::new(rule.clone()),
            Self::Shared(rule) => rule,
        })
    }
}

/// Where the verdict of a charge comes from.
#[derive(Debug, Clone)]
enum VerdictSource<'a> {
    Ask(usize),
    Unlimited { rule: Cow<'a, Rule>, key: Cow<'a, str>, cost: u64 },
}

impl<'a> AnsweredAsk<'a> {
    fn new((charge, answer): (&Charge<'a>, StateAnswer)) -> Self {
        let Charge { rule, key, cost } = *charge;
        let (rule, key) = match answer.shard {
            None => (rule, Cow::Borrowed(key.identity())),
            Some(shard) => {
                let shard = key.of_shard(shard).key().identity().to_owned();
                (rule.of_shard().unwrap_or(rule), Cow::Owned(shard))
            }
        };
        Self { rule: HeldRule::Borrowed(rule), key, cost, answer }
    }

    fn verdict(&self) -> Verdict<'_> {
        self.answer.verdict(Charge::new(&self.rule, Key::new_unchecked(&self.key), self.cost))
    }

    fn is_charged(&self) -> bool {
        !self.answer.positions.is_empty()
    }

    fn receipt(&self) -> ReceiptCharge {
        let places = self.rule.limits().iter().zip(&*self.answer.positions);
        let places = places.map(|(&limit, &OrderedPosition { order, position })| ChargePlace {
            limit,
            order,
            position,
        });
        ReceiptCharge::new(self.rule.name(), Key::new_unchecked(&self.key), self.cost, places)
    }

    fn into_owned(self) -> AnsweredAsk<'static> {
        let (rule, key) = (self.rule.into_owned(), Cow::Owned(self.key.into_owned()));
        AnsweredAsk { rule, key, ..self }
    }
}

impl<'a> Several<'a> {
    pub(super) fn new(
        (asks, treatments): (&[Charge<'a>], &[ChargeTreatment<'a>]),
        answers: impl IntoIterator<Item = StateAnswer>,
        stamp: Option<ReceiptStamp>,
        error: Option<StoreError>,
    ) -> Self {
        let sources = treatments.iter().map(|treatment| match *treatment {
            ChargeTreatment::Ask(index) => VerdictSource::Ask(index),
            ChargeTreatment::Unlimited(Charge { rule, key, cost }) => VerdictSource::Unlimited {
                rule: Cow::Borrowed(rule),
                key: Cow::Borrowed(key.identity()),
                cost,
            },
        });
        let answered: Vec<_> = asks.iter().zip(answers).map(AnsweredAsk::new).collect();
        assert!(answered.len() == asks.len(), "a store gives an answer for each ask");
        Self { asks: answered, sources: sources.collect(), stamp, error, atomic: true }
    }

    /// An admission by the outage policy.
    pub(super) fn degraded(admission: &Admission<'a>, error: StoreError) -> Self {
        let unknown = |ask: &Charge<'a>| StateAnswer::uncharged(Verdict::on(*ask, Basis::Degraded));
        let (asks, treatments) = (admission.asks(), admission.treatments());
        Self::new((asks, treatments), asks.iter().map(unknown), None, Some(error))
    }

    /// A decision by local limits. `local` has an answer under another rule for every ask that they limit.
    pub(super) fn degraded_locally(
        admission: &Admission<'a>,
        local: impl Iterator<Item = Option<(Arc<Rule>, StateAnswer)>>,
        error: StoreError,
    ) -> Self {
        let mut several = Self::degraded(admission, error);
        for (ask, local) in several.asks.iter_mut().zip(local) {
            let Some((rule, answer)) = local else { continue };
            // Above the share there is no wait, whatever the waits of the rule's other limits.
            let retry_after_us = if ask.cost > rule.cost_max() { 0 } else { answer.retry_after_us };
            ask.answer = StateAnswer { retry_after_us, positions: Few::default(), ..answer };
            ask.rule = HeldRule::Shared(rule);
        }
        several
    }

    /// Every charge's own verdict, in the order of the charges.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = Verdict<'_>> + Clone {
        self.sources.iter().map(|source| match source {
            VerdictSource::Ask(index) => self.asks[*index].verdict(),
            VerdictSource::Unlimited { rule, key, cost } => unlimited(rule, key, *cost),
        })
    }

    /// The verdict of every state, and of every unlimited charge.
    pub(super) fn state_verdicts(&self) -> impl Iterator<Item = Verdict<'_>> + Clone {
        let free = self.sources.iter().filter_map(|source| match source {
            VerdictSource::Ask(_) => None,
            VerdictSource::Unlimited { rule, key, cost } => Some(unlimited(rule, key, *cost)),
        });
        self.asks.iter().map(AnsweredAsk::verdict).chain(free)
    }

    /// The binding verdict. Shadow rules and unlimited keys take no part, unless there is nothing else:
    /// then their numbers are shown with an admission.
    pub(super) fn binding(&self) -> Verdict<'_> {
        let enforced = |verdict: &Verdict<'_>| !verdict.shadow() && !verdict.unlimited();
        let joined = Verdict::join(self.verdicts().filter(enforced)).map(|joined| {
            // Only local limits deny a cost that never passes, and what never passes has no wait.
            let never = self.verdicts().any(|verdict| enforced(&verdict) && verdict.never_passes());
            if never { joined.denied(0) } else { joined }
        });
        joined
            .or_else(|| Verdict::join(self.verdicts().filter(Verdict::shadow)).map(Verdict::shown_alone))
            .or_else(|| self.verdicts().next())
            .expect("an admission has a charge")
    }

    pub(super) fn receipt(&self) -> Option<Receipt> {
        let charged = self.asks.iter().filter(|ask| ask.is_charged());
        self.stamp.map(|stamp| Receipt::new(stamp, charged.map(AnsweredAsk::receipt)))
    }

    /// The answers to all asks, and the stamp.
    pub(super) fn state_answers(&self) -> (Vec<StateAnswer>, Option<ReceiptStamp>) {
        (self.asks.iter().map(|ask| ask.answer.clone()).collect(), self.stamp)
    }

    /// Denies the asks for which `wait_us` returns a wait.
    pub(super) fn refuse(&mut self, wait_us: impl Fn(&Charge<'_>) -> Option<u64>) {
        for ask in self.asks.iter_mut().filter(|ask| !ask.rule.shadow()) {
            if let Some(retry_after_us) = wait_us(&ask.verdict().charge) {
                (ask.answer.allowed, ask.answer.retry_after_us) = (false, retry_after_us);
            }
        }
    }

    pub(super) fn is_charged(&self) -> bool {
        self.stamp.is_some()
    }

    pub(super) fn into_owned(self) -> Several<'static> {
        let sources = self.sources.into_iter().map(|source| match source {
            VerdictSource::Ask(index) => VerdictSource::Ask(index),
            VerdictSource::Unlimited { rule, key, cost } => VerdictSource::Unlimited {
                rule: Cow::Owned(rule.into_owned()),
                key: Cow::Owned(key.into_owned()),
                cost,
            },
        });
        Several {
            asks: self.asks.into_iter().map(AnsweredAsk::into_owned).collect(),
            sources: sources.collect(),
            stamp: self.stamp,
            error: self.error,
            atomic: self.atomic,
        }
    }
}

fn unlimited<'s>(rule: &'s Rule, key: &'s str, cost: u64) -> Verdict<'s> {
    Verdict::on(Charge::new(rule, Key::new_unchecked(key), cost), Basis::Unlimited)
}
