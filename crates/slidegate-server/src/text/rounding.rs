//! Durations as whole numbers of milliseconds and microseconds.

use std::time::Duration;

/// Milliseconds, rounded up, so that a caller does not retry too early.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Microseconds, rounded down. Durations of decisions are made from whole microseconds.
pub(crate) fn whole_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_up_and_both_saturate() {
        assert_eq!((whole_ms(Duration::ZERO), whole_ms(Duration::from_nanos(1))), (0, 1));
        assert_eq!((whole_ms(Duration::from_millis(1)), whole_ms(Duration::from_micros(1_001))), (1, 2));
        assert_eq!(whole_us(Duration::from_nanos(1_999)), 1);
        assert_eq!((whole_ms(Duration::MAX), whole_us(Duration::MAX)), (u64::MAX, u64::MAX));
    }
}
