//! Pinned threads that start together.

use std::sync::Barrier;
use std::thread;

use core_affinity::CoreId;
use slidegate::time::{Clock, SystemClock};

/// The cores that this process may use.
pub(crate) struct Cores(Vec<CoreId>);

impl Cores {
    /// Call it once, before any thread is pinned: a pinned thread, and every thread that it starts, sees only its own
    /// core.
    pub(crate) fn of_process() -> Self {
        Self(core_affinity::get_core_ids().unwrap_or_default())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Pins the calling thread to the core with this number, counted from the last: the first core also serves the
    /// machine's interrupts. Returns whether the system allowed it.
    pub(crate) fn pin(&self, from_last: usize) -> bool {
        self.0.iter().rev().nth(from_last).is_some_and(|core| core_affinity::set_for_current(*core))
    }
}

/// Runs each `work` on its own thread and core, all at once. Returns the microseconds of the slowest.
pub(crate) fn run_in_parallel<W: FnOnce() + Send>(cores: &Cores, work: Vec<W>) -> u64 {
    let start = Barrier::new(work.len());
    let clock = SystemClock::new();
    let run = |index: usize, work: W| {
        assert!(cores.pin(index), "cannot pin thread {index} to a core");
        start.wait();
        let started_us = clock.now_us();
        work();
        clock.now_us() - started_us
    };
    thread::scope(|scope| {
        let run = &run;
        let spawn = |(index, work)| scope.spawn(move || run(index, work));
        let threads: Vec<_> = work.into_iter().enumerate().map(spawn).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("a measuring thread panicked"));
        joined.max().expect("there is at least one thread")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn threads_of_a_pinned_thread_get_cores_of_their_own() {
        let cores = Cores::of_process();
        let seen = Mutex::new(Vec::new());
        let note = || seen.lock().unwrap().extend(core_affinity::get_core_ids().unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(cores.pin(0));
                run_in_parallel(&cores, vec![note; cores.len()]);
            });
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|core| core.id);
        assert_eq!(seen, cores.0);
    }
}
