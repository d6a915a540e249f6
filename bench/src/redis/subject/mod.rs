//! The subjects: what is measured, and how each of them is asked.

mod classical;
mod ours;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;

use crate::sample::{Sample, spread};
use crate::scenario::{Load, Scenario};

pub(crate) use classical::Classical;
pub(crate) use ours::Ours;

/// One request of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// Which of the requests to this subject it is.
    pub(crate) number: u64,
    /// Which of the load's keys asks.
    pub(crate) key: u64,
    pub(crate) at_us: u64,
}

/// What many callers ask at once.
pub(crate) trait Decides: Send + Sync + 'static {
    /// Whether it was admitted.
    fn decide(&self, request: Request) -> impl Future<Output = Result<bool>> + Send;

    /// How many of several, handed over together, were admitted.
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

    /// Those that have a sample of one of these scenarios.
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

    /// A name for its rule, and so a part of its keys, that no other subject and scenario has.
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

/// A subject that is ready to be asked.
pub(crate) enum Ready {
    Classical(Arc<Classical>),
    Ours(Arc<Ours>),
}

impl Ready {
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
        Ok(Self::Ours(Arc::new(Ours::connect(subject, url, connections, name, load).await?)))
    }
}
