//! The scenarios: keys, threads, and the measure.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

/// The distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// One key only.
    Hot,
    /// All keys equally likely.
    Uniform,
    /// The k-th most popular key 1/k as often as the first.
    Zipf,
}

/// What a scenario measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Time of one decision among many.
    Time,
    /// Memory of all keys.
    Memory,
    /// Time of every single call that brings a new key.
    Growth,
    /// Memory, time and losses when new keys do not fit the budget.
    Flood,
}

/// The size of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    /// A fifth of the keys and of the decisions.
    Quick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Scenario {
    /// One key, 1 thread
    Hot1,
    /// One key, 2 threads
    Hot2,
    /// 1 M keys, all equally likely, 1 thread
    Uniform1,
    /// 1 M keys, all equally likely, 2 threads
    Uniform2,
    /// 1 M keys, some popular, 1 thread
    Zipf1,
    /// 1 M keys, some popular, 2 threads
    Zipf2,
    /// One key, 1 thread, on a manual clock: for counting instructions with callgrind
    HotManualClock,
    /// 10 M keys, all equally likely, 1 thread
    Large1,
    /// 10 M keys, all equally likely, 2 threads
    Large2,
    /// Memory of 500 k keys
    #[value(name = "memory-500k")]
    MemorySmall,
    /// Memory of 1 M keys
    #[value(name = "memory-1m")]
    Memory,
    /// Memory of 10 M keys
    #[value(name = "memory-10m")]
    MemoryLarge,
    /// Memory of 1 M keys, each with a full compact-log
    Saturated,
    /// Single calls while 10 M keys arrive
    Growth,
    /// 20 M new keys against a memory budget
    Flood,
    /// 20 M new keys against a memory budget, with eviction
    FloodEvicting,
}

impl Scenario {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The heading of its table.
    pub(crate) fn title(self, effort: Effort) -> String {
        let keys = amount(self.keys(effort));
        let threads = if self.threads() == 1 { "1 thread" } else { "2 threads" };
        match (self, self.measure(), self.traffic()) {
            (Self::Saturated, ..) => format!("memory, {keys} keys that hold as much as they can"),
            (_, Measure::Memory, _) => format!("memory, {keys} keys"),
            (Self::FloodEvicting, ..) => format!("flood of {keys} new keys at the budget, old ones evicted"),
            (_, Measure::Flood, _) => format!("flood of {keys} new keys at the budget"),
            (_, Measure::Growth, _) => format!("single calls while growing to {keys} keys"),
            (Self::HotManualClock, ..) => "one hot key, 1 thread, manual clock".to_owned(),
            (_, Measure::Time, Traffic::Hot) => format!("one hot key, {threads}"),
            (_, Measure::Time, Traffic::Uniform) => format!("{keys} keys uniform, {threads}"),
            (_, Measure::Time, Traffic::Zipf) => format!("{keys} keys zipf 1.0, {threads}"),
        }
    }

    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::MemorySmall | Self::Memory | Self::MemoryLarge | Self::Saturated => Measure::Memory,
            Self::Growth => Measure::Growth,
            Self::Flood | Self::FloodEvicting => Measure::Flood,
            _ => Measure::Time,
        }
    }

    pub(crate) fn threads(self) -> usize {
        match self {
            Self::Hot2 | Self::Uniform2 | Self::Zipf2 | Self::Large2 => 2,
            _ => 1,
        }
    }

    pub(crate) fn traffic(self) -> Traffic {
        match self {
            Self::Hot1 | Self::Hot2 | Self::HotManualClock => Traffic::Hot,
            Self::Zipf1 | Self::Zipf2 => Traffic::Zipf,
            _ => Traffic::Uniform,
        }
    }

    /// Keys before the clock starts, or at the end where growth is measured.
    pub(crate) fn keys(self, effort: Effort) -> u64 {
        let full = match self {
            Self::Hot1 | Self::Hot2 | Self::HotManualClock => 1_000,
            Self::MemorySmall => 500_000,
            Self::Large1 | Self::Large2 | Self::MemoryLarge | Self::Growth => 10_000_000,
            Self::Flood | Self::FloodEvicting => 20_000_000,
            _ => 1_000_000,
        };
        if effort == Effort::Quick && full > 1_000 { full / 5 } else { full }
    }

    /// Timed decisions of each thread.
    pub(crate) fn decisions(self, effort: Effort) -> u64 {
        let full = match self {
            _ if self.measure() == Measure::Memory => 0,
            Self::Growth | Self::Flood | Self::FloodEvicting => return self.keys(effort),
            Self::Hot1 | Self::Hot2 | Self::Large1 | Self::Large2 => 10_000_000,
            _ => 5_000_000,
        };
        if effort == Effort::Quick { full / 5 } else { full }
    }

    /// Whether it is measured only if it is named, or with `--large`: it needs minutes and gigabytes, or a profiler.
    pub(crate) fn large(self) -> bool {
        matches!(
            self,
            Self::HotManualClock
                | Self::Large1
                | Self::Large2
                | Self::MemoryLarge
                | Self::Saturated
                | Self::Growth
        ) || self.measure() == Measure::Flood
    }

    /// The timeout of a child: several times the slowest subject's time.
    pub(crate) fn timeout(self) -> Duration {
        Duration::from_secs(if self.large() { 1_200 } else { 120 })
    }
}

/// The name on the command line.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no scenario is hidden").get_name())
    }
}

/// A round number, abbreviated.
fn amount(count: u64) -> String {
    if count >= 1_000_000 { format!("{} M", count / 1_000_000) } else { format!("{} k", count / 1_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_have_the_number_of_keys() {
        let title = |scenario: Scenario| scenario.title(Effort::Full);
        assert_eq!(title(Scenario::MemorySmall), "memory, 500 k keys");
        assert_eq!(title(Scenario::Large1), "10 M keys uniform, 1 thread");
        assert_eq!(Scenario::Zipf2.title(Effort::Quick), "200 k keys zipf 1.0, 2 threads");
    }
}
