//! What a rule says about the case that its store does not answer.

use super::Decimal;

/// The answer when the store fails.
///
/// The in-process store fails only at its memory budget; shared stores fail with their network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStoreError {
    /// Refuse: the limit holds, requests are lost.
    #[default]
    Deny,
    /// Admit: no request is lost, the limit does not hold.
    Allow,
    /// Limit within this process, at this share of the limit.
    Local(Decimal),
}
