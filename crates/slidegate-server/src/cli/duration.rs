//! Durations as readable text.

use std::time::Duration;

/// The two largest units of a wait, rounded up, so that the wait is long enough.
///
/// `3h12m`, `1m30s`, `45s`, `250ms`; nothing is `0s`.
pub(super) fn rounded_up(wait: Duration) -> String {
    const UNITS: [(u128, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let ms = wait.as_micros().div_ceil(1_000);
    if ms == 0 {
        return "0s".to_owned();
    }
    let Some(first) = UNITS.iter().position(|&(unit_ms, _)| ms >= unit_ms) else { return "1ms".to_owned() };
    // Milliseconds are not shown after seconds.
    let second = if UNITS[first].1 == "s" { first } else { (first + 1).min(UNITS.len() - 1) };
    let smallest_ms = UNITS[second].0;
    let ms = ms.div_ceil(smallest_ms) * smallest_ms;
    let (unit_ms, unit) = UNITS[first];
    let (whole, rest) = (ms / unit_ms, ms % unit_ms / smallest_ms);
    if rest > 0 { format!("{whole}{unit}{rest}{}", UNITS[second].1) } else { format!("{whole}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_two_units_rounded_up() {
        for (us, text) in [
            (0, "0s"),
            (1, "1ms"),
            (249_001, "250ms"),
            (999_999, "1s"),
            (44_000_001, "45s"),
            (59_000_001, "60s"),
            (60_000_000, "1m"),
            (89_000_001, "1m30s"),
            (11_519_000_000, "3h12m"),
            (86_400_000_000, "1d"),
            (86_400_000_001, "1d1h"),
        ] {
            assert_eq!(rounded_up(Duration::from_micros(us)), text, "{us}");
        }
    }
}
