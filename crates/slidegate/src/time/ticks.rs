//! The processor's tick counter, which can be read without waiting for earlier loads.
//!
//! Reading the monotonic clock contains a fence: the processor waits for all earlier loads.
//! Independent decisions then no longer overlap their cache misses, which costs several times more
//! than the read itself. The bare counter has no fence, but neither a unit nor an origin.

/// A counter that usually grows at a steady rate.
pub(super) trait Ticks {
    /// Whether its rate is constant enough to be used.
    fn steady(&self) -> bool;

    /// The count now, without a fence: the processor may reorder the read.
    fn read(&self) -> u64;
}

/// The counter of the processor that this thread runs on.
#[derive(Debug)]
pub(super) struct ProcessorTicks {
    steady: bool,
}

impl ProcessorTicks {
    pub(super) fn new() -> Self {
        Self { steady: tsc::invariant() && trusted_by_system() }
    }
}

impl Ticks for ProcessorTicks {
    fn steady(&self) -> bool {
        self.steady
    }

    #[inline]
    fn read(&self) -> u64 {
        tsc::read()
    }
}

/// Linux checks whether the counters of all processors agree, and stops using them if they do not.
fn trusted_by_system() -> bool {
    const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if !cfg!(target_os = "linux") {
        return true;
    }
    std::fs::read_to_string(CLOCKSOURCE).is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "the time stamp counter has no safe reader")]
mod tsc {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    const EXTENDED_MAX_LEAF: u32 = 0x8000_0000;
    const POWER_LEAF: u32 = 0x8000_0007;
    /// In EDX of the power leaf: the counter's rate is the same in all states of the processor.
    const INVARIANT: u32 = 1 << 8;

    #[allow(unused_unsafe, reason = "newer compilers know that every x86_64 has this instruction")]
    pub(super) fn invariant() -> bool {
        // SAFETY: every x86_64 processor has CPUID; it reads and writes nothing but registers.
        let cpuid = |leaf| unsafe { __cpuid(leaf) };
        cpuid(EXTENDED_MAX_LEAF).eax >= POWER_LEAF && cpuid(POWER_LEAF).edx & INVARIANT != 0
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86_64 processor has RDTSC; it reads and writes nothing but registers. Systems that
        // forbid it to programs also forbid the monotonic clock of their own vDSO.
        unsafe { _rdtsc() }
    }
}

/// Other processors use the monotonic clock alone.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod tsc {
    pub(super) fn invariant() -> bool {
        false
    }

    #[inline]
    pub(super) fn read() -> u64 {
        0
    }
}
