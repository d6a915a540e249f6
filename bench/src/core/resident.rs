//! Resident memory of this process.

use anyhow::{Context, Result};

/// Variable and value that make jemalloc return freed memory at once, so that the old array of a grown table is not
/// counted. It slows the allocator down, so only runs that measure memory set it.
pub(crate) const RETURN_AT_ONCE: (&str, &str) = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0");

/// Resident bytes. Not from `statm`, which counts pages, whose size only an unsafe call returns.
pub(crate) fn bytes() -> Result<u64> {
    of_status("VmRSS:")
}

/// Peak of the resident bytes.
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
    fn written_memory_is_resident() {
        let before = bytes().unwrap();
        let block = vec![1_u8; 64 << 20];
        let grown = bytes().unwrap().saturating_sub(before);
        // Other tests run in parallel, and a system may reclaim unread pages at once.
        assert!(grown.abs_diff(block.len() as u64) < 32 << 20, "grew by {grown}");
        assert!(std::hint::black_box(block).iter().all(|&byte| byte == 1));
    }
}
