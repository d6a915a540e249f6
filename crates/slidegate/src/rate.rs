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

/// Names of units and their milliseconds, shortest unit first. The first name is the one that is displayed.
const UNITS_MS: [(&[&str], u64); 5] = [
    (&["ms"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

/// A limit and the window it holds in: 1 to 10^12 units per 1 ms to 400 days.
///
/// Written `LIMIT/WINDOW`, where the window is a number and a unit or a bare unit. Units are `ms s m h d`, and
/// in words `sec second min minute hour day` and their plurals:
///
/// ```
/// use slidegate::Rate;
/// use std::time::Duration;
///
/// let rate: Rate = "9500/24h".parse()?;
/// assert_eq!(rate, Rate::new(9_500, Duration::from_secs(86_400))?);
/// assert_eq!(rate.to_string(), "9500/1d");
/// assert_eq!("60/m".parse::<Rate>()?.window(), Duration::from_secs(60));
/// assert_eq!("60/minute".parse::<Rate>()?.to_string(), "60/1m");
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
            return Err(RateError::Limit { limit: limit.to_string() });
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
        write!(f, "{}/{}", self.limit, format_window(self.window()))
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let malformed = || RateError::Malformed { text: truncated(text) };
        let (limit_text, window_text) = text.split_once('/').ok_or_else(malformed)?;
        let limit = parse_digits(limit_text).ok_or_else(malformed)?;
        let window = parse_window(window_text).ok_or_else(malformed)?;
        // Errors repeat the typed text: a number above u64 has saturated.
        Self::new(limit, window).map_err(|error| match error {
            RateError::Limit { .. } => RateError::Limit { limit: truncated(limit_text) },
            RateError::Window { .. } => RateError::WindowText { text: truncated(window_text) },
            other => other,
        })
    }
}

/// Reads a window as rates write it: `60s`, `1m`, `250ms`, `24hours`, or a bare unit such as `h` or `minute`.
///
/// `None` if the text is not a number and a unit. [`Rate::new`] checks the range.
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
    let (_, unit_ms) = UNITS_MS.iter().find(|(names, _)| names.contains(&unit))?;
    let number = if number.is_empty() { 1 } else { parse_digits(number)? };
    // A number too large for milliseconds in u64 is far above WINDOW_MAX, and stays above it saturated.
    Some(Duration::from_millis(number.saturating_mul(*unit_ms)))
}

/// Decimal digits only: no sign, no separators. A number above u64 saturates and fails the range check.
fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The text as errors repeat it: truncated to 64 characters.
pub(crate) fn truncated(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The duration in the largest unit that divides it; with a fraction if milliseconds do not.
fn format_window(window: Duration) -> String {
    let unit = UNITS_MS.iter().rev().find(|(_, unit_ms)| {
        window.subsec_nanos() % 1_000_000 == 0 && window.as_millis() % u128::from(*unit_ms) == 0
    });
    match unit {
        _ if window.is_zero() => "0s".to_owned(),
        Some((names, unit_ms)) => format!("{}{}", window.as_millis() / u128::from(*unit_ms), names[0]),
        None => format!("{window:?}"),
    }
}

/// Why a rate is invalid.
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
        /// The limit as it was written, cut at 64 characters.
        limit: String,
    },
    /// The window is shorter than [`WINDOW_MIN`] or longer than [`WINDOW_MAX`].
    #[error("window: {} is outside 1 ms to 400 d; choose a window in that range", format_window(*window))]
    Window {
        /// The window asked for.
        window: Duration,
    },
    /// The window that was written is shorter than [`WINDOW_MIN`] or longer than [`WINDOW_MAX`].
    #[error("window: `{text}` is outside 1 ms to 400 d; choose a window in that range")]
    WindowText {
        /// The window as it was written, cut at 64 characters.
        text: String,
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
            ("9500/24hours", 9_500, 86_400_000),
            ("5/minute", 5, 60_000),
            ("5/90seconds", 5, 90_000),
            ("1000000000000/400d", LIMIT_MAX, 400 * 86_400_000),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.limit(), rate.window_us()), (limit, window_ms * 1_000), "{text}");
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate, "{text}");
        }
    }

    #[test]
    fn every_unit_has_its_common_names() {
        for (names, window_ms) in [
            ("ms", 1),
            ("s sec secs second seconds", 1_000),
            ("m min mins minute minutes", 60_000),
            ("h hour hours", 3_600_000),
            ("d day days", 86_400_000),
        ] {
            for name in names.split(' ') {
                assert_eq!(parse_window(name), Some(Duration::from_millis(window_ms)), "{name}");
                let three = parse_window(&format!("3{name}"));
                assert_eq!(three, Some(Duration::from_millis(3 * window_ms)), "3{name}");
            }
        }
        assert_eq!("7/2mins".parse::<Rate>().unwrap().to_string(), "7/2m", "one form is displayed");
    }

    #[test]
    fn grammar_rejects_text_that_is_not_a_rate() {
        let words = ["5/1 minute", "5/millisecond", "5/minutess"];
        let short = [
            "", "banana", "5", "/m", "5/", "-3/m", "+3/m", "5/m/m", "5/1", "5/1w", "5 /m", "5/ 1m", "5/-1m",
            "5.5/m", "5/1.5m", "1_000/m", "٣/m", "5/Minute", "5/hr", "5/hs", "5/week",
        ];
        for text in short.into_iter().chain(words) {
            assert!(matches!(text.parse::<Rate>(), Err(RateError::Malformed { .. })), "{text:?}");
        }
    }

    /// The error for `5/500d` showed `43200000s`, and a limit of 23 digits showed the largest u64.
    #[test]
    fn errors_name_the_field_and_repeat_what_was_typed() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error("5/500d"), "window: `500d` is outside 1 ms to 400 d; choose a window in that range");
        for (text, field) in [
            ("5/0s", "window: `0s` is outside"),
            ("5/401d", "window: `401d` is outside"),
            ("5/99999hours", "window: `99999hours` is"),
            ("5/99999999999999999999999d", "window: `99999999999999999999999d` is"),
            ("0/m", "limit: 0 units"),
            ("1000000000001/m", "limit: 1000000000001 units"),
            ("99999999999999999999999/m", "limit: 99999999999999999999999 units"),
        ] {
            assert!(error(text).starts_with(field), "{text}");
        }
        assert!(error("5/m/m").contains("write LIMIT/WINDOW"));
        let flood = "9".repeat(1_000);
        assert!(error(&format!("{flood}/m")).starts_with(&format!("limit: {} units", &flood[..64])));
        assert!(error(&format!("5/{flood}d")).contains(&format!("`{}`", &flood[..64])));
    }

    #[test]
    fn durations_of_callers_are_shown_in_their_unit() {
        let error = |window| Rate::new(5, window).unwrap_err().to_string();
        assert!(error(Duration::from_secs(500 * 86_400)).starts_with("window: 500d is outside"));
        assert!(error(Duration::from_secs(500 * 86_400 + 1)).starts_with("window: 43200001s is outside"));
        assert!(error(Duration::ZERO).starts_with("window: 0s is outside"));
        assert!(error(Duration::from_nanos(1)).starts_with("window: 1ns is outside"));
        let odd = Duration::from_micros(1_500);
        assert_eq!(Rate::new(1, odd), Err(RateError::WindowPart { window: odd }));
        assert!(error(odd).starts_with("window: 1.5ms is not a whole number"));
        assert!(error(Duration::MAX).starts_with("window: 18446744073709551615.999999999s is outside"));
    }
}
