//! Errors of building a rule.

use thiserror::Error;

use crate::rate::{Rate, RateError};

/// Longest rule name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Most limits of one rule.
pub const LIMITS_MAX: usize = 16;
/// Most shards of a key.
pub const SHARDS_MAX: u16 = 256;

/// Why a rule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The name is empty or longer than [`NAME_BYTES_MAX`].
    #[error("rule: a name of {bytes} bytes; use 1 to {NAME_BYTES_MAX}")]
    NameLength {
        /// Length of the name.
        bytes: usize,
    },
    /// The name has a character that store keys or headers cannot contain.
    #[error(
        "rule `{name}`: the name has {character:?}; use letters, digits and punctuation other than \" \\ {{ }}"
    )]
    NameCharacter {
        /// The name.
        name: String,
        /// The first such character.
        character: char,
    },
    /// The text of its limit is not a rate.
    #[error("rule `{rule}`: {error}")]
    Rate {
        /// The rule.
        rule: String,
        /// What is wrong with it.
        error: RateError,
    },
    /// The name begins like that of an inline rule: both would share a state.
    #[error(
        "rule `{name}`: the name begins with `{algorithm}/`, which belongs to inline rules; choose another \
         beginning, for example `/{name}`"
    )]
    NameReserved {
        /// The name.
        name: String,
        /// The algorithm that it begins with.
        algorithm: &'static str,
    },
    /// No limit, or more than [`LIMITS_MAX`].
    #[error("rule `{rule}`: limits: {count} given; give 1 to {LIMITS_MAX}, for example 60/1m")]
    LimitCount {
        /// The rule.
        rule: String,
        /// How many were given.
        count: usize,
    },
    /// Two limits have the same window; the larger could never bind.
    #[error("rule `{rule}`: limits: {first} and {second} have the same window; keep the smaller")]
    DuplicateWindow {
        /// The rule.
        rule: String,
        /// The first of the two.
        first: Rate,
        /// The second of the two.
        second: Rate,
    },
    /// The set of another limiter holds the requests of one limit, under the name of the whole key.
    #[error(
        "rule `{rule}`: take_over: is only for sliding-log with one limit and without shards; write `limit` instead of \
         `limits`, keep the default algorithm and leave out shards, or remove take_over"
    )]
    TakeOver {
        /// The rule.
        rule: String,
    },
    /// No shard, or more than [`SHARDS_MAX`].
    #[error("rule `{rule}`: shards: {shards} given; give 1 to {SHARDS_MAX}")]
    ShardCount {
        /// The rule.
        rule: String,
        /// How many were given.
        shards: u16,
    },
    /// More shards than units to distribute among them.
    #[error(
        "rule `{rule}`: shards: {shards} leave none of the {units} units of {rate} to each shard; give at most {units} \
         shards, or raise the limit"
    )]
    ShardUnits {
        /// The rule.
        rule: String,
        /// How many were given.
        shards: u16,
        /// The limit.
        rate: Rate,
        /// The units that it enforces.
        units: u64,
    },
    /// A headroom of 1 leaves no units.
    #[error("rule `{rule}`: headroom: 1 leaves no units; give a decimal below 1, for example 0.05")]
    Headroom {
        /// The rule.
        rule: String,
    },
}
