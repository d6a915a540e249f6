//! The verbs as plain functions, on the thread that calls them.

use slidegate::store::{Call, CheckError, LimitUsage, LocalStore, ReturnError, StoreError};
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, ChargeError, Decision, Key, Receipt, Rule};

use crate::answers::Answers;
use crate::failure::Failure;
use crate::store::SqliteStore;

impl<C: Clock + 'static> LocalStore for SqliteStore<C> {
    fn check_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        let mut patience = self.engine.patience(call).map_err(StoreError::from)?;
        let answers = self.engine.check(&mut patience, call, admission.asks()).map_err(StoreError::from)?;
        Ok(answers.decision(admission))
    }

    /// All within one deadline.
    fn check_batch_sync<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let answers = self.engine.patience(call).map(|mut patience| {
            self.engine.check_batch(&mut patience, call, admissions.iter().map(Admission::asks))
        });
        decisions(admissions, answers)
    }

    fn peek_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let mut patience = self.engine.patience(call)?;
        Ok(self.engine.peek(&mut patience, call, admission.asks())?.decision(admission))
    }

    fn refund_sync(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        let mut patience = self.engine.patience(call).map_err(StoreError::from)?;
        Ok(self.engine.refund(&mut patience, call, receipt).map_err(StoreError::from)??)
    }

    fn settle_sync(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        let mut patience = self.engine.patience(call).map_err(StoreError::from)?;
        Ok(self.engine.settle(&mut patience, call, receipt, actual).map_err(StoreError::from)??)
    }

    fn credit_sync(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        let charge = credit_of(rule, key, units)?;
        let mut patience = self.engine.patience(call).map_err(StoreError::from)?;
        Ok(self.engine.credit(&mut patience, call, &charge).map_err(StoreError::from)?)
    }

    /// What is damaged is forgotten as well; what a newer version has written is not.
    fn reset_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Ok(self.engine.reset(&mut self.engine.patience(call)?, call, rule, key)?)
    }

    fn inspect_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Ok(self.engine.inspect(&mut self.engine.patience(call)?, call, rule, key)?)
    }

    /// A few hundred keys at a time: what is charged meanwhile under the old rule may still go on under it.
    fn change_sync(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let mut after = String::new();
        while let Some(last) =
            self.engine.change_some(&mut self.engine.patience(call)?, call, rule, &after)?
        {
            after = last;
        }
        Ok(())
    }
}

/// What is said to a batch; a failure of the whole of it is said to each.
pub(crate) fn decisions<'a>(
    admissions: &[Admission<'a>],
    answers: Result<Vec<Result<Answers, Failure>>, Failure>,
) -> Vec<Result<Decision<'a>, StoreError>> {
    match answers {
        Ok(answers) => {
            let decided = answers.into_iter().zip(admissions);
            decided.map(|(answers, admission)| Ok(answers?.decision(admission))).collect()
        }
        Err(failure) => admissions.iter().map(|_| Err(failure.clone().into())).collect(),
    }
}

pub(crate) fn credit_of<'a>(rule: &'a Rule, key: Key<'a>, units: u64) -> Result<Charge<'a>, ChargeError> {
    if units == 0 {
        return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() });
    }
    Ok(Charge::new(rule, key, units))
}
