//! Durations and amounts of memory, as settings write them.

use std::time::Duration;

use slidegate::rate::parse_window;

use crate::text::excerpt;

const BYTE_UNITS: [(&str, u64); 4] = [("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads `50ms`, `10s`, `2m`.
pub(super) fn duration(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let number = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let duration = parse_window(text).filter(|_| number);
    let duration = duration.ok_or_else(|| {
        format!(
            "`{}` is not a duration; write a number and ms, s, m, h or d, for example 50ms",
            excerpt(text)
        )
    })?;
    if (least..=most).contains(&duration) {
        return Ok(duration);
    }
    Err(format!("`{}` is outside {least:?} to {most:?}; choose a duration in that range", excerpt(text)))
}

/// Reads `65536`, `64KiB`, `512MiB`, `1GiB`.
pub(super) fn bytes(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_bytes = BYTE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| bytes);
    let bytes =
        number.parse::<u64>().ok().zip(unit_bytes).and_then(|(number, unit)| number.checked_mul(*unit));
    let bytes = bytes.ok_or_else(|| {
        format!("`{}` is not a number of bytes; write digits and KiB, MiB, GiB or nothing", excerpt(text))
    })?;
    if (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (bytes_shown(least), bytes_shown(most));
    Err(format!("`{}` is outside {least} to {most}; choose an amount in that range", excerpt(text)))
}

/// The amount in the largest unit that divides it.
fn bytes_shown(bytes: u64) -> String {
    let unit = BYTE_UNITS.iter().rev().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// Reads a count.
pub(super) fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let count = text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let count =
        count.ok_or_else(|| format!("`{}` is not a whole number; write digits only", excerpt(text)))?;
    if (least..=most).contains(&count) {
        return Ok(count);
    }
    Err(format!("{count} is outside {least} to {most}; choose a number in that range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_a_range() {
        let read = |text| duration(text, Duration::from_millis(1), Duration::from_secs(60));
        assert_eq!(read("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(read("1m"), Ok(Duration::from_secs(60)));
        for text in ["50", "s", "", "1.5s", "-1s", "1 s"] {
            assert!(read(text).unwrap_err().contains("is not a duration"), "{text}");
        }
        for text in ["0s", "61s", "99999999999999999999d"] {
            assert!(read(text).unwrap_err().contains("is outside 1ms to 60s"), "{text}");
        }
    }

    #[test]
    fn amounts_of_memory_are_binary() {
        let read = |text| bytes(text, 1 << 10, 1 << 40);
        assert_eq!(read("65536"), Ok(65_536));
        assert_eq!(read("64KiB"), Ok(65_536));
        assert_eq!(read("512MiB"), Ok(512 << 20));
        for text in ["64KB", "64 KiB", "KiB", "1e3", "", "18446744073709551616", "18014398509481984KiB"] {
            assert!(read(text).unwrap_err().contains("is not a number of bytes"), "{text}");
        }
        assert!(read("1").unwrap_err().contains("is outside 1KiB to 1024GiB"));
        for (bytes, text) in [(0, "0"), (1, "1"), (1_000, "1000"), (65_536, "64KiB"), (1 << 30, "1GiB")] {
            assert_eq!(bytes_shown(bytes), text);
        }
    }

    #[test]
    fn counts_are_digits() {
        assert_eq!(count("5", 1, 10), Ok(5));
        assert!(count("0", 1, 10).unwrap_err().starts_with("0 is outside 1 to 10"));
        for text in ["+5", "5.0", "", "x"] {
            assert!(count(text, 1, 10).unwrap_err().contains("is not a whole number"), "{text}");
        }
    }
}
