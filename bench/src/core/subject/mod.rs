//! The limiters that are measured, and how each is called.

mod empty_loop;
mod floor;
mod governor;
#[cfg(feature = "rivals")]
mod pingora;
mod slidegate_memory;
#[cfg(feature = "rivals")]
mod throttlecrab;
mod trypema;

use std::fmt;

use clap::ValueEnum;

use crate::scenario::{Effort, Measure, Scenario};

pub(crate) use empty_loop::EmptyLoop;
pub(crate) use floor::Floor;
pub(crate) use governor::Governor;
#[cfg(feature = "rivals")]
pub(crate) use pingora::Pingora;
pub(crate) use slidegate_memory::{SlidegateBatches, SlidegateMemory, algorithm};
#[cfg(feature = "rivals")]
pub(crate) use throttlecrab::Throttlecrab;
pub(crate) use trypema::Trypema;

/// A limiter as one thread calls it.
pub(crate) trait Worker {
    /// Whether its requests are batched, by [`Worker::decide_many`].
    const BATCHES: bool = false;

    /// Charges one unit to `key`; whether it was allowed.
    fn decide(&mut self, key: &str) -> bool;

    /// Charges one unit to each of `keys`; how many were allowed.
    fn decide_many(&mut self, keys: &[&str]) -> u64 {
        keys.iter().map(|key| u64::from(self.decide(key))).sum()
    }
}

/// A limiter that many threads share.
pub(crate) trait SharedLimiter: Sync {
    fn worker(&self) -> impl Worker;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Subject {
    SlidingCounter,
    SlidingCounterBatch,
    SlidingLog,
    FixedWindow,
    Gcra,
    SlidingBuckets,
    CompactLog,
    Governor,
    Throttlecrab,
    PingoraLimits,
    Trypema,
    Floor,
    EmptyLoop,
}

impl Subject {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The name in the tables.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Governor => "governor 0.10, keyed, DashMap".to_owned(),
            Self::Throttlecrab => "throttlecrab 0.4, periodic store".to_owned(),
            Self::PingoraLimits => "pingora-limits 0.9, 4 x 1024 sketch".to_owned(),
            Self::Trypema => "trypema 2.2, local absolute".to_owned(),
            Self::Floor => "floor: hashbrown get and add".to_owned(),
            Self::EmptyLoop => "the empty loop".to_owned(),
            Self::SlidingCounterBatch => "slidegate sliding-counter, batches of 16".to_owned(),
            ours => format!("slidegate {ours}"),
        }
    }

    /// Whether it is measured in a scenario.
    pub(crate) fn takes_part(self, scenario: Scenario) -> bool {
        match scenario {
            Scenario::Saturated => self == Self::CompactLog,
            Scenario::HotManualClock => {
                matches!(self, Self::SlidingCounter | Self::SlidingLog | Self::FixedWindow | Self::Gcra)
            }
            Scenario::Flood | Scenario::FloodEvicting => {
                matches!(self, Self::SlidingCounter | Self::SlidingLog)
            }
            Scenario::Growth => {
                matches!(
                    self,
                    Self::SlidingCounter | Self::SlidingLog | Self::Governor | Self::Floor | Self::EmptyLoop
                )
            }
            _ if self == Self::SlidingCounterBatch && scenario.measure() != Measure::Time => false,
            _ => self != Self::EmptyLoop && scenario.threads() <= self.threads_max(),
        }
    }

    /// Most threads that can call it without a lock around it.
    fn threads_max(self) -> usize {
        match self {
            Self::Throttlecrab | Self::Floor => 1,
            _ => usize::MAX,
        }
    }

    /// Hits of every key before the clock starts. The size of a log is its number of requests: with the timed ones it
    /// has ten, where all keys are equally likely.
    pub(crate) fn hits(self, scenario: Scenario, effort: Effort) -> u64 {
        if scenario == Scenario::Growth {
            return if self == Self::SlidingLog { GROWTH_HITS } else { 1 };
        }
        let timed = scenario.decisions(effort) * scenario.threads() as u64 / scenario.keys(effort);
        if self == Self::SlidingLog { 10_u64.saturating_sub(timed).max(1) } else { 1 }
    }
}

/// Hits of every key of a growing `sliding-log`: enough that its tables change their slot width.
const GROWTH_HITS: u64 = 8;

/// The name on the command line.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no subject is hidden").get_name())
    }
}
