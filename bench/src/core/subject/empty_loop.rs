//! No limiter: the cost of the benchmark loop itself.

use std::hint::black_box;

use super::Worker;

pub(crate) struct EmptyLoop;

impl Worker for EmptyLoop {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        black_box(key);
        true
    }
}
