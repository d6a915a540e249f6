//! The verbs as futures, executed by the thread of the store.

use std::sync::Arc;

use slidegate::store::{Call, CheckError, LimitUsage, ReturnError, SECRET_BYTES, Store, StoreError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Receipt, Rule};

use crate::answers::{OwnedAsks, OwnedKey};
use crate::blocking::{credit_of, decisions};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::patience::Patience;
use crate::store::SqliteStore;

impl<C: Clock + 'static> SqliteStore<C> {
    /// Executes `work` on the thread of the store, within the deadline of a call that is made now.
    async fn execute<T: Send + 'static>(
        &self,
        call: Call,
        work: impl FnOnce(&Engine<C>, &mut Patience<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (deadline, engine) = (self.engine.deadline(call)?, Arc::clone(&self.engine));
        self.worker.execute(deadline, move |patience| work(&engine, patience)).await
    }
}

impl<C: Clock + 'static> Store for SqliteStore<C> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asks = OwnedAsks::of(admission);
        let answers =
            self.execute(call, move |engine, patience| engine.check(patience, call, &asks.charges()));
        Ok(answers.await?.decision(admission))
    }

    /// All within one deadline, and in one place of the queue.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let batch: Vec<_> = admissions.iter().map(OwnedAsks::of).collect();
        let answers = self.execute(call, move |engine, patience| {
            let batch: Vec<_> = batch.iter().map(OwnedAsks::charges).collect();
            Ok(engine.check_batch(patience, call, batch.iter().map(|asks| &**asks)))
        });
        decisions(admissions, answers.await)
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asks = OwnedAsks::of(admission);
        let answers =
            self.execute(call, move |engine, patience| engine.peek(patience, call, &asks.charges()));
        Ok(answers.await?.decision(admission))
    }

    async fn refund(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        let receipt = receipt.clone();
        let applied = self.execute(call, move |engine, patience| engine.refund(patience, call, &receipt));
        Ok(applied.await.map_err(StoreError::from)??)
    }

    async fn settle(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        let receipt = receipt.clone();
        let applied =
            self.execute(call, move |engine, patience| engine.settle(patience, call, &receipt, actual));
        Ok(applied.await.map_err(StoreError::from)??)
    }

    async fn credit(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        credit_of(rule, key, units)?;
        let (rule, key) = (rule.clone(), OwnedKey::of(key));
        let applied = self.execute(call, move |engine, patience| {
            engine.credit(patience, call, &Charge::new(&rule, key.get(), units))
        });
        Ok(applied.await.map_err(StoreError::from)?)
    }

    /// What is damaged is forgotten as well; what a newer version has written is not.
    async fn reset(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        let (rule, key) = (rule.clone(), OwnedKey::of(key));
        let applied =
            self.execute(call, move |engine, patience| engine.reset(patience, call, &rule, key.get()));
        Ok(applied.await?)
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let (rule, key) = (rule.clone(), OwnedKey::of(key));
        let usages =
            self.execute(call, move |engine, patience| engine.inspect(patience, call, &rule, key.get()));
        Ok(usages.await?)
    }

    /// A few hundred keys at a time, so that other calls have their turn in between: what is charged meanwhile under
    /// the old rule may still go on under it.
    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let (rule, mut after) = (Arc::new(rule.clone()), String::new());
        loop {
            let rule = Arc::clone(&rule);
            let last =
                self.execute(call, move |engine, patience| engine.change_some(patience, call, &rule, &after));
            let Some(last) = last.await? else { return Ok(()) };
            after = last;
        }
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        Ok(Some(self.execute(Call::now(), Engine::secret).await?))
    }

    fn waits_by(&self) -> &dyn Clock {
        // The wall clock may be set back while callers wait.
        if self.engine.is_own_clock { &self.engine.clock } else { &*self.engine.monotonic }
    }
}
