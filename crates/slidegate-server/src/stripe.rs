//! Assigns threads to stripes of counters, so that threads do not share a cache line.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers threads in the order of their first call.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's stripe of `stripes`, always the same. Threads that start one after the other get different stripes
/// while there are enough.
pub(crate) fn of_this_thread(stripes: usize) -> usize {
    NUMBER.with(|number| number % stripes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_stripe_and_all_stripes_are_used() {
        let here = of_this_thread(4);
        assert_eq!(of_this_thread(4), here);
        let stripe = || std::thread::spawn(|| of_this_thread(4)).join().unwrap();
        let mut seen = [false; 4];
        while seen.contains(&false) {
            seen[stripe()] = true;
        }
    }
}
