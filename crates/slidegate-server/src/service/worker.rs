//! Which of a few equal parts a thread uses, so that threads that count at once do not share a cache line.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers threads as they first ask. It tells nothing but one thread from another.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's part of `parts`, always the same. Threads that were started one after the other get
/// different ones as long as there are enough.
pub(super) fn part_of(parts: usize) -> usize {
    NUMBER.with(|number| number % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_part_and_all_parts_are_used() {
        let here = part_of(4);
        assert_eq!(part_of(4), here);
        let parts = || std::thread::spawn(|| part_of(4)).join().unwrap();
        let mut seen = [false; 4];
        while seen.contains(&false) {
            seen[parts()] = true;
        }
    }
}
