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
    /// Version of wrk.
    pub(crate) wrk: String,
    pub(crate) connections: u16,
    /// Keys that every server held.
    pub(crate) keys: u64,
    pub(crate) slice_seconds: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{ClosedLoop, MemoryFigures};
    use crate::subject::Subject;

    #[test]
    fn a_written_file_can_be_read() {
        let closed = ClosedLoop { requests: 5, elapsed_us: 4, server_us: 3, p50_us: 2, p99_us: 1 };
        let memory = MemoryFigures { keys: 3, empty_bytes: 2, bytes: 1 };
        let samples = vec![
            Sample { closed: Some(closed), ..Sample::of(Subject::Gcra) },
            Sample { memory: Some(memory), ..Sample::of(Subject::Throttlecrab) },
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = BenchSetting {
            quick: false,
            machine,
            wrk: "4.1.0".into(),
            connections: 50,
            keys: 3,
            slice_seconds: 1,
        };
        let measured = Measurement { setting, samples };
        let folder = std::env::temp_dir().join(format!("slidegate-http-results-{}", std::process::id()));
        measured.write(&folder.join("http.json")).unwrap();
        assert_eq!(Measurement::read(&folder.join("http.json")).unwrap(), measured);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
