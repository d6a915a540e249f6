//! Exponential backoff.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The next pause. There is none before the first try.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: Duration::ZERO }
    }

    /// The pause to make now. The next one is about twice as long.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).clamp(self.first, self.longest);
        // Jitter in half of it: otherwise a fleet that lost its Redis would reconnect in step.
        let random = u32::try_from(RandomState::new().hash_one(()) % 1_000).unwrap_or_default();
        pause / 2 + pause / 2 * random / 1_000
    }

    /// The last try succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_start_over_after_a_reset() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(10), ms(250));
        for _ in 0..2 {
            for longest in [0, 10, 20, 40, 80, 160, 250, 250] {
                let pause = backoff.pause();
                assert!(ms(longest) / 2 <= pause && pause <= ms(longest), "{pause:?} of {longest} ms");
            }
            backoff.reset();
        }
    }
}
