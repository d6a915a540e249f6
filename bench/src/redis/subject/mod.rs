//! The limiters that are measured, and how each is called.

mod classical;
mod slidegate_redis_store;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;

use crate::sample::{Sample, spread};
use crate::scenario::{Load, Scenario};

pub(crate) use classical::Classical;
pub(crate) use slidegate_redis_store::SlidegateRedis;

/// One request of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its number in the sequence of requests to this subject.
    pub(crate) number: u64,
    /// The number of its key.
    pub(crate) key: u64,
    pub(crate) at_us: u64,
}

/// A limiter that many tasks call concurrently.
pub(crate) trait AsyncLimiter: Send + Sync + 'static {
    /// Whether the request was admitted.
    fn decide(&self, request: Request) -> impl Future<Output = Result<bool>> + Send;

    /// How many requests of a batch were admitted.
    fn decide_many(&self, requests: &[Request]) -> impl Future<Output = Result<u64>> + Send;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Subject {
    Classical,
    SlidingLog,
    SortedSet,
    CompactLog,
    SlidingBuckets,
    SlidingCounter,
    FixedWindow,
    Gcra,
}

impl Subject {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The subjects with a sample of one of these scenarios.
    pub(crate) fn with_samples(samples: &[Sample], scenarios: &[Scenario]) -> Vec<Self> {
        let measured = |&subject: &Self| {
            scenarios.iter().any(|&scenario| spread(samples, subject, scenario, |_| Some(0)).is_some())
        };
        Self::value_variants().iter().copied().filter(measured).collect()
    }

    /// The name in the tables.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Classical => "the classical sorted set".to_owned(),
            Self::SortedSet => "slidegate sliding-log, sorted-set".to_owned(),
            ours => format!("slidegate {ours}"),
        }
    }

    /// The name of its rule, unique per subject and scenario, and so a unique part of its keys.
    pub(crate) fn rule_name(self, scenario: Scenario) -> String {
        format!("{scenario}-{self}")
    }
}

/// The name on the command line.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no subject is hidden").get_name())
    }
}

/// A subject with its connections.
pub(crate) enum ConnectedSubject {
    Classical(Arc<Classical>),
    SlidegateRedis(Arc<SlidegateRedis>),
}

impl ConnectedSubject {
    pub(crate) async fn connect(
        subject: Subject,
        name: &str,
        url: &str,
        connections: u16,
        load: Load,
    ) -> Result<Self> {
        if subject == Subject::Classical {
            return Ok(Self::Classical(Arc::new(Classical::connect(url, connections, name, load).await?)));
        }
        Ok(Self::SlidegateRedis(Arc::new(
            SlidegateRedis::connect(subject, url, connections, name, load).await?,
        )))
    }
}
