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

mod drawn;

use slidegate::store::{Call, LimitUsage, StoreError};
use slidegate::{Admission, Applied, Charge, Decision, Key, Rule};

use crate::decode::ReplyReader;
use crate::scripts;
use crate::store::RedisStore;
use drawn::DrawnShards;

/// Whether what is decided is charged, or only asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charging {
    Yes,
    No,
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
        if !DrawnShards::has_shards(admission) {
            return self.decide_whole(charging, call, admission).await;
        }
        let drawn = DrawnShards::draw(admission, || self.draw());
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
        let draw = || self.draw();
        if admissions.iter().all(|admission| !DrawnShards::has_shards(admission)) {
            return self.check_all_whole(call, admissions).await;
        }
        let call = self.link.with_one_deadline(call);
        let drawn: Vec<_> = admissions.iter().map(|admission| DrawnShards::draw(admission, draw)).collect();
        let first: Vec<_> = admissions.iter().zip(&drawn).collect();
        let decided = self.check_drawn(call, &first).await;
        let redrawn = first.iter().zip(&decided).map(|((admission, drawn), decided)| {
            let denied = decided.as_ref().ok()?;
            drawn.redrawn(admission, denied, draw)
        });
        let redrawn: Vec<Option<DrawnShards>> = redrawn.collect();
        let second = admissions.iter().zip(&redrawn);
        let second: Vec<_> =
            second.filter_map(|(admission, drawn)| Some((admission, drawn.as_ref()?))).collect();
        let mut second = self.check_drawn(call, &second).await.into_iter();
        let answers = decided.into_iter().zip(&redrawn).map(|(first, redrawn)| match redrawn {
            Some(_) => Ok(sooner(first?, second.next().expect("an answer for each admission")?)),
            None => first,
        });
        answers.collect()
    }

    async fn check_drawn<'a>(
        &self,
        call: Call,
        drawn: &[(&Admission<'a>, &DrawnShards)],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let on_shards: Vec<Admission<'_>> =
            drawn.iter().map(|(admission, drawn)| drawn.admission(admission)).collect();
        let decided = self.check_all_whole(call, &on_shards).await;
        let shown = drawn.iter().zip(decided);
        shown.map(|((admission, drawn), decided)| Ok(drawn.shown(admission, &decided?))).collect()
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
