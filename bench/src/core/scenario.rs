//! The scenarios: which keys are asked for, by how many threads.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

/// How keys follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// One key only.
    Hot,
    /// Every key as likely as every other.
    Uniform,
    /// The k-th most popular key is asked for 1/k as often as the first.
    Zipf,
}

/// How much a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    /// A fifth of the keys and of the decisions.
    Quick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Scenario {
    Hot1,
    Hot2,
    Uniform1,
    Uniform2,
    Zipf1,
    Zipf2,
    Large1,
    Memory,
    LargeMemory,
}

impl Scenario {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The heading of its table.
    pub(crate) fn title(self, effort: Effort) -> String {
        let keys = self.keys(effort) / 1_000;
        let threads = if self.threads() == 1 { "1 thread" } else { "2 threads" };
        match self.traffic() {
            _ if self.memory() => format!("memory, {keys},000 keys"),
            Traffic::Hot => format!("one hot key, {threads}"),
            Traffic::Uniform => format!("{keys},000 keys uniform, {threads}"),
            Traffic::Zipf => format!("{keys},000 keys zipf 1.0, {threads}"),
        }
    }

    pub(crate) fn threads(self) -> usize {
        match self {
            Self::Hot2 | Self::Uniform2 | Self::Zipf2 => 2,
            _ => 1,
        }
    }

    pub(crate) fn traffic(self) -> Traffic {
        match self {
            Self::Hot1 | Self::Hot2 => Traffic::Hot,
            Self::Zipf1 | Self::Zipf2 => Traffic::Zipf,
            _ => Traffic::Uniform,
        }
    }

    /// Keys that are there before the clock starts.
    pub(crate) fn keys(self, effort: Effort) -> u64 {
        let full = match self {
            Self::Hot1 | Self::Hot2 => 1_000,
            Self::Large1 | Self::LargeMemory => 10_000_000,
            _ => 1_000_000,
        };
        if effort == Effort::Quick && full > 1_000 { full / 5 } else { full }
    }

    /// Decisions that each thread takes under the clock.
    pub(crate) fn decisions(self, effort: Effort) -> u64 {
        let full = match self {
            Self::Memory | Self::LargeMemory => 0,
            Self::Hot1 | Self::Hot2 | Self::Large1 => 10_000_000,
            _ => 5_000_000,
        };
        if effort == Effort::Quick { full / 5 } else { full }
    }

    /// Whether it is measured in bytes instead of time.
    pub(crate) fn memory(self) -> bool {
        matches!(self, Self::Memory | Self::LargeMemory)
    }

    pub(crate) fn large(self) -> bool {
        matches!(self, Self::Large1 | Self::LargeMemory)
    }

    /// After this long a child is given up: several times what the slowest subject needs.
    pub(crate) fn patience(self) -> Duration {
        Duration::from_secs(if self.large() { 600 } else { 120 })
    }
}

/// The name on the command line.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no scenario is hidden").get_name())
    }
}
