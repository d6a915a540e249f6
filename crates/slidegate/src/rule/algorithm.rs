//! The names and parameters of the six algorithms, as users write them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use thiserror::Error;

use crate::rate::truncated;

/// Most sub-buckets of a `sliding-buckets` window.
pub const BUCKETS_MAX: u16 = 4_096;
/// Fewest entries of a `compact-log`.
pub const ENTRIES_MIN: u16 = 4;
/// Most entries of a `compact-log`.
pub const ENTRIES_MAX: u16 = 4_096;

/// The algorithm of a window. What each one guarantees and costs: [`crate::algorithm`].
///
/// ```
/// use slidegate::Algorithm;
///
/// assert_eq!("sliding-log".parse::<Algorithm>()?, Algorithm::SlidingLog);
/// assert_eq!(Algorithm::default().name(), "sliding-log");
/// # Ok::<(), slidegate::rule::AlgorithmError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// Every admitted request's time and cost: exact.
    #[default]
    SlidingLog,
    /// A log that merges neighbours once it holds more than this many entries: never over.
    CompactLog(Entries),
    /// A ring of sub-buckets with a running sum: never over with [`Edge::Full`].
    SlidingBuckets(Buckets, Edge),
    /// Two adjacent fixed windows, the older weighted by its overlap: up to 2L-1.
    SlidingCounter,
    /// One counter per clock-aligned window: up to 2L.
    FixedWindow,
    /// Token bucket as one timestamp: up to 2L-1.
    Gcra,
}

impl Algorithm {
    /// All six, with default parameters, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::SlidingLog,
        Self::CompactLog(Entries::DEFAULT),
        Self::SlidingBuckets(Buckets::DEFAULT, Edge::Full),
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::Gcra,
    ];

    /// The name in configuration files, requests and stored states.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SlidingLog => "sliding-log",
            Self::CompactLog(_) => "compact-log",
            Self::SlidingBuckets(..) => "sliding-buckets",
            Self::SlidingCounter => "sliding-counter",
            Self::FixedWindow => "fixed-window",
            Self::Gcra => "gcra",
        }
    }

    /// Its code in stored bytes, which is never reused for another algorithm, and its parameter.
    ///
    /// ```
    /// use slidegate::Algorithm;
    ///
    /// for algorithm in Algorithm::ALL {
    ///     let (code, parameter) = algorithm.code();
    ///     assert_eq!(Algorithm::of_code(code, parameter), Some(algorithm));
    /// }
    /// assert_eq!(Algorithm::of_code(0, 0), None);
    /// ```
    #[must_use]
    pub fn code(self) -> (u8, u64) {
        match self {
            Self::SlidingLog => (1, 0),
            Self::CompactLog(entries) => (2, entries.get().into()),
            Self::SlidingBuckets(buckets, Edge::Full) => (3, buckets.get().into()),
            Self::SlidingBuckets(buckets, Edge::Interpolated) => (4, buckets.get().into()),
            Self::SlidingBuckets(buckets, Edge::Dropped) => (5, buckets.get().into()),
            Self::SlidingCounter => (6, 0),
            Self::FixedWindow => (7, 0),
            Self::Gcra => (8, 0),
        }
    }

    /// The algorithm with this code and parameter; `None` if there is none.
    #[must_use]
    pub fn of_code(code: u8, parameter: u64) -> Option<Self> {
        let buckets = |edge| Some(Self::SlidingBuckets(Buckets::new(parameter).ok()?, edge));
        match code {
            1 => Some(Self::SlidingLog),
            2 => Some(Self::CompactLog(Entries::new(parameter).ok()?)),
            3 => buckets(Edge::Full),
            4 => buckets(Edge::Interpolated),
            5 => buckets(Edge::Dropped),
            6 => Some(Self::SlidingCounter),
            7 => Some(Self::FixedWindow),
            8 => Some(Self::Gcra),
            _ => None,
        }
    }

    /// The most units that any traffic can get admitted within one window, at a limit of `limit` units.
    ///
    /// This is the documented bound; on windows so short that a bucket has fewer
    /// microseconds than twice the limit the attainable maximum is lower.
    #[must_use]
    pub fn admitted_max(self, limit: u64) -> u64 {
        match self {
            Self::SlidingLog | Self::CompactLog(_) | Self::SlidingBuckets(_, Edge::Full) => limit,
            Self::SlidingBuckets(_, Edge::Interpolated) | Self::SlidingCounter | Self::Gcra => 2 * limit - 1,
            Self::SlidingBuckets(_, Edge::Dropped) | Self::FixedWindow => 2 * limit,
        }
    }
}

