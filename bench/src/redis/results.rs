//! The JSON file of all samples.

use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::measured;

use crate::sample::Sample;

/// What is in the file.
pub(crate) type Measured = measured::Measured<Setting, Sample>;

/// What all samples have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// Whether slices were shorter than figures for readers deserve.
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
    /// Version of redis-server.
    pub(crate) redis: String,
    pub(crate) callers: u16,
    pub(crate) connections: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Rate;

    #[test]
    fn what_is_written_is_read_again() {
        let rate = Rate { decisions: 5, admitted: 4, elapsed_us: 3, server_us: 2 };
        let timed =
            Sample { subject: "gcra".into(), scenario: "cost-1".into(), rate: Some(rate), key_bytes: None };
        let sized = Sample { key_bytes: Some(96), rate: None, ..timed.clone() };
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = Setting { quick: false, machine, redis: "7.0.15".into(), callers: 32, connections: 2 };
        let measured = Measured { setting, samples: vec![timed, sized] };
        let folder = std::env::temp_dir().join(format!("slidegate-redis-results-{}", std::process::id()));
        measured.write(&folder.join("redis.json")).unwrap();
        assert_eq!(Measured::read(&folder.join("redis.json")).unwrap(), measured);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
