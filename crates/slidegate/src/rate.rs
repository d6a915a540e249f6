//! Rates: how many units in how long a window, written `LIMIT/WINDOW`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// Largest limit, in units.
pub const LIMIT_MAX: u64 = 1_000_000_000_000;
/// Shortest window.
pub const WINDOW_MIN: Duration = Duration::from_millis(1);
/// Longest window: 400 days.
pub const WINDOW_MAX: Duration = Duration::from_secs(400 * 86_400);

const UNITS_MS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A limit and the window it holds in: 1 to 10^12 units per 1 ms to 400 days.
///
/// Written `LIMIT/WINDOW`, where the window is a number and a unit (`ms s m h d`) or a bare unit:
///
/// ```
/// use slidegate::Rate;
/// use std::time::Duration;
///
/// let rate: Rate = "9500/24h".parse()?;
/// assert_eq!(rate, Rate::new(9_500, Duration::from_secs(86_400))?);
/// assert_eq!(rate.to_string(), "9500/1d");
/// assert_eq!("60/m".parse::<Rate>()?.window(), Duration::from_secs(60));
/// # Ok::<(), slidegate::RateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    limit: u64,
    window_us: u64,
}

impl Rate {
    /// `limit` units per `window`; the window is a whole number of milliseconds.
    pub fn new(limit: u64, window: Duration) -> Result<Self, RateError> {
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(RateError::Limit { limit });
        }
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&window) {
            return Err(RateError::Window { window });
        }
        if window.subsec_nanos() % 1_000_000 != 0 {
            return Err(RateError::WindowPart { window });
        }
        let window_us = u64::try_from(window.as_micros()).expect("400 days of microseconds fit u64");
        Ok(Self { limit, window_us })
    }

    /// Units per window.
    #[must_use]
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Length of the window.
    #[must_use]
    pub fn window(self) -> Duration {
        Duration::from_micros(self.window_us)
    }

    /// Length of the window in microseconds.
    #[must_use]
    #[inline]
    pub fn window_us(self) -> u64 {
        self.window_us
    }
}

impl fmt::Display for Rate {
    /// Writes the window in the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window_ms = self.window_us / 1_000;
        let (unit, unit_ms) = *UNITS_MS
            .iter()
            .rev()
            .find(|(_, unit_ms)| window_ms % unit_ms == 0)
            .expect("a window is a whole number of milliseconds");
        write!(f, "{}/{}{unit}", self.limit, window_ms / unit_ms)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let malformed = || RateError::Malformed { text: text.chars().take(64).collect() };
        let (limit, window) = text.split_once('/').ok_or_else(malformed)?;
        let limit = parse_digits(limit).ok_or_else(malformed)?;
        let window = parse_window(window).ok_or_else(malformed)?;
        Self::new(limit, window)
    }
}

/// Reads a window as rates write it: `60s`, `1m`, `250ms`, or a bare unit such as `h`.
///
/// `None` if the text is not a number and a unit; whether a rate can have such a window is
/// [`Rate::new`]'s to say.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(slidegate::rate::parse_window("5m"), Some(Duration::from_secs(300)));
/// assert_eq!(slidegate::rate::parse_window("5 minutes"), None);
/// ```
#[must_use]
pub fn parse_window(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS_MS.iter().find(|(name, _)| *name == unit)?;
    let number = if number.is_empty() { 1 } else { parse_digits(number)? };
    // A number too large for milliseconds in u64 is far above WINDOW_MAX, and stays above it saturated.
    Some(Duration::from_millis(number.saturating_mul(*unit_ms)))
}

/// Decimal digits only: no sign, no separators; what does not fit u64 saturates and is refused by range.
fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Why a rate cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RateError {
    /// The text is not of the form `LIMIT/WINDOW`.
    #[error(
        "limit: `{text}` is not a rate; write LIMIT/WINDOW with a window in ms, s, m, h or d, for example 60/1m"
    )]
    Malformed {
        /// The text, cut at 64 characters.
        text: String,
    },
    /// The limit is 0 or above [`LIMIT_MAX`].
    #[error("limit: {limit} units are outside 1 to {LIMIT_MAX}; choose a limit in that range")]
    Limit {
        /// The limit asked for.
        limit: u64,
    },
    /// The window is shorter than [`WINDOW_MIN`] or longer than [`WINDOW_MAX`].
    #[error("window: {window:?} is outside 1 ms to 400 d; choose a window in that range")]
    Window {
        /// The window asked for.
        window: Duration,
    },
    /// The window has a part below one millisecond.
    #[error("window: {window:?} is not a whole number of milliseconds; round it to milliseconds")]
    WindowPart {
        /// The window asked for.
        window: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_accepts_numbers_and_bare_units() {
        for (text, limit, window_ms) in [
            ("60/1m", 60, 60_000),
            ("60/m", 60, 60_000),
            ("1/1ms", 1, 1),
            ("5/250ms", 5, 250),
            ("9500/24h", 9_500, 86_400_000),
            ("1000000000000/400d", LIMIT_MAX, 400 * 86_400_000),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.limit(), rate.window_us()), (limit, window_ms * 1_000), "{text}");
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate, "{text}");
        }
    }

    #[test]
    fn grammar_refuses_what_is_not_a_rate() {
        for text in [
            "", "banana", "5", "/m", "5/", "-3/m", "+3/m", "5/m/m", "5/1", "5/1w", "5 /m", "5/ 1m", "5/-1m",
            "5.5/m", "5/1.5m", "1_000/m", "٣/m",
        ] {
            assert!(matches!(text.parse::<Rate>(), Err(RateError::Malformed { .. })), "{text:?}");
        }
    }

    #[test]
    fn ranges_are_checked_and_named() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert!(error("0/m").starts_with("limit: 0 units"));
        assert!(error("1000000000001/m").starts_with("limit: 1000000000001 units"));
        assert!(error("99999999999999999999999/m").starts_with("limit: 18446744073709551615 units"));
        assert!(error("5/0s").starts_with("window: 0ns"));
        assert!(error("5/401d").starts_with("window: "));
        assert!(error("5/99999999999999999999999d").starts_with("window: "));
        assert!(error("5/m/m").contains("write LIMIT/WINDOW"));
        let odd = Duration::from_micros(1_500);
        assert_eq!(Rate::new(1, odd), Err(RateError::WindowPart { window: odd }));
    }
}
