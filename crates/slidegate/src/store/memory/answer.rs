//! Where the answer to a single charge goes.
//!
//! A decision is written once, in its final place. A copy of what was just written takes as long as deciding: the
//! processor has to wait for the separate writes before it can read them together.

use std::iter;

use crate::decision::Decision;
use crate::error::StoreError;

/// Takes the answer to one charge.
pub(super) trait Answer<'a> {
    type Output;

    /// Calls `decide` when the place of the decision is known, so that it is written there.
    fn decided(self, decide: impl FnOnce() -> Decision<'a>) -> Self::Output;

    fn failed(self, error: StoreError) -> Self::Output;
}

/// Returns the decision; if the store fails, the result of the function.
pub(super) struct Returned<F>(pub(super) F);

impl<'a, E, F: FnOnce(StoreError) -> Result<Decision<'a>, E>> Answer<'a> for Returned<F> {
    type Output = Result<Decision<'a>, E>;

    #[inline]
    fn decided(self, decide: impl FnOnce() -> Decision<'a>) -> Self::Output {
        Ok(decide())
    }

    fn failed(self, error: StoreError) -> Self::Output {
        self.0(error)
    }
}

/// Appends the decision, or the error, to a list.
pub(super) struct Appended<'v, 'a, E>(pub(super) &'v mut Vec<Result<Decision<'a>, E>>);

impl<'a, E: From<StoreError>> Answer<'a> for Appended<'_, 'a, E> {
    type Output = ();

    #[inline]
    fn decided(self, decide: impl FnOnce() -> Decision<'a>) {
        // `push` takes a finished value, and would copy it.
        self.0.extend(iter::once_with(|| Ok(decide())));
    }

    fn failed(self, error: StoreError) {
        self.0.push(Err(error.into()));
    }
}
