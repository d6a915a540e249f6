//! The machine of a measurement.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// A processor and its cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The model name of the processor.
    pub cpu: String,
    /// Cores available to the benchmark.
    pub cores: usize,
}

impl Machine {
    /// This machine. Call it before any thread is pinned: a pinned thread sees only its own core.
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = model(&cpuinfo).unwrap_or("an unnamed processor").to_owned();
        Self { cpu, cores: core_affinity::get_core_ids().unwrap_or_default().len() }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        write!(f, "{}, {} {cores}", self.cpu, self.cores)
    }
}

fn model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_name_is_found_in_cpuinfo() {
        let cpuinfo = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n";
        assert_eq!(model(cpuinfo), Some("AMD EPYC"));
        assert_eq!(model(""), None);
        let machine = Machine { cpu: "AMD EPYC".into(), cores: 2 };
        assert_eq!(machine.to_string(), "AMD EPYC, 2 cores");
    }
}
