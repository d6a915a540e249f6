//! The JSON file of all samples.

use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::measurement;

use crate::sample::Sample;

/// The content of the file.
pub(crate) type Measurement = measurement::Measurement<BenchSetting, Sample>;

/// The setting of all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchSetting {
    /// Whether slices were shorter than published figures need.
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
    use crate::sample::RateFigures;

    #[test]
    fn a_written_file_can_be_read() {
        let rate = RateFigures { decisions: 5, admitted: 4, elapsed_us: 3, server_us: 2 };
        let timed =
            Sample { subject: "gcra".into(), scenario: "cost-1".into(), rate: Some(rate), key_bytes: None };
        let sized = Sample { key_bytes: Some(96), rate: None, ..timed.clone() };
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting =
            BenchSetting { quick: false, machine, redis: "7.0.15".into(), callers: 32, connections: 2 };
        let measured = Measurement { setting, samples: vec![timed, sized] };
        let folder = std::env::temp_dir().join(format!("slidegate-redis-results-{}", std::process::id()));
        measured.write(&folder.join("redis.json")).unwrap();
        assert_eq!(Measurement::read(&folder.join("redis.json")).unwrap(), measured);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
