//! Keys split into shards, for rules with `shards: n`.
//!
//! ```text
//! alice  ->  alice%s0  alice%s1  ...  alice%s(n-1)      each with floor(limit / n) units
//! ```
//!
//! A request is charged to one shard, drawn at random; if that denies it, a second one is drawn, once. No window of a
//! shard exceeds its part, so none of the key exceeds the limit. A key is denied early: at full load a shard is about
//! sqrt(limit / n) units fuller or emptier than its neighbours, and what the emptier ones have left is not used.
//!
//! The second draw is a call of its own. Rejected: both shards in one call, which on a Cluster live on two nodes, and
//! would double the work of all requests for the sake of those that are denied.

use slidegate::store::{Call, LimitUsage, StoreError};
use slidegate::{Admission, Applied, Charge, Decision, Key, OwnedKey, Rule};

use crate::decode::ReplyReader;
use crate::scripts;
use crate::store::RedisStore;

/// Whether what is decided is charged, or only asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charging {
    Yes,
    No,
}

/// The shards on which the asks of an admission are charged.
struct DrawnShards {
    /// One per ask; `None` if its key is not split.
    shards: Vec<Option<u16>>,
    /// The keys that are charged, one per ask.
    keys: Vec<OwnedKey>,
}

impl DrawnShards {
    /// Draws a shard for every key that is split; `None` if there is none.
    fn draw(admission: &Admission<'_>, draw: impl Fn() -> u64) -> Option<Self> {
        let asks = admission.asks();
        if asks.iter().all(|ask| ask.rule().of_shard().is_none()) {
            return None;
        }
        let shard = |ask: &Charge<'_>| ask.rule().of_shard().map(|_| below(draw(), ask.rule().shards()));
        Some(Self::of(asks, asks.iter().map(shard).collect()))
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
    fn redrawn(
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
    fn admission<'b>(&'b self, admission: &Admission<'b>) -> Admission<'b> {
        admission.with_asks(|index, ask| {
            let rule = self.shards[index].and(ask.rule().of_shard()).unwrap_or(ask.rule());
            Charge::new(rule, self.keys[index].key(), ask.cost())
        })
    }

    /// The decision on the shards as one on the caller's admission.
    fn shown<'a>(&self, admission: &Admission<'a>, decision: &Decision<'_>) -> Decision<'a> {
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

/// An admission, or the denial with the shorter wait.
fn sooner<'a>(first: Decision<'a>, second: Decision<'a>) -> Decision<'a> {
    let wait = |decision: &Decision<'_>| decision.retry_after().ok_or(());
    let first_is_sooner = match (wait(&first), wait(&second)) {
        (Ok(first), Ok(second)) => first < second,
        (first, second) => first.is_ok() && second.is_err(),
    };
    if !second.allowed() && first_is_sooner { first } else { second }
}

/// Units to give back from each shard, of `units` in all: in proportion to what is used of it, and at most that.
fn portions(units: u64, used: &[u64]) -> Vec<u64> {
    let total: u128 = used.iter().copied().map(u128::from).sum();
    if u128::from(units) >= total {
        return used.to_vec();
    }
    let portion = |&used: &u64| {
        u64::try_from(u128::from(units) * u128::from(used) / total).expect("a part of the units")
    };
    let mut portions: Vec<u64> = used.iter().map(portion).collect();
    let mut left = units - portions.iter().sum::<u64>();
    for (portion, used) in portions.iter_mut().zip(used).filter(|(portion, used)| **portion < **used) {
        let more = left.min(1);
        (*portion, left) = ((*portion + more).min(*used), left - more);
    }
    portions
}

/// The rule by which the state of that shard is charged; `None` if no request charges it under the rule as it is now.
pub(crate) fn rule_of(rule: &Rule, shard: Option<u16>) -> Option<&Rule> {
    match (rule.of_shard(), shard) {
        (None, None) => Some(rule),
        (Some(of_shard), Some(shard)) if shard < rule.shards() => Some(of_shard),
        _ => None,
    }
}

impl RedisStore {
    /// Decides, on drawn shards where keys are split.
    pub(crate) async fn decide<'a>(
        &self,
        charging: Charging,
        call: Call,
        admission: &Admission<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let Some(drawn) = DrawnShards::draw(admission, || self.draw()) else {
            return self.decide_whole(charging, call, admission).await;
        };
        // One deadline for both calls.
        let call = self.link.with_one_deadline(call);
        let first = self.decide_whole(charging, call, &drawn.admission(admission)).await?;
        let first = drawn.shown(admission, &first);
        let Some(redrawn) = drawn.redrawn(admission, &first, || self.draw()) else { return Ok(first) };
        let second = self.decide_whole(charging, call, &redrawn.admission(admission)).await?;
        Ok(sooner(first, redrawn.shown(admission, &second)))
    }

    /// The same for several admissions: one batch, and another one of those that draw again.
    pub(crate) async fn check_all<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let drawn: Vec<_> =
            admissions.iter().map(|admission| DrawnShards::draw(admission, || self.draw())).collect();
        if drawn.iter().all(Option::is_none) {
            return self.check_all_whole(call, admissions).await;
        }
        let call = self.link.with_one_deadline(call);
        let decided = self.check_drawn(call, admissions, &drawn).await;
        let again = admissions.iter().zip(&drawn).zip(&decided).map(|((admission, drawn), decided)| {
            drawn.as_ref()?.redrawn(admission, decided.as_ref().ok()?, || self.draw())
        });
        let redrawn: Vec<_> = again.collect();
        let retried = admissions.iter().zip(&redrawn).filter(|(_, redrawn)| redrawn.is_some());
        let retried: Vec<_> = retried.map(|(admission, _)| admission.clone()).collect();
        let (is_retried, redrawn): (Vec<bool>, Vec<_>) =
            redrawn.into_iter().map(|redrawn| (redrawn.is_some(), redrawn)).unzip();
        let redrawn: Vec<_> = redrawn.into_iter().filter(Option::is_some).collect();
        let mut second = self.check_drawn(call, &retried, &redrawn).await.into_iter();
        let decide = |(first, is_retried): (Result<_, _>, bool)| match is_retried {
            true => Ok(sooner(first?, second.next().expect("a decision for each admission")?)),
            false => first,
        };
        decided.into_iter().zip(is_retried).map(decide).collect()
    }

    async fn check_drawn<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
        drawn: &[Option<DrawnShards>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let on_shards: Vec<Admission<'_>> = admissions
            .iter()
            .zip(drawn)
            .map(|(admission, drawn)| match drawn {
                Some(drawn) => drawn.admission(admission),
                None => admission.clone(),
            })
            .collect();
        let decided = self.check_all_whole(call, &on_shards).await;
        let shown = admissions.iter().zip(drawn).zip(decided).map(|((admission, drawn), decided)| {
            let (decision, unsplit) =
                (decided?, DrawnShards { shards: vec![None; admission.asks().len()], keys: Vec::new() });
            Ok(drawn.as_ref().unwrap_or(&unsplit).shown(admission, &decision))
        });
        shown.collect()
    }

    /// Gives back units of the shards of a key, in proportion to what is used of them.
    pub(crate) async fn credit_shards(
        &self,
        call: Call,
        shard: &Rule,
        charge: Charge<'_>,
    ) -> Result<Applied, StoreError> {
        let call = self.link.with_one_deadline(call);
        let shards = charge.rule().shards();
        let used = self.usages_of_shards(call, shard, charge.key(), shards).await?;
        let used: Vec<u64> =
            used.iter().map(|usages| usages.iter().map(|(used, _)| *used).max().unwrap_or(0)).collect();
        let portions = portions(charge.cost(), &used);
        let calls = (0..shards).zip(portions).filter(|(_, portion)| *portion > 0).map(|(number, portion)| {
            self.key_call(&scripts::CREDIT, call, shard, charge.key().of_shard(number).key(), portion)
        });
        self.sum_applied(call, calls.collect()).await
    }

    /// Drops the states of all shards of a key.
    pub(crate) async fn reset_shards(
        &self,
        call: Call,
        rule: &Rule,
        shard: &Rule,
        key: Key<'_>,
    ) -> Result<Applied, StoreError> {
        let calls = (0..rule.shards())
            .map(|number| self.key_call(&scripts::RESET, call, shard, key.of_shard(number).key(), 0));
        self.sum_applied(call, calls.collect()).await
    }

    /// What is used of all shards of a key together, of the limits of the whole key.
    pub(crate) async fn inspect_shards(
        &self,
        call: Call,
        rule: &Rule,
        shard: &Rule,
        key: Key<'_>,
    ) -> Result<Vec<LimitUsage>, StoreError> {
        let all = self.usages_of_shards(call, shard, key, rule.shards()).await?;
        let usages = rule.limits().iter().enumerate().map(|(index, &limit)| {
            let of_limit = all.iter().map(|usages| usages[index]);
            let used = of_limit.clone().fold(0_u64, |sum, (used, _)| sum.saturating_add(used));
            let reset_after_us = of_limit.map(|(_, reset_after_us)| reset_after_us).max().unwrap_or(0);
            LimitUsage::new(limit, used, std::time::Duration::from_micros(reset_after_us))
        });
        Ok(usages.collect())
    }

    /// For every shard and limit: units used, and microseconds until nothing is used.
    async fn usages_of_shards(
        &self,
        call: Call,
        shard: &Rule,
        key: Key<'_>,
        shards: u16,
    ) -> Result<Vec<Vec<(u64, u64)>>, StoreError> {
        let calls = (0..shards)
            .map(|number| self.key_call(&scripts::INSPECT, call, shard, key.of_shard(number).key(), 0));
        let replies = self.link.call_all(call.deadline(), calls.collect()).await;
        let usages = replies.into_iter().map(|reply| {
            let mut reply = ReplyReader::new(reply?)?;
            reply.instant_us()?;
            shard.limits().iter().map(|_| Ok((reply.number()?, reply.number()?))).collect()
        });
        usages.collect()
    }

    /// Calls scripts that give back units, and adds up what they gave. After a failure some may have been executed.
    async fn sum_applied(
        &self,
        call: Call,
        calls: Vec<crate::link::ScriptCall>,
    ) -> Result<Applied, StoreError> {
        let mut all = Applied::default();
        for reply in self.link.call_all(call.deadline(), calls).await {
            let mut reply = ReplyReader::new(reply?)?;
            all.applied |= reply.number()? == 1;
            reply.instant_us()?;
            all.units = all.units.saturating_add(reply.number()?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credit_is_split_in_proportion_and_gives_back_no_more_than_is_used() {
        for (units, used, expected) in [
            (10, &[5, 5][..], &[5, 5][..]),
            (99, &[5, 5], &[5, 5]),
            (0, &[5, 5], &[0, 0]),
            (3, &[5, 5], &[2, 1]),
            (5, &[0, 10, 1], &[0, 5, 0]),
            (7, &[1, 1, 1, 97], &[1, 0, 0, 6]),
            (u64::MAX - 1, &[u64::MAX, 0], &[u64::MAX - 1, 0]),
        ] {
            let portions = portions(units, used);
            assert_eq!(portions, expected, "{units} of {used:?}");
        }
    }

    #[test]
    fn only_states_that_requests_charge_follow_a_change() {
        let whole = Rule::new("api", "100/1m").unwrap();
        let split = Rule::builder("api").limit("100/1m".parse().unwrap()).shards(4).build().unwrap();
        let units = |rule: &Rule, shard| rule_of(rule, shard).map(Rule::cost_max);
        assert_eq!((units(&whole, None), units(&whole, Some(0))), (Some(100), None));
        assert_eq!(
            (units(&split, None), units(&split, Some(3)), units(&split, Some(4))),
            (None, Some(25), None)
        );
    }
}