/// The name, followed by parameters that differ from the defaults: `sliding-buckets;buckets=30`.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::CompactLog(entries) if entries != Entries::DEFAULT => {
                write!(f, ";entries={}", entries.get())
            }
            Self::SlidingBuckets(buckets, edge) => {
                if buckets != Buckets::DEFAULT {
                    write!(f, ";buckets={}", buckets.get())?;
                }
                if edge != Edge::Full {
                    write!(f, ";edge={}", edge.name())?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;

    /// Reads a name; parameters take their defaults.
    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| AlgorithmError::Unknown { text: truncated(text) })
    }
}

/// How `sliding-buckets` counts the bucket that lies partly outside the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Edge {
    /// In full: never over, early by what arrived in one bucket at most.
    #[default]
    Full,
    /// By the share of it that lies inside: up to 2L-1.
    Interpolated,
    /// Not at all, as the textbook ring does: up to 2L.
    Dropped,
}

impl Edge {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Full, Self::Interpolated, Self::Dropped];

    /// The name, as configuration spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Interpolated => "interpolated",
            Self::Dropped => "dropped",
        }
    }
}

impl FromStr for Edge {
    type Err = AlgorithmError;

    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        Self::ALL
            .into_iter()
            .find(|edge| edge.name() == text)
            .ok_or_else(|| AlgorithmError::UnknownEdge { text: truncated(text) })
    }
}

/// Number of sub-buckets of a `sliding-buckets` window: 1 to 4,096, 60 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buckets(u16);

impl Buckets {
    /// 60: a window of a minute in seconds, of an hour in minutes.
    pub const DEFAULT: Self = Self(60);

    /// Checks the number.
    pub fn new(count: u64) -> Result<Self, AlgorithmError> {
        within(1..=BUCKETS_MAX, count).map(Self).ok_or(AlgorithmError::Buckets { count })
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

/// Most entries that a `compact-log` keeps: 4 to 4,096, 128 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entries(u16);

impl Entries {
    /// 128: exact for every limit up to 128, early by at most 1.6 % of the limit beyond.
    pub const DEFAULT: Self = Self(128);

    /// Checks the number.
    pub fn new(count: u64) -> Result<Self, AlgorithmError> {
        within(ENTRIES_MIN..=ENTRIES_MAX, count).map(Self).ok_or(AlgorithmError::Entries { count })
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

fn within(range: RangeInclusive<u16>, count: u64) -> Option<u16> {
    u16::try_from(count).ok().filter(|count| range.contains(count))
}

/// Why an algorithm or its parameter is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// No algorithm has that name.
    #[error(
        "algorithm: `{text}` is unknown; choose sliding-log, compact-log, sliding-buckets, sliding-counter, \
         fixed-window or gcra"
    )]
    Unknown {
        /// The name, cut at 64 characters.
        text: String,
    },
    /// No edge has that name.
    #[error("edge: `{text}` is unknown; choose full, interpolated or dropped")]
    UnknownEdge {
        /// The name, cut at 64 characters.
        text: String,
    },
    /// The number of buckets is out of range.
    #[error("buckets: {count} is outside 1 to {BUCKETS_MAX}; 60 serve most windows")]
    Buckets {
        /// The number asked for.
        count: u64,
    },
    /// The number of entries is out of range.
    #[error("entries: {count} is outside {ENTRIES_MIN} to {ENTRIES_MAX}; 128 serve most limits")]
    Entries {
        /// The number asked for.
        count: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.to_string(), algorithm.name(), "defaults are not spelled out");
        }
        for edge in Edge::ALL {
            assert_eq!(edge.name().parse(), Ok(edge));
        }
    }

    #[test]
    fn parameters_are_checked_and_errors_name_them() {
        assert!(Buckets::new(0).unwrap_err().to_string().starts_with("buckets: 0 "));
        assert!(Buckets::new(4_097).is_err() && Buckets::new(u64::MAX).is_err());
        assert!(Buckets::new(1).is_ok() && Buckets::new(4_096).is_ok());
        assert!(Entries::new(3).unwrap_err().to_string().starts_with("entries: 3 "));
        assert!(Entries::new(4).is_ok() && Entries::new(4_096).is_ok() && Entries::new(4_097).is_err());
        let error = "token-bucket".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("`token-bucket`") && error.contains("gcra"), "{error}");
        assert!("half".parse::<Edge>().unwrap_err().to_string().starts_with("edge: `half`"));
    }

    #[test]
    fn other_parameters_show_in_the_text() {
        let buckets = Algorithm::SlidingBuckets(Buckets::new(30).unwrap(), Edge::Dropped);
        assert_eq!(buckets.to_string(), "sliding-buckets;buckets=30;edge=dropped");
        assert_eq!(Algorithm::CompactLog(Entries::new(16).unwrap()).to_string(), "compact-log;entries=16");
    }
}
