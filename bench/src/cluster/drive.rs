//! Many concurrent callers, each waiting for its answer before the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use slidegate::store::{Call, Store};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Admission, Rule};
use slidegate_redis::{RedisOptions, RedisStore};
use tokio::task::JoinSet;

use crate::Subject;
use crate::report::Sample;

/// Long, so that no call times out while the machine is busy.
const DEADLINE: Duration = Duration::from_mins(1);
/// Never used up: an admission writes, and a denial would not.
const RATE: &str = "1000000000/1m";

/// A subject with its connections.
pub(crate) struct ConnectedSubject {
    subject: Subject,
    requests: Arc<Requests>,
}

struct Requests {
    store: RedisStore,
    rule: Rule,
    keys: Vec<String>,
    next: AtomicUsize,
}

impl Requests {
    async fn send_next(&self) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.keys.len();
        let charge = self.rule.charge(&self.keys[number], 1)?;
        let decision = self.store.check(Call::now(), &Admission::new(&[charge])?).await?;
        anyhow::ensure!(decision.allowed(), "admissions are measured");
        Ok(())
    }
}

impl ConnectedSubject {
    pub(crate) async fn connect(subject: Subject, url: &str, keys: Vec<String>) -> Result<Self> {
        let options = RedisOptions::new(url)?.connections(subject.connections)?.deadline(DEADLINE)?;
        let store = RedisStore::connect_with(&options).await?;
        let rule =
            Rule::builder("bench").limit(RATE.parse()?).algorithm(slidegate::Algorithm::SlidingCounter);
        let requests = Requests { store, rule: rule.build()?, keys, next: AtomicUsize::new(0) };
        Ok(Self { subject, requests: Arc::new(requests) })
    }

    /// Calls for the length of a slice.
    pub(crate) async fn slice(&self, length: Duration) -> Result<Sample> {
        let clock = Arc::new(SystemClock::new());
        let (started_us, cpu_before_ns) = (clock.now_us(), cpu_ns());
        let ends_us = started_us + u64::try_from(length.as_micros())?;
        let mut tasks = JoinSet::new();
        for _ in 0..self.subject.callers {
            let (requests, clock) = (Arc::clone(&self.requests), Arc::clone(&clock));
            tasks.spawn(async move {
                let mut decisions = 0_u64;
                while clock.now_us() < ends_us {
                    requests.send_next().await?;
                    decisions += 1;
                }
                anyhow::Ok(decisions)
            });
        }
        let mut decisions = 0;
        while let Some(task) = tasks.join_next().await {
            decisions += task??;
        }
        let (elapsed_us, client_ns) = (clock.now_us() - started_us, cpu_ns() - cpu_before_ns);
        Ok(Sample { subject: self.subject.name.to_owned(), decisions, elapsed_us, client_ns })
    }
}

/// The processor time of this process so far.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}
