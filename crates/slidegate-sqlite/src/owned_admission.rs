//! Admissions and their answers without borrowed parts, so that they can move to another thread.

use slidegate::decision::StateAnswer;
use slidegate::receipt::ReceiptStamp;
use slidegate::{Admission, Charge, Decision, OwnedKey, Rule, Verdict};

/// A charge that owns its rule and key.
#[derive(Debug)]
pub(crate) struct OwnedCharge {
    rule: Rule,
    key: OwnedKey,
    cost: u64,
}

impl OwnedCharge {
    pub(crate) fn of(charge: &Charge<'_>) -> Self {
        Self { rule: charge.rule().clone(), key: charge.key().into(), cost: charge.cost() }
    }

    pub(crate) fn charges_of(admission: &Admission<'_>) -> Vec<Self> {
        admission.asks().iter().map(Self::of).collect()
    }

    pub(crate) fn charge(&self) -> Charge<'_> {
        Charge::new(&self.rule, self.key.key(), self.cost)
    }

    pub(crate) fn charges(charges: &[Self]) -> Vec<Charge<'_>> {
        charges.iter().map(Self::charge).collect()
    }
}

/// The answers to the charges of an admission.
#[derive(Debug, Default)]
pub(crate) struct AdmissionAnswers {
    /// One per charge, in order.
    states: Vec<StateAnswer>,
    /// The receipt's stamp, if anything was charged.
    stamp: Option<ReceiptStamp>,
}

impl AdmissionAnswers {
    /// The answers of a denied or peeked admission.
    pub(crate) fn uncharged(verdicts: &[Verdict<'_>]) -> Self {
        let answers = verdicts.iter().map(|verdict| StateAnswer::uncharged(*verdict));
        Self { states: answers.collect(), stamp: None }
    }

    /// No answers yet, to an admission whose receipt has that stamp.
    pub(crate) fn charged(stamp: ReceiptStamp) -> Self {
        Self { states: Vec::new(), stamp: Some(stamp) }
    }

    /// Adds the answer to the next charge.
    pub(crate) fn push(&mut self, answer: StateAnswer) {
        self.states.push(answer);
    }

    /// The decision on the admission.
    pub(crate) fn decision<'a>(self, admission: &Admission<'a>) -> Decision<'a> {
        let Self { states, stamp } = self;
        Decision::new(admission, states, stamp)
    }
}
