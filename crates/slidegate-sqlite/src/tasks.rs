//! The verbs: each is a job for the thread of the store, or for the caller's where that may be blocked.

use std::sync::Arc;

use slidegate::store::{Call, LimitUsage, LocalStore, SECRET_BYTES, Store, StoreError, Update, UpdateError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Rule};

use crate::answers::{Answers, OwnedCharge};
use crate::engine::Turn;
use crate::failure::Failure;
use crate::patience::Patience;
use crate::store::SqliteStore;

impl<C: Clock + 'static> SqliteStore<C> {
    /// Executes `work` within the deadline of a call that is made now.
    async fn execute<T: Send + 'static>(
        &self,
        call: Call,
        work: impl FnOnce(&mut Turn<'_, '_, C>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if call.may_block() {
            let (engine, patience) = (&*self.engine, &mut self.engine.patience(call)?);
            return work(&mut Turn { engine, patience, call });
        }
        let (deadline, engine) = (self.engine.deadline(call)?, Arc::clone(&self.engine));
        let execute = move |patience: &mut Patience<'_>| work(&mut Turn { engine: &engine, patience, call });
        self.worker.execute(deadline, execute).await
    }
}

impl<C: Clock + 'static> LocalStore for SqliteStore<C> {}

impl<C: Clock + 'static> Store for SqliteStore<C> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asks = OwnedCharge::asks_of(admission);
        let answers = self.execute(call, move |turn| turn.check(&OwnedCharge::charges(&asks))).await?;
        Ok(answers.decision(admission))
    }

    /// All within one deadline, and in one place of the queue.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let batch: Vec<_> = admissions.iter().map(OwnedCharge::asks_of).collect();
        let decision = |(answers, admission): (Result<Answers, Failure>, _)| Ok(answers?.decision(admission));
        match self.execute(call, move |turn| Ok(turn.check_batch(&batch))).await {
            Ok(answers) => answers.into_iter().zip(admissions).map(decision).collect(),
            Err(failure) => admissions.iter().map(|_| Err(failure.clone().into())).collect(),
        }
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asks = OwnedCharge::asks_of(admission);
        let answers = self.execute(call, move |turn| turn.peek(&OwnedCharge::charges(&asks))).await?;
        Ok(answers.decision(admission))
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        match update {
            Update::Refund(receipt) => {
                let receipt = receipt.clone();
                Ok(self.execute(call, move |turn| turn.refund(&receipt)).await??)
            }
            Update::Settle(receipt, actual) => {
                let receipt = receipt.clone();
                Ok(self.execute(call, move |turn| turn.settle(&receipt, actual)).await??)
            }
            Update::Credit(charge) => {
                let charge = OwnedCharge::of(&charge);
                Ok(self.execute(call, move |turn| turn.credit(&charge.charge())).await?)
            }
            Update::Reset(rule, key) => {
                let state = OwnedCharge::of(&Charge::new(rule, key, 0));
                Ok(self.execute(call, move |turn| turn.reset(&state.charge())).await?)
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let state = OwnedCharge::of(&Charge::new(rule, key, 0));
        Ok(self.execute(call, move |turn| turn.inspect(&state.charge())).await?)
    }

    /// A few hundred keys at a time, so that other calls have their turn in between: what is charged meanwhile under
    /// the old rule may still go on under it.
    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let (rule, mut after) = (Arc::new(rule.clone()), String::new());
        loop {
            let rule = Arc::clone(&rule);
            match self.execute(call, move |turn| turn.change_some(&rule, &after)).await? {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        Ok(self.execute(Call::now(), |turn| turn.secret().map(Some)).await?)
    }

    fn wait_clock(&self) -> &dyn Clock {
        // The wall clock may be set back while callers wait.
        if self.engine.is_own_clock { &self.engine.clock } else { &*self.engine.monotonic }
    }
}
