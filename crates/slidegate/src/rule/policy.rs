//! What a rule says about the case that its store does not answer.

use super::Decimal;

/// The answer when the store fails.
///
/// A rule carries it for stores that can fail, as shared ones do with their network. The in-process store
/// does not fail, so nothing acts on it there.
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
