//! Metrics of this process: memory, files, threads, processor time.

use std::fs;

use super::exposition::{Exposition, decimal};

/// Linux reports processor time in 100 ticks per second (`USER_HZ`) on every supported processor.
const TICKS_PER_SECOND_LOG10: usize = 2;

/// Writes the metrics that the system provides: nothing except on Linux.
pub(super) fn expose(to: &mut Exposition) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (stat, status) = (read("/proc/self/stat"), read("/proc/self/status"));
    let gauges = [
        ("process_resident_memory_bytes", "Resident memory.", bytes(&status, "VmRSS:")),
        ("process_virtual_memory_bytes", "Virtual memory.", bytes(&status, "VmSize:")),
        ("process_open_fds", "Open file descriptors.", open_files()),
        (
            "process_max_fds",
            "File descriptors that may be open.",
            field(&read("/proc/self/limits"), "Max open files"),
        ),
        ("process_threads", "Threads.", field(&status, "Threads:")),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            to.single(name, "gauge", help, value);
        }
    }
    if let Some(ticks) = cpu_ticks(&stat) {
        let help = "Processor time of user and system.";
        to.single("process_cpu_seconds_total", "counter", help, decimal(ticks, TICKS_PER_SECOND_LOG10));
    }
}

/// A number in kB, as bytes.
fn bytes(status: &str, name: &str) -> Option<u64> {
    field(status, name)?.checked_mul(1024)
}

/// The first number on the line that begins with the name.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// User and system time. The program's name may contain blanks and parentheses, so fields count from the last `)`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let [user, system] = [fields.next()?, fields.next()?];
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

/// Open files, without the descriptor that lists them.
fn open_files() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    Some((entries.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_from_the_files_of_linux() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 123 45 0 0 20 0 3 0 100 5 6";
        assert_eq!(cpu_ticks(stat), Some(168));
        let status = "Name:\tx\nVmSize:\t  2048 kB\nVmRSS:\t   512 kB\nThreads:\t3\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(524_288));
        assert_eq!(field(status, "Threads:"), Some(3));
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024       4096       files\n";
        assert_eq!(field(limits, "Max open files"), Some(1024));
        assert_eq!((cpu_ticks(""), bytes("", "VmRSS:"), field("unlimited", "Max")), (None, None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_six_metrics() {
        let mut to = Exposition::default();
        expose(&mut to);
        let text = to.text;
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let named: Vec<_> = samples.filter_map(|line| line.split_once(' ')).collect();
        assert_eq!(named.len(), 6, "{text}");
        assert!(named.iter().take(5).all(|(_, value)| value.parse::<u64>().unwrap() > 0), "{text}");
    }
}
