//! Cache prefetching.
//!
//! A locked instruction, as in taking and releasing a mutex, waits for all earlier loads: with plain reads of the slots
//! under their shards' locks every cache miss of a batch waits for the one before. A prefetch is not waited for once its
//! page is known. Finding the page may miss a cache too, so a batch collects the addresses under the locks and
//! prefetches them afterwards, without a locked instruction in between.

/// The address of a value, to prefetch it. The value may move or be freed before that.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct PrefetchAddress(*const i8);

impl PrefetchAddress {
    /// No address: nothing is prefetched.
    pub(in crate::store::memory) const NONE: Self = Self(std::ptr::null());

    #[inline]
    pub(super) fn of<T>(value: &T) -> Self {
        Self(std::ptr::from_ref(value).cast())
    }

    /// Prefetches the cache line at the address, and the next one: a slot may cross lines, and a probe goes on to the
    /// next slots.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[expect(unsafe_code, reason = "there is no safe prefetch")]
    #[inline]
    pub(in crate::store::memory) fn prefetch(self) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        // SAFETY: a prefetch neither reads nor writes its address, and ignores one that is not mapped.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(self.0);
            _mm_prefetch::<_MM_HINT_T0>(self.0.wrapping_add(LINE_BYTES));
        }
    }

    /// Other processors do not prefetch.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline]
    pub(in crate::store::memory) fn prefetch(self) {
        let _ = self.0;
    }
}
