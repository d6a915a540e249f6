//! The scenarios: the live requests of a key, and the calls.

use std::fmt;

use clap::ValueEnum;

/// What a scenario measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Decisions per second.
    Rate,
    /// Memory of one key.
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Scenario {
    /// Cost 1, 20 live requests per key
    #[value(name = "cost-1")]
    Cost1,
    /// Cost 100, 20 live requests per key
    #[value(name = "cost-100")]
    Cost100,
    /// Cost 1, 20 live requests per key, sixteen admissions per call
    #[value(name = "batch-16")]
    Batch16,
    /// Cost 1, 20 live requests per key, from one caller
    #[value(name = "alone-1")]
    Alone1,
    /// Cost 1, 20 live requests per key, one caller, sixteen admissions per call
    #[value(name = "alone-16")]
    Alone16,
    /// A limit of 100, used up: each request passes as an old one expires
    #[value(name = "limit-100")]
    Limit100,
    /// A limit of 100,000, used up: each request passes as an old one expires
    #[value(name = "limit-100k")]
    Limit100k,
    /// Memory of a key that holds 20 requests
    #[value(name = "memory-20")]
    Memory20,
    /// Memory of a key that holds 1,000 requests
    #[value(name = "memory-1000")]
    Memory1000,
    /// Memory of a key that holds 10,000 units spent in calls of 100
    #[value(name = "memory-10k-units")]
    MemoryUnits,
}

/// The requests of a scenario: round after round over all keys, each round a step later than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) keys: u64,
    /// Units of the rule's limit, and its window.
    pub(crate) limit: u64,
    pub(crate) window_us: u64,
    pub(crate) cost: u64,
    /// Rounds that fill every key, before the clock starts.
    pub(crate) rounds: u64,
    pub(crate) step_us: u64,
    /// Admissions of one call.
    pub(crate) batch: u64,
    /// Whether one caller calls at a time, so that no calls share a round trip.
    pub(crate) single_caller: bool,
}

const HOUR_US: u64 = 3_600_000_000;

impl Scenario {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::Memory20 | Self::Memory1000 | Self::MemoryUnits => Measure::Memory,
            _ => Measure::Rate,
        }
    }

    /// Whether keys are at their limit, so that an early request is denied: in `compact-log` many units expire at once
    /// and then none for a while.
    pub(crate) fn at_limit(self) -> bool {
        matches!(self, Self::Limit100 | Self::Limit100k)
    }

    pub(crate) fn load(self) -> Load {
        // Twenty rounds, a twentieth of the window apart: the oldest expires as the next one is sent.
        let twenty = Load {
            // A multiple of the batch size, so that all requests of a batch have the same time.
            keys: 1_024,
            limit: 100,
            window_us: HOUR_US,
            cost: 1,
            rounds: 20,
            step_us: HOUR_US / 20,
            batch: 1,
            single_caller: false,
        };
        let full = |limit| Load { keys: 2, limit, rounds: limit, step_us: HOUR_US / limit, ..twenty };
        let held = |limit, cost| Load {
            keys: 1,
            limit,
            cost,
            rounds: limit / cost,
            step_us: HOUR_US * cost / limit,
            ..twenty
        };
        match self {
            Self::Cost1 => twenty,
            Self::Cost100 => Load { keys: 100, limit: 10_000, cost: 100, ..twenty },
            Self::Batch16 => Load { batch: 16, ..twenty },
            Self::Alone1 => Load { single_caller: true, ..twenty },
            Self::Alone16 => Load { batch: 16, single_caller: true, ..twenty },
            Self::Limit100 => full(100),
            Self::Limit100k => full(100_000),
            Self::Memory20 => held(20, 1),
            Self::Memory1000 => held(1_000, 1),
            Self::MemoryUnits => held(10_000, 100),
        }
    }
}

/// The name on the command line.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no scenario is hidden").get_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_no_more_than_its_limit() {
        for scenario in Scenario::all() {
            let load = scenario.load();
            let live = load.window_us.div_ceil(load.step_us);
            assert!(live * load.cost <= load.limit, "{scenario}: {live} live requests");
            assert!(load.rounds >= live.min(load.limit / load.cost), "{scenario}: not filled");
        }
    }
}
