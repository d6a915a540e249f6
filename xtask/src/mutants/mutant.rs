//! One bug, and what kind of bug it is.

use std::fmt;

/// In `file`, `replacement` stands for `original`, which occurs there exactly once.
#[derive(Debug)]
pub(super) struct Mutant {
    /// `algorithm/what-is-wrong`
    pub(super) name: &'static str,
    pub(super) class: Class,
    pub(super) file: &'static str,
    pub(super) original: &'static str,
    pub(super) replacement: &'static str,
}

/// The bugs that limiters really have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    OffByOne,
    NewestForOldest,
    ChargeOnDeny,
    RoundingToMs,
    LostRefund,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::OffByOne => "<= for <",
            Self::NewestForOldest => "newest for oldest",
            Self::ChargeOnDeny => "charge on deny",
            Self::RoundingToMs => "rounding to ms",
            Self::LostRefund => "lost refund",
        })
    }
}
