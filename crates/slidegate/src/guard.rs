//! What answers when the store does not.

use crate::charge::Admission;
use crate::decision::Decision;
use crate::rule::OnStoreError;
use crate::store::{CheckError, OnFailure, Outcome, StoreError};

/// The answer that the rules of an admission give for a store that failed: the strictest decides. Shadow
/// rules take no part, unless there are no others.
///
/// [`OnStoreError::Local`] refuses where the store is this process's own memory: there is no other to limit
/// with.
pub(crate) struct ByPolicy;

impl OnFailure for ByPolicy {
    type Error = CheckError;

    #[cold]
    fn answer<'a>(admission: &Admission<'a>, error: StoreError) -> Result<Outcome<'a>, CheckError> {
        let mut enforced = admission.asks().iter().filter(|ask| !ask.rule.shadow());
        if enforced.all(|ask| ask.rule.on_store_error() == OnStoreError::Allow) {
            Ok(Outcome { decision: Decision::degraded_admission(admission.rules()), receipt: None })
        } else {
            Err(error.into())
        }
    }
}
