//! The time of single calls while the table grows.
//!
//! Two clocks: wall time, which includes the time that the machine gives to other processes during a call, and the
//! processor time of the thread, which does not. Reading them takes time too: the empty loop shows how much.

use std::mem;
use std::time::Instant;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::requests::every_key;
use crate::subject::Worker;

/// The call times of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallTimes {
    pub(crate) median_ns: u64,
    pub(crate) p99_99_ns: u64,
    pub(crate) worst_ns: u64,
    /// Most processor time of a call, not necessarily of the call with the longest wall time.
    pub(crate) worst_cpu_ns: u64,
    /// Calls with more than a millisecond of wall time.
    pub(crate) above_1_ms: u64,
}

const MILLISECOND_NS: u32 = 1_000_000;

/// Charges every key for the first time and, if there are more `hits`, again.
pub(crate) fn grow<W: Worker>(worker: &mut W, keys: u64, hits: u64) -> Result<CallTimes> {
    // Not zeros, whose pages the system would allocate at the first write, between the calls.
    let mut calls_ns = vec![u32::MAX; usize::try_from(keys * hits)?];
    let mut slots = calls_ns.iter_mut();
    let (mut refused, mut worst_cpu_ns) = (0_u64, 0);
    let mut cpu_ns = thread_cpu_ns();
    let mut call = |key: &str| {
        let (allowed, took_ns) = timed(|| worker.decide(key));
        // Read once per call, so it includes the time between two calls; the wall time of a call is an upper bound.
        let before_ns = mem::replace(&mut cpu_ns, thread_cpu_ns());
        worst_cpu_ns = (cpu_ns - before_ns).min(took_ns.into()).max(worst_cpu_ns);
        refused += u64::from(!allowed);
        *slots.next().expect("a slot for every call") = took_ns;
    };
    (0..hits).for_each(|_| every_key(keys, &mut call));
    ensure!(refused == 0, "{refused} hits were refused; the limit is too low");
    Ok(CallTimes { worst_cpu_ns, ..summarised(calls_ns) })
}

/// Wall time in nanoseconds, at most four seconds.
#[inline]
#[expect(clippy::disallowed_methods, reason = "a call takes less than the microseconds of a Clock")]
fn timed<T>(call: impl FnOnce() -> T) -> (T, u32) {
    let started = Instant::now();
    let answer = call();
    let elapsed = started.elapsed();
    (answer, u32::try_from(elapsed.as_nanos()).unwrap_or(u32::MAX))
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = |part: i64| u64::try_from(part).expect("processor time is not negative");
    whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec)
}

fn summarised(mut calls_ns: Vec<u32>) -> CallTimes {
    calls_ns.sort_unstable();
    let count = calls_ns.len();
    let at = |index: usize| u64::from(calls_ns[index]);
    CallTimes {
        median_ns: at(count / 2),
        p99_99_ns: at((count - count / 10_000 - 1).min(count - 1)),
        worst_ns: at(count - 1),
        worst_cpu_ns: 0,
        above_1_ms: (count - calls_ns.partition_point(|&took_ns| took_ns <= MILLISECOND_NS)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::EmptyLoop;

    #[test]
    fn one_call_in_ten_thousand_is_above_the_percentile() {
        let mut calls_ns: Vec<u32> = (1..=20_000).collect();
        calls_ns[7] = 5_000_000;
        calls_ns[8] = MILLISECOND_NS;
        let calls = summarised(calls_ns);
        assert_eq!((calls.worst_ns, calls.p99_99_ns, calls.above_1_ms), (5_000_000, 20_000, 1));
        assert_eq!(calls.median_ns, 10_003, "two small ones became large");
    }

    #[test]
    fn every_call_is_timed() {
        let calls = grow(&mut EmptyLoop, 1_000, 2).unwrap();
        assert!(calls.worst_ns < u64::from(u32::MAX) && calls.worst_cpu_ns > 0, "{calls:?}");
        assert!(calls.median_ns <= calls.p99_99_ns && calls.p99_99_ns <= calls.worst_ns, "{calls:?}");
    }
}
