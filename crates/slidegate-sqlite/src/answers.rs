//! Questions and answers that borrow nothing, so that they can cross from one thread to another.

use slidegate::decision::StateAnswer;
use slidegate::receipt::ReceiptStamp;
use slidegate::{Admission, Charge, Decision, Key, Rule, Verdict};

/// A charge with its own rule and key.
#[derive(Debug)]
pub(crate) struct OwnedCharge {
    rule: Rule,
    key: Box<str>,
    cost: u64,
}

impl OwnedCharge {
    pub(crate) fn of(charge: &Charge<'_>) -> Self {
        Self { rule: charge.rule().clone(), key: charge.key().as_str().into(), cost: charge.cost() }
    }

    pub(crate) fn asks_of(admission: &Admission<'_>) -> Vec<Self> {
        admission.asks().iter().map(Self::of).collect()
    }

    pub(crate) fn charge(&self) -> Charge<'_> {
        Charge::new(&self.rule, Key::new(&self.key).expect("it was a key"), self.cost)
    }

    pub(crate) fn charges(charges: &[Self]) -> Vec<Charge<'_>> {
        charges.iter().map(Self::charge).collect()
    }
}

/// What was decided on the asks of an admission.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// One per ask, in their order.
    asks: Vec<StateAnswer>,
    /// Of the receipt, if something was charged.
    stamp: Option<ReceiptStamp>,
}

impl Answers {
    /// Of an admission that was denied, or was only a question.
    pub(crate) fn uncharged(verdicts: &[Verdict<'_>]) -> Self {
        let answers = verdicts.iter().map(|verdict| StateAnswer::uncharged(*verdict));
        Self { asks: answers.collect(), stamp: None }
    }

    /// Of an admission whose receipt has that stamp.
    pub(crate) fn charged(stamp: ReceiptStamp) -> Self {
        Self { asks: Vec::new(), stamp: Some(stamp) }
    }

    /// Adds the answer to the next ask, which was charged or, by a shadow rule that would deny, not.
    pub(crate) fn push(&mut self, answer: StateAnswer) {
        self.asks.push(answer);
    }

    /// The same as the decision on the admission whose asks were answered.
    pub(crate) fn decision<'a>(self, admission: &Admission<'a>) -> Decision<'a> {
        let Self { asks, stamp } = self;
        Decision::new(admission, asks, stamp)
    }
}
