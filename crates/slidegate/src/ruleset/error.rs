//! Why a request does not resolve.

use thiserror::Error;

use crate::key::KeyError;

/// Why a request does not resolve. Nothing was charged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No rule has that name.
    #[error("rule: `{name}` is unknown; {remedy}")]
    UnknownRule {
        /// The first characters of the name.
        name: String,
        /// The name that was probably meant, or some of those there are.
        remedy: String,
    },
    /// A request brought its own rule where only named ones are allowed.
    #[error(
        "rule: inline rules are not allowed; add `inline_rules: true` to {forbidden_by} or name a rule of it"
    )]
    InlineForbidden {
        /// What forbids them: see [`RuleSet::forbid_inline`](super::RuleSet::forbid_inline).
        forbidden_by: String,
    },
    /// The text is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
}
