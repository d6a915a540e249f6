//! Executes the lines of a trace in order, each at its own time.

use slidegate::rule::OnStoreError;
use slidegate::store::BoxStore;
use slidegate::time::TIME_MAX_US;
use slidegate::{Applied, ChargeRequest, Limiter, Rate, Receipt, RuleSet};

use super::answer::{AnswerBody, LineAnswer};
use super::charges::admission;
use super::line_error::LineError;
use super::lines::{LINE_BYTES_MAX, TraceLine};
use super::operation::{Operation, ReceiptReturn, TimedOperation};
use super::receipts::{ReceiptStatus, Receipts};
use crate::reload::with_override_windows;
use crate::rules::parse_rate;
use crate::text::whole_us;

/// The rules, limiter and receipts of a replay, and its current line and time.
#[derive(Debug)]
pub(crate) struct Executor<'s> {
    rules: RuleSet,
    limiter: &'s Limiter<BoxStore>,
    receipts: Receipts,
    line: u64,
    now_us: u64,
}

/// The answer to a line, and its receipt status.
struct ExecutedLine {
    body: AnswerBody,
    receipt_status: ReceiptStatus,
    /// The receipt of the line, and when it expires.
    receipt: Option<(Receipt, u64)>,
}

impl ExecutedLine {
    fn no_check(body: impl Into<AnswerBody>) -> Self {
        Self { body: body.into(), receipt_status: ReceiptStatus::NoCheck, receipt: None }
    }
}

impl<'s> Executor<'s> {
    pub(crate) fn new(rules: RuleSet, limiter: &'s Limiter<BoxStore>) -> Self {
        Self { rules, limiter, receipts: Receipts::default(), line: 0, now_us: 0 }
    }

    /// Executes the next line. A blank line has no answer; a line that fails does not change the time either.
    pub(crate) async fn execute(&mut self, line: TraceLine<'_>) -> Option<LineAnswer> {
        self.line += 1;
        if matches!(line, TraceLine::Whole(text) if text.trim_ascii().is_empty()) {
            self.receipts.record(ReceiptStatus::Blank);
            return None;
        }
        let executed = match self.parse(line) {
            Ok(request) => self.run(&request).await,
            Err(error) => Err(error),
        };
        let ExecutedLine { body, receipt_status, receipt } = executed.unwrap_or_else(|error| ExecutedLine {
            receipt_status: error.receipt_status(),
            body: AnswerBody::Failed(error),
            receipt: None,
        });
        match receipt {
            Some((receipt, expires_us)) => self.receipts.record_charged(self.now_us, expires_us, receipt),
            None => self.receipts.record(receipt_status),
        }
        Some(LineAnswer { line: self.line, body })
    }

    fn parse(&self, line: TraceLine<'_>) -> Result<TimedOperation, LineError> {
        let TraceLine::Whole(text) = line else {
            let text = format!("line: has more than {LINE_BYTES_MAX} bytes; split it or shorten its keys");
            return Err(text.into());
        };
        let request = TimedOperation::parse(text)?;
        let at_us = request.at_us;
        if at_us > TIME_MAX_US {
            let text = format!("at_us: {at_us} lies after the year 9999; write microseconds since 1970");
            return Err(LineError::new("time", &text));
        }
        if at_us < self.now_us {
            let now_us = self.now_us;
            let text =
                format!("at_us: {at_us} is earlier than {now_us} of a line before; sort the trace by time");
            return Err(LineError::new("time", &text));
        }
        Ok(request)
    }

    async fn run(&mut self, request: &TimedOperation) -> Result<ExecutedLine, LineError> {
        let at_us = request.at_us;
        let executed = match &request.operation {
            Operation::Check(charges) => self.check(at_us, charges).await,
            Operation::Peek(charges) => self.peek(at_us, charges).await,
            Operation::Return(returned) => self.return_receipt(at_us, returned).await,
            Operation::Credit(request) => self.credit(at_us, request).await,
            Operation::Reset(request) => self.reset(at_us, request).await,
            Operation::Inspect(request) => self.inspect(at_us, request).await,
            Operation::Limit(rule, limits) => self.change(at_us, rule, limits).await,
        };
        if executed.as_ref().map_or_else(LineError::is_answer, |_| true) {
            self.now_us = at_us;
        }
        executed
    }

