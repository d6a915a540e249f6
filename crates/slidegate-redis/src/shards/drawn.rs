//! The draw: which shard every key of an admission is charged on, the same admission there, and the decision as the caller knows it.

use slidegate::{Admission, Charge, Decision, OwnedKey};

/// The shards on which the asks of an admission are charged.
pub(super) struct DrawnShards {
    /// One per ask; `None` if its key is not split.
    shards: Vec<Option<u16>>,
    /// The keys that are charged, one per ask.
    keys: Vec<OwnedKey>,
}

impl DrawnShards {
    /// Whether a key of an admission is split.
    pub(super) fn has_shards(admission: &Admission<'_>) -> bool {
        admission.asks().iter().any(|ask| ask.rule().of_shard().is_some())
    }

    /// Draws a shard for every key that is split.
    pub(super) fn draw(admission: &Admission<'_>, draw: impl Fn() -> u64) -> Self {
        let asks = admission.asks();
        let shard = |ask: &Charge<'_>| ask.rule().of_shard().map(|_| below(draw(), ask.rule().shards()));
        Self::of(asks, asks.iter().map(shard).collect())
    }

    fn of(asks: &[Charge<'_>], shards: Vec<Option<u16>>) -> Self {
        let key = |(ask, shard): (&Charge<'_>, &Option<u16>)| match shard {
            Some(shard) => ask.key().of_shard(*shard),
            None => ask.key().into(),
        };
        let keys = asks.iter().zip(&shards).map(key).collect();
        Self { shards, keys }
    }

    /// Other shards for the asks that were denied; `None` if the decision would be the same.
    pub(super) fn redrawn(
        &self,
        admission: &Admission<'_>,
        decision: &Decision<'_>,
        draw: impl Fn() -> u64,
    ) -> Option<Self> {
        if decision.allowed() {
            return None;
        }
        let mut shards = self.shards.clone();
        for ((ask, shard), verdict) in admission.asks().iter().zip(&mut shards).zip(decision.state_verdicts())
        {
            if verdict.allowed() || verdict.shadow() {
                continue;
            }
            // A key that is not split denies again, and so does any shard for a cost above its limit.
            let (old, rule) = ((*shard)?, ask.rule());
            if ask.cost() > rule.of_shard()?.cost_max() {
                return None;
            }
            let others = rule.shards() - 1;
            *shard = Some((old + 1 + below(draw(), others)) % rule.shards());
        }
        Some(Self::of(admission.asks(), shards))
    }

    /// The admission on these shards.
    pub(super) fn admission<'b>(&'b self, admission: &Admission<'b>) -> Admission<'b> {
        admission.with_asks(|index, ask| {
            let rule = self.shards[index].and(ask.rule().of_shard()).unwrap_or(ask.rule());
            Charge::new(rule, self.keys[index].key(), ask.cost())
        })
    }

    /// The decision on the shards as one on the caller's admission.
    pub(super) fn shown<'a>(&self, admission: &Admission<'a>, decision: &Decision<'_>) -> Decision<'a> {
        let (answers, stamp) = decision.state_answers();
        let answers = answers.into_iter().zip(&self.shards).map(|(answer, shard)| match shard {
            Some(shard) => answer.of_shard(*shard),
            None => answer,
        });
        Decision::new(admission, answers, stamp).with_atomic(decision.atomic())
    }
}

/// A number below `count` from a drawn one.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below a number of 16 bits")]
fn below(drawn: u64, count: u16) -> u16 {
    (drawn % u64::from(count)) as u16
}
