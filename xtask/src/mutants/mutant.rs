//! One bug, and what kind of bug it is.

use std::fmt;

/// In `file`, `replacement` stands for `original`, which occurs there exactly once.
#[derive(Debug)]
pub(super) struct Mutant {
    /// `algorithm/what-is-wrong`; of other crates `crate/part/what-is-wrong`
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
    /// Part of a step is done without the rest.
    Atomicity,
    /// A key lives too short or too long.
    Expiry,
    /// A changed rule is not taken over, or its receipts stay valid.
    LiveChange,
    /// Products above 2^53 in Lua.
    WideNumbers,
    /// The state of another rule or key is used.
    WrongState,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::OffByOne => "<= for <",
            Self::NewestForOldest => "newest for oldest",
            Self::ChargeOnDeny => "charge on deny",
            Self::RoundingToMs => "rounding to ms",
            Self::LostRefund => "lost refund",
            Self::Atomicity => "atomicity",
            Self::Expiry => "expiry",
            Self::LiveChange => "live change",
            Self::WideNumbers => "wide numbers",
            Self::WrongState => "wrong state",
        })
    }
}
