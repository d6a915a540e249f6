//! slidegate through its public Redis store.

use std::time::Duration;

use anyhow::{Result, bail};
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::{Call, Store};
use slidegate::{Admission, Algorithm, Rule};
use slidegate_redis::{LogLayout, RedisOptions, RedisStore};

use super::{AsyncLimiter, Request, Subject};
use crate::scenario::Load;

/// Long, so that no call times out while the machine is busy.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct SlidegateRedis {
    store: RedisStore,
    rule: Rule,
    keys: Vec<String>,
    cost: u64,
}

impl SlidegateRedis {
    pub(crate) async fn connect(
        subject: Subject,
        url: &str,
        connections: u16,
        name: &str,
        load: Load,
    ) -> Result<Self> {
        let layout = if subject == Subject::SortedSet { LogLayout::SortedSet } else { LogLayout::Packed };
        let options = RedisOptions::new(url)?.connections(connections.into())?.deadline(DEADLINE)?;
        let store = RedisStore::connect_with(&options.log_layout(layout)).await?;
        let rate = format!("{}/{}s", load.limit, load.window_us / 1_000_000).parse()?;
        let rule = Rule::builder(name).limit(rate).algorithm(algorithm(subject)?).build()?;
        let keys = (0..load.keys).map(|key| format!("user:{key}")).collect();
        Ok(Self { store, rule, keys, cost: load.cost })
    }

    fn admission(&self, request: Request) -> Result<Admission<'_>> {
        let key = &self.keys[usize::try_from(request.key)?];
        Ok(Admission::new(&[self.rule.charge(key, self.cost)?])?)
    }
}

fn algorithm(subject: Subject) -> Result<Algorithm> {
    Ok(match subject {
        Subject::SlidingLog | Subject::SortedSet => Algorithm::SlidingLog,
        Subject::CompactLog => Algorithm::CompactLog(Entries::DEFAULT),
        Subject::SlidingBuckets => Algorithm::SlidingBuckets(Buckets::new(60)?, Edge::Full),
        Subject::SlidingCounter => Algorithm::SlidingCounter,
        Subject::FixedWindow => Algorithm::FixedWindow,
        Subject::Gcra => Algorithm::Gcra,
        Subject::Classical => bail!("the classical sorted set is not slidegate"),
    })
}

impl AsyncLimiter for SlidegateRedis {
    async fn decide(&self, request: Request) -> Result<bool> {
        let decision = self.store.check(Call::at_us(request.at_us), &self.admission(request)?).await?;
        Ok(decision.allowed())
    }

    async fn decide_many(&self, requests: &[Request]) -> Result<u64> {
        let admissions: Vec<_> =
            requests.iter().map(|&request| self.admission(request)).collect::<Result<_>>()?;
        let mut admitted = 0;
        for decision in self.store.check_batch(Call::at_us(requests[0].at_us), &admissions).await {
            admitted += u64::from(decision?.allowed());
        }
        Ok(admitted)
    }
}
