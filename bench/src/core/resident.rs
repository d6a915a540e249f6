//! Memory that is really held.

use anyhow::{Context, Result};

/// Variable and value that make jemalloc return what is freed at once, so that a table which was
/// outgrown is not counted. It would slow the allocator down, so only runs that measure memory get it.
pub(crate) const RETURN_AT_ONCE: (&str, &str) = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0");

/// Bytes of this process in memory. Not from `statm`, which counts pages of a size that only an
/// unsafe call would tell.
pub(crate) fn bytes() -> Result<u64> {
    of_status("VmRSS:")
}

/// The most that it ever was.
pub(crate) fn peak_bytes() -> Result<u64> {
    of_status("VmHWM:")
}

fn of_status(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is measured on Linux only")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let line = line.with_context(|| format!("no {name} in status"))?;
    let kibibytes: u64 =
        line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{name} is no number"))?;
    Ok(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_is_resident() {
        let before = bytes().unwrap();
        let block = vec![1_u8; 64 << 20];
        let grown = bytes().unwrap().saturating_sub(before);
        // Other tests run beside it, and a system may take back at once what nobody reads.
        assert!(grown.abs_diff(block.len() as u64) < 32 << 20, "grew by {grown}");
        assert!(std::hint::black_box(block).iter().all(|&byte| byte == 1));
    }
}