    async fn check(&mut self, at_us: u64, charges: &[ChargeRequest<'_>]) -> Result<ExecutedLine, LineError> {
        let admission = admission(&self.rules, charges)?;
        // A store failure is an error whatever the outage policy, so that a trace has the same answers everywhere.
        let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
        let decision = limiter.at_us(at_us).decide_async(&admission).await?;
        let expires_after_us = decision.verdicts().filter_map(|verdict| verdict.reset_after()).max();
        let expires_us = at_us + expires_after_us.map_or(0, whole_us);
        let receipt_status = match decision.allowed() {
            true if admission.asks().is_empty() => ReceiptStatus::Unlimited,
            true => ReceiptStatus::Uncharged,
            false => ReceiptStatus::Denied,
        };
        let receipt = decision.receipt().map(|receipt| (receipt, expires_us));
        Ok(ExecutedLine { body: AnswerBody::decided(&decision), receipt_status, receipt })
    }

    async fn peek(&self, at_us: u64, charges: &[ChargeRequest<'_>]) -> Result<ExecutedLine, LineError> {
        let admission = admission(&self.rules, charges)?;
        let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
        let decision = limiter.at_us(at_us).peek_admission_async(&admission).await?;
        Ok(ExecutedLine::no_check(AnswerBody::decided(&decision)))
    }

    async fn return_receipt(&self, at_us: u64, returned: &ReceiptReturn) -> Result<ExecutedLine, LineError> {
        let limiter = self.limiter.at_us(at_us);
        let applied = match (self.receipts.returned_receipt(at_us, returned)?, returned.actual) {
            (None, _) => Applied::default(),
            (Some(receipt), None) => limiter.refund_async(receipt).await?,
            (Some(receipt), Some(actual)) => limiter.settle_async(receipt, actual).await?,
        };
        Ok(ExecutedLine::no_check(applied))
    }

    async fn credit(&mut self, at_us: u64, request: &ChargeRequest<'_>) -> Result<ExecutedLine, LineError> {
        if request.cost == 0 {
            return Err(LineError::new("units", "units: 0 would give nothing back; credit at least 1 unit"));
        }
        let charge = self.rules.resolve(request)?.charge();
        let limiter = self.limiter.at_us(at_us);
        let credited = limiter.credit_async(charge.rule(), charge.key(), charge.cost()).await?;
        Ok(ExecutedLine::no_check(credited))
    }

    async fn reset(&mut self, at_us: u64, request: &ChargeRequest<'_>) -> Result<ExecutedLine, LineError> {
        let charge = self.rules.resolve(request)?.charge();
        let limiter = self.limiter.at_us(at_us);
        Ok(ExecutedLine::no_check(limiter.reset_async(charge.rule(), charge.key()).await?))
    }

    async fn inspect(&self, at_us: u64, request: &ChargeRequest<'_>) -> Result<ExecutedLine, LineError> {
        let charge = self.rules.resolve(request)?.charge();
        let (rule, key) = (charge.rule(), charge.key());
        let usages = self.limiter.at_us(at_us).inspect_async(rule, key).await?;
        Ok(ExecutedLine::no_check(AnswerBody::inspected(rule, key, &usages)))
    }

    async fn change(
        &mut self,
        at_us: u64,
        rule: &str,
        limits: &[(String, String)],
    ) -> Result<ExecutedLine, LineError> {
        let rule = self.rules.get(rule)?;
        let rates = limits.iter().map(|(field, text)| {
            parse_rate(text).map_err(|text| LineError::new("limit", &format!("{field}: {text}")))
        });
        let rates: Vec<Rate> = rates.collect::<Result<_, _>>()?;
        let changed = rule.with_rates(&rates).map_err(|error| LineError::new("limit", &error))?;
        // States of keys with overrides keep their windows, as in a reload.
        let overrides = self.rules.overrides(changed.name()).filter(|overrides| !overrides.is_empty());
        let migrated = overrides.map(|overrides| with_override_windows(&changed, overrides));
        self.limiter.at_us(at_us).change_async(migrated.as_ref().unwrap_or(&changed)).await?;
        let body = AnswerBody::changed(&changed);
        self.rules.replace(changed);
        Ok(ExecutedLine::no_check(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::BlockingLimiter;
    use slidegate::store::Store;
    use slidegate_stores::StoreUrl;

    /// A trace in which every key occurs once must not keep every key in memory.
    #[test]
    fn idle_keys_are_swept() {
        let opened = BlockingLimiter::open(&StoreUrl::default()).unwrap();
        let mut executor = Executor::new(RuleSet::new(), &opened.limiter);
        let lines = 100_000;
        for (number, at_us) in (0..lines).zip((0..).step_by(1_000)) {
            let charge = format!(r#"{{"rule":{{"limit":1,"window":"1s"}},"key":"visitor-{number}"}}"#);
            let line = format!(r#"{{"at_us":{at_us},"op":"check","charges":[{charge}]}}"#);
            let answer = opened.block_on(executor.execute(TraceLine::Whole(line.as_bytes()))).unwrap();
            assert!(!answer.is_failure());
        }
        let still_held = opened.limiter.store().stats().unwrap().keys;
        assert!(still_held <= 4_000, "{still_held} of {lines} keys, 1,000 in use");
    }
}
