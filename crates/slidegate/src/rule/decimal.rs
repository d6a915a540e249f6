//! Exact decimals between 0 and 1, for shares of a limit, without floating point.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::rate::truncated;

const ONE_PPM: u32 = 1_000_000;

/// A decimal from 0 to 1 with at most six places, kept as parts per million.
///
/// ```
/// use slidegate::rule::Decimal;
///
/// let share: Decimal = "0.05".parse()?;
/// assert_eq!(share.of_rounded_up(10_000), 500);
/// # Ok::<(), slidegate::rule::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decimal(u32);

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// One.
    pub const ONE: Self = Self(ONE_PPM);

    /// This share of `units`, rounded up.
    #[must_use]
    pub fn of_rounded_up(self, units: u64) -> u64 {
        let share = (u128::from(units) * u128::from(self.0)).div_ceil(u128::from(ONE_PPM));
        u64::try_from(share).expect("a share of at most 1 is at most the whole")
    }

    /// This share of `units`, rounded down.
    pub(crate) fn of_rounded_down(self, units: u64) -> u64 {
        let share = u128::from(units) * u128::from(self.0) / u128::from(ONE_PPM);
        u64::try_from(share).expect("a share of at most 1 is at most the whole")
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = format!("{}.{:06}", self.0 / ONE_PPM, self.0 % ONE_PPM);
        f.write_str(places.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let malformed = || DecimalError { text: truncated(text) };
        let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let significant = places.trim_end_matches('0');
        if !digits(whole) || !digits(places) || significant.len() > 6 {
            return Err(malformed());
        }
        let millionths = format!("{significant:0<6}").parse().map_err(|_| malformed())?;
        match (whole.trim_start_matches('0'), millionths) {
            ("", _) => Ok(Self(millionths)),
            ("1", 0) => Ok(Self::ONE),
            _ => Err(malformed()),
        }
    }
}

/// The text is not a decimal from 0 to 1 with at most six places.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a decimal from 0 to 1 with at most 6 places; write for example 0.05")]
pub struct DecimalError {
    /// The text, cut at 64 characters.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_decimals() {
        for (text, ppm, shown) in
            [("0", 0, "0"), ("0.05", 50_000, "0.05"), ("0.000001", 1, "0.000001"), ("1", ONE_PPM, "1")]
        {
            assert_eq!(text.parse(), Ok(Decimal(ppm)));
            assert_eq!(Decimal(ppm).to_string(), shown);
        }
        assert_eq!("0.5000000000".parse(), Ok(Decimal(500_000)), "trailing zeros say nothing");
        assert_eq!("01.0".parse(), Ok(Decimal::ONE));
    }

    #[test]
    fn rejects_other_text() {
        for text in ["", ".", ".5", "5.", "-0.1", "1.1", "2", "0.0000001", "1e-3", "NaN", "0,5", "10"] {
            assert!(text.parse::<Decimal>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn shares_are_rounded_up_and_exact_at_the_largest_limit() {
        let millionth: Decimal = "0.000001".parse().unwrap();
        assert_eq!(millionth.of_rounded_up(1), 1);
        assert_eq!(millionth.of_rounded_up(1_000_000_000_001), 1_000_001);
        assert_eq!(Decimal::ONE.of_rounded_up(u64::MAX), u64::MAX);
    }
}
