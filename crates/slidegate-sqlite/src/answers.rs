//! Questions and answers that borrow nothing, so that they can cross from one thread to another.

use slidegate::decision::{PlainAnswer, StateAnswer};
use slidegate::receipt::ReceiptStamp;
use slidegate::{Admission, Charge, Decision, Key, Rule, Verdict};

/// The asks of an admission, with their own rules and keys.
#[derive(Debug)]
pub(crate) struct OwnedAsks(Vec<(Rule, OwnedKey, u64)>);

/// A key that was checked.
#[derive(Debug)]
pub(crate) struct OwnedKey(Box<str>);

impl OwnedAsks {
    pub(crate) fn of(admission: &Admission<'_>) -> Self {
        let owned = |ask: &Charge<'_>| (ask.rule().clone(), OwnedKey::of(ask.key()), ask.cost());
        Self(admission.asks().iter().map(owned).collect())
    }

    pub(crate) fn charges(&self) -> Vec<Charge<'_>> {
        self.0.iter().map(|(rule, key, cost)| Charge::new(rule, key.get(), *cost)).collect()
    }
}

impl OwnedKey {
    pub(crate) fn of(key: Key<'_>) -> Self {
        Self(key.as_str().into())
    }

    pub(crate) fn get(&self) -> Key<'_> {
        Key::new(&self.0).expect("it was a key")
    }
}

/// What was decided on the asks of an admission.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// One per ask, in their order.
    asks: Vec<PlainAnswer>,
    /// Of the receipt, if something was charged.
    stamp: Option<ReceiptStamp>,
}

impl Answers {
    /// Of an admission that was denied, or was only a question.
    pub(crate) fn uncharged(verdicts: &[Verdict<'_>]) -> Self {
        let answers = verdicts.iter().map(|verdict| StateAnswer::uncharged(*verdict).into());
        Self { asks: answers.collect(), stamp: None }
    }

    /// Of an admission whose receipt has that stamp.
    pub(crate) fn charged(stamp: ReceiptStamp) -> Self {
        Self { asks: Vec::new(), stamp: Some(stamp) }
    }

    /// Adds the answer to the next ask, which was charged or, by a shadow rule that would deny, not.
    pub(crate) fn push(&mut self, answer: StateAnswer<'_>) {
        self.asks.push(answer.into());
    }

    /// The same as the decision on the admission whose asks were answered.
    pub(crate) fn decision<'a>(self, admission: &Admission<'a>) -> Decision<'a> {
        let Self { asks, stamp } = self;
        let answers = asks.into_iter().zip(admission.asks()).map(|(answer, ask)| answer.on(ask));
        Decision::new(admission, answers, stamp)
    }
}
