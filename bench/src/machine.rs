//! The machine that was measured.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// Its processor and its cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor, in its maker's words.
    pub cpu: String,
    /// Cores that the benchmark could use.
    pub cores: usize,
}

impl Machine {
    /// The one that we run on. Asked before any thread is pinned: a pinned thread knows of its own core only.
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
    fn the_model_is_found_among_the_rest() {
        let cpuinfo = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n";
        assert_eq!(model(cpuinfo), Some("AMD EPYC"));
        assert_eq!(model(""), None);
        let machine = Machine { cpu: "AMD EPYC".into(), cores: 2 };
        assert_eq!(machine.to_string(), "AMD EPYC, 2 cores");
    }
}
