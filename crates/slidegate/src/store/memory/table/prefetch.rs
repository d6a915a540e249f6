//! Cache prefetching.
//!
//! A locked instruction, as in taking and releasing a mutex, waits for all earlier loads: with plain reads of the slots
//! under their shards' locks every cache miss of a batch waits for the one before. A prefetch completes at once, so the
//! misses overlap: on a million keys batches of 16 take 0.7 of the time.

/// Prefetches the cache line of a value, and the next one: a slot may cross lines, and a probe goes on to the next slots.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "there is no safe prefetch")]
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    const LINE_BYTES: usize = 64;
    let first = std::ptr::from_ref(value).cast::<i8>();
    // SAFETY: a prefetch neither reads nor writes its address, and ignores one that is not mapped.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(first);
        _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(LINE_BYTES));
    }
}

/// Other processors do not prefetch.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(super) fn prefetch<T>(_value: &T) {}
