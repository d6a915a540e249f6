//! One bound on the bytes that all connections buffer of requests that are still arriving.
//!
//! The first bytes of every request are free: they fit into the small buffer that a connection has anyway. So a short
//! request is answered even while slow clients hold the whole bound, and the fast path, whose requests are short, counts
//! nothing. All further bytes count as they arrive, not as they are announced: filling the bound costs its sender as
//! many bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of each request that do not count: the first read buffer of hyper.
pub(super) const FREE_BYTES: usize = 8 << 10;

/// The bytes that all connections buffer together.
#[derive(Debug)]
pub(super) struct BufferBound {
    bytes_max: usize,
    taken: AtomicUsize,
}

/// The bound is reached: the bytes do not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BoundReached;

impl BufferBound {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, taken: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> Result<(), BoundReached> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map(drop)
            .map_err(|_| BoundReached)
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The bytes that one connection buffers of its current request. Dropping it gives them back.
#[derive(Debug)]
pub(super) struct RequestBytes {
    bound: Arc<BufferBound>,
    arrived: AtomicUsize,
    is_refused: AtomicBool,
}

// Only the connection's own task changes the counters; atomics make them shareable between its parts.
impl RequestBytes {
    pub(super) fn new(bound: Arc<BufferBound>) -> Self {
        Self { bound, arrived: AtomicUsize::new(0), is_refused: AtomicBool::new(false) }
    }

    /// Counts bytes that have arrived.
    pub(super) fn add(&self, bytes: usize) -> Result<(), BoundReached> {
        let before = self.arrived.load(Ordering::Relaxed);
        let after = before + bytes;
        let taken = self.bound.take(counted(after) - counted(before));
        if taken.is_ok() {
            self.arrived.store(after, Ordering::Relaxed);
        } else {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// Gives the bytes back, as the request is answered or its bytes are dropped.
    pub(super) fn clear(&self) {
        self.is_refused.store(false, Ordering::Relaxed);
        self.bound.give_back(counted(self.arrived.swap(0, Ordering::Relaxed)));
    }

    /// Whether bytes of this request have been refused.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Drop for RequestBytes {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The bytes of a request that count.
fn counted(arrived: usize) -> usize {
    arrived.saturating_sub(FREE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_beyond_the_free_ones_until_the_request_ends() {
        let bound = Arc::new(BufferBound::new(100));
        let (one, other) = (RequestBytes::new(Arc::clone(&bound)), RequestBytes::new(Arc::clone(&bound)));
        assert_eq!(one.add(FREE_BYTES + 60), Ok(()));
        assert_eq!(other.add(FREE_BYTES), Ok(()), "the first bytes are free");
        assert_eq!(other.add(41), Err(BoundReached));
        assert_eq!(other.add(40), Ok(()));
        assert!(other.is_refused() && !one.is_refused());
        one.clear();
        assert_eq!(other.add(60), Ok(()));
        drop(other);
        assert_eq!(one.add(FREE_BYTES + 100), Ok(()), "a dropped connection gives its bytes back");
        assert_eq!(one.add(usize::MAX / 2), Err(BoundReached));
        drop(one);
        assert_eq!(bound.taken.load(Ordering::Relaxed), 0);
    }
}
