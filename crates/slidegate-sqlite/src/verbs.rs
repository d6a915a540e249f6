//! The verbs of the store: each runs on the store's thread, or on the caller's where that may be blocked.

use std::sync::Arc;

use slidegate::store::{Call, LimitUsage, LocalStore, SECRET_BYTES, Store, StoreError, Update, UpdateError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Rule};

use crate::engine::CallContext;
use crate::file_error::FileError;
use crate::lock_wait::LockWait;
use crate::owned_admission::{AdmissionAnswers, OwnedCharge};
use crate::store::SqliteStore;

impl<C: Clock + 'static> SqliteStore<C> {
    /// Executes `work` until the deadline of the call.
    async fn execute<T: Send + 'static>(
        &self,
        call: Call,
        work: impl FnOnce(&mut CallContext<'_, '_, C>) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        if call.may_block() {
            let (engine, lock_wait) = (&*self.engine, &mut self.engine.lock_wait(call)?);
            return work(&mut CallContext { engine, lock_wait, call });
        }
        let (deadline, engine) = (self.engine.deadline(call)?, Arc::clone(&self.engine));
        let execute =
            move |lock_wait: &mut LockWait<'_>| work(&mut CallContext { engine: &engine, lock_wait, call });
        self.worker.execute(deadline, execute).await
    }
}

impl<C: Clock + 'static> LocalStore for SqliteStore<C> {}

impl<C: Clock + 'static> Store for SqliteStore<C> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let charges = OwnedCharge::charges_of(admission);
        let answers =
            self.execute(call, move |context| context.check(&OwnedCharge::charges(&charges))).await?;
        Ok(answers.decision(admission))
    }

    /// One deadline and one place in the queue for all.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let batch: Vec<_> = admissions.iter().map(OwnedCharge::charges_of).collect();
        let decision =
            |(answers, admission): (Result<AdmissionAnswers, FileError>, _)| Ok(answers?.decision(admission));
        match self.execute(call, move |context| Ok(context.check_batch(&batch))).await {
            Ok(answers) => answers.into_iter().zip(admissions).map(decision).collect(),
            Err(error) => admissions.iter().map(|_| Err(error.clone().into())).collect(),
        }
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let charges = OwnedCharge::charges_of(admission);
        let answers =
            self.execute(call, move |context| context.peek(&OwnedCharge::charges(&charges))).await?;
        Ok(answers.decision(admission))
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        match update {
            Update::Refund(receipt) => {
                let receipt = receipt.clone();
                Ok(self.execute(call, move |context| context.refund(&receipt)).await??)
            }
            Update::Settle(receipt, actual) => {
                let receipt = receipt.clone();
                Ok(self.execute(call, move |context| context.settle(&receipt, actual)).await??)
            }
            Update::Credit(charge) => {
                let charge = OwnedCharge::of(&charge);
                Ok(self.execute(call, move |context| context.credit(&charge.charge())).await?)
            }
            Update::Reset(rule, key) => {
                let state = OwnedCharge::of(&Charge::new(rule, key, 0));
                Ok(self.execute(call, move |context| context.reset(&state.charge())).await?)
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let state = OwnedCharge::of(&Charge::new(rule, key, 0));
        Ok(self.execute(call, move |context| context.inspect(&state.charge())).await?)
    }

    /// Changes a few hundred keys per transaction, so that other calls run in between. Charges made meanwhile under the
    /// old rule stay under it.
    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let (rule, mut after) = (Arc::new(rule.clone()), String::new());
        loop {
            let rule = Arc::clone(&rule);
            match self.execute(call, move |context| context.change_some(&rule, &after)).await? {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        Ok(self.execute(Call::now(), |context| context.secret().map(Some)).await?)
    }

    fn wait_clock(&self) -> &dyn Clock {
        // The wall clock may be set back while callers wait.
        if self.engine.has_custom_clock { &self.engine.clock } else { &*self.engine.monotonic }
    }
}
