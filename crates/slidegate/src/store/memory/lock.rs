//! The lock of a shard, as a type parameter: programs use the standard library's, tests that explore
//! interleavings use their own.

use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex.
pub trait Lock<T>: Send + Sync {
    /// Access to what the lock guards, until it is dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a;

    /// A lock around `value`.
    fn new(value: T) -> Self;

    /// Waits for the lock.
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes the lock if it is free.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

/// A kind of lock, for any guarded type.
pub trait Locks: 'static {
    /// The lock around a `T`.
    type Of<T: Send + 'static>: Lock<T>;
}

/// The standard library's mutex.
#[derive(Debug)]
pub struct StdLocks;

impl Locks for StdLocks {
    type Of<T: Send + 'static> = Mutex<T>;
}

impl<T: Send> Lock<T> for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    /// Ignores poisoning: a panic leaves no partial change, as everything is decided before anything is
    /// written.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, T> {
        Lock::try_lock(self).unwrap_or_else(|| lock_contended(self))
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match Self::try_lock(self) {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Waits with exponential backoff, and then as the standard library does. A decision holds the lock for less time than
/// it takes to park a thread, and every look at the lock takes its cache line from the thread that holds it.
#[cold]
fn lock_contended<T: Send>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for pauses in BACKOFF {
        (0..pauses).for_each(|_| std::hint::spin_loop());
        if let Some(guard) = Lock::try_lock(mutex) {
            return guard;
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pauses between the looks at a contended lock.
const BACKOFF: [u32; 4] = [16, 32, 64, 128];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poisoned_lock_can_still_be_taken() {
        let lock: Mutex<u64> = Lock::new(1);
        let panicked = std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let _guard = Lock::lock(&lock);
                panic!("with the lock in hand");
            });
            caller.join().is_err()
        });
        assert!(panicked && lock.is_poisoned());
        assert_eq!(*Lock::lock(&lock), 1);
        assert_eq!(Lock::try_lock(&lock).map(|guard| *guard), Some(1));
        let held = Lock::lock(&lock);
        assert!(Lock::try_lock(&lock).is_none());
        drop(held);
    }
}
