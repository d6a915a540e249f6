//! Executes lines, one after the other, each at its own time.

use slidegate::rule::OnStoreError;
use slidegate::store::BoxStore;
use slidegate::time::TIME_MAX_US;
use slidegate::{Applied, ChargeRequest, Limiter, Rate, Receipt, RuleSet};

use super::answer::{Answer, Body, whole_us};
use super::charges::admission;
use super::failure::Failure;
use super::lines::{LINE_BYTES_MAX, Line};
use super::receipts::{Fate, Receipts};
use super::request::{Operation, Request, Returned};
use crate::reload::with_windows_of;
use crate::rules::parse_rate;

/// The rules and the limiter of a replay, and how far it has come.
#[derive(Debug)]
pub(crate) struct Session<'s> {
    rules: RuleSet,
    limiter: &'s Limiter<BoxStore>,
    receipts: Receipts,
    line: u64,
    now_us: u64,
}

/// The answer to a line, and what it means for receipts.
struct Done {
    body: Body,
    fate: Fate,
    /// The receipt it earned, and when that expires.
    earned: Option<(Receipt, u64)>,
}

impl Done {
    fn no_check(body: impl Into<Body>) -> Self {
        Self { body: body.into(), fate: Fate::NoCheck, earned: None }
    }
}

impl<'s> Session<'s> {
    /// A session on a limiter.
    pub(crate) fn new(rules: RuleSet, limiter: &'s Limiter<BoxStore>) -> Self {
        Self { rules, limiter, receipts: Receipts::default(), line: 0, now_us: 0 }
    }

    /// Executes the next line. A blank one is counted but has no answer. One that fails changes not even the time.
    pub(crate) async fn execute(&mut self, line: Line<'_>) -> Option<Answer> {
        self.line += 1;
        if matches!(line, Line::Whole(text) if text.trim_ascii().is_empty()) {
            self.receipts.record(Fate::Blank);
            return None;
        }
        let done = match self.parse(line) {
            Ok(request) => self.run(&request).await,
            Err(failure) => Err(failure),
        };
        let Done { body, fate, earned } = done.unwrap_or_else(|failure| Done {
            fate: failure.fate(),
            body: Body::Failed(failure),
            earned: None,
        });
        match earned {
            Some((receipt, expires_us)) => self.receipts.record_charged(self.now_us, expires_us, receipt),
            None => self.receipts.record(fate),
        }
        Some(Answer { line: self.line, body })
    }

    fn parse(&self, line: Line<'_>) -> Result<Request, Failure> {
        let Line::Whole(text) = line else {
            let text = format!("line: has more than {LINE_BYTES_MAX} bytes; split it or shorten its keys");
            return Err(text.into());
        };
        let request = Request::parse(text)?;
        let at_us = request.at_us;
        if at_us > TIME_MAX_US {
            let text = format!("at_us: {at_us} lies after the year 9999; write microseconds since 1970");
            return Err(Failure::new("time", &text));
        }
        if at_us < self.now_us {
            let now_us = self.now_us;
            let text =
                format!("at_us: {at_us} is earlier than {now_us} of a line before; sort the trace by time");
            return Err(Failure::new("time", &text));
        }
        Ok(request)
    }

    async fn run(&mut self, request: &Request) -> Result<Done, Failure> {
        let at_us = request.at_us;
        let done = match &request.operation {
            Operation::Check(charges) => self.check(at_us, charges).await,
            Operation::Peek(charges) => self.peek(at_us, charges).await,
            Operation::Return(returned) => self.take_back(at_us, returned).await,
            Operation::Credit(asked) => self.credit(at_us, asked).await,
            Operation::Reset(asked) => self.reset(at_us, asked).await,
            Operation::Inspect(asked) => self.inspect(at_us, asked).await,
            Operation::Limit(rule, limits) => self.change(at_us, rule, limits).await,
        };
        if done.as_ref().map_or_else(Failure::is_answer, |_| true) {
            self.now_us = at_us;
        }
        done
    }

    async fn check(&mut self, at_us: u64, charges: &[ChargeRequest<'_>]) -> Result<Done, Failure> {
        let admission = admission(&self.rules, charges)?;
        // A trace has the same answers everywhere: a store that fails is an error, whatever its rules say.
        let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
        let decision = limiter.at_us(at_us).decide_async(&admission).await?;
        // Nothing is used when the last charge has expired.
        let expires_after_us = decision.verdicts().filter_map(|verdict| verdict.reset_after()).max();
        let expires_us = at_us + expires_after_us.map_or(0, whole_us);
        let fate = match decision.allowed() {
            true if admission.asks().is_empty() => Fate::Unlimited,
            true => Fate::Uncharged,
            false => Fate::Denied,
        };
        let earned = decision.receipt().map(|receipt| (receipt, expires_us));
        Ok(Done { body: Body::decided(&decision), fate, earned })
    }

    async fn peek(&self, at_us: u64, charges: &[ChargeRequest<'_>]) -> Result<Done, Failure> {
        let admission = admission(&self.rules, charges)?;
        let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
        let decision = limiter.at_us(at_us).peek_admission_async(&admission).await?;
        Ok(Done::no_check(Body::decided(&decision)))
    }

    async fn take_back(&self, at_us: u64, returned: &Returned) -> Result<Done, Failure> {
        let limiter = self.limiter.at_us(at_us);
        let applied = match (self.receipts.presented(at_us, returned)?, returned.actual) {
            (None, _) => Applied::default(),
            (Some(receipt), None) => limiter.refund_async(receipt).await?,
            (Some(receipt), Some(actual)) => limiter.settle_async(receipt, actual).await?,
        };
        Ok(Done::no_check(applied))
    }

    async fn credit(&mut self, at_us: u64, request: &ChargeRequest<'_>) -> Result<Done, Failure> {
        if request.cost == 0 {
            return Err(Failure::new("units", "units: 0 would give nothing back; credit at least 1 unit"));
        }
        let charge = self.rules.resolve(request)?.charge();
        let limiter = self.limiter.at_us(at_us);
        let credited = limiter.credit_async(charge.rule(), charge.key().as_str(), charge.cost()).await?;
        Ok(Done::no_check(credited))
    }

    async fn reset(&mut self, at_us: u64, request: &ChargeRequest<'_>) -> Result<Done, Failure> {
        let charge = self.rules.resolve(request)?.charge();
        let limiter = self.limiter.at_us(at_us);
        Ok(Done::no_check(limiter.reset_async(charge.rule(), charge.key().as_str()).await?))
    }

    async fn inspect(&self, at_us: u64, request: &ChargeRequest<'_>) -> Result<Done, Failure> {
        let charge = self.rules.resolve(request)?.charge();
        let (rule, key) = (charge.rule(), charge.key().as_str());
        let usages = self.limiter.at_us(at_us).inspect_async(rule, key).await?;
        Ok(Done::no_check(Body::inspected(rule, key, &usages)))
    }

    async fn change(&mut self, at_us: u64, rule: &str, limits: &[(String, String)]) -> Result<Done, Failure> {
        let rule = self.rules.get(rule)?;
        let rates = limits.iter().map(|(field, text)| {
            parse_rate(text).map_err(|text| Failure::new("limit", &format!("{field}: {text}")))
        });
        let rates: Vec<Rate> = rates.collect::<Result<_, _>>()?;
        let changed = rule.with_rates(&rates).map_err(|error| Failure::new("limit", &error))?;
        // States of keys with limits of their own go on under those, as when a server reloads.
        let carried = self.rules.overrides(changed.name()).filter(|overrides| !overrides.is_empty());
        let carried = carried.map(|overrides| with_windows_of(&changed, overrides));
        self.limiter.at_us(at_us).change_async(carried.as_ref().unwrap_or(&changed)).await?;
        let body = Body::changed(&changed);
        self.rules.replace(changed);
        Ok(Done::no_check(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::BlockingLimiter;
    use slidegate::store::Store;
    use slidegate_stores::StoreUrl;

    /// A day of traffic in which every visitor comes once used to hold every visitor in memory.
    #[test]
    fn keys_that_have_gone_are_forgotten() {
        let opened = BlockingLimiter::open(&StoreUrl::default()).unwrap();
        let mut session = Session::new(RuleSet::new(), &opened.limiter);
        let lines = 100_000;
        for (number, at_us) in (0..lines).zip((0..).step_by(1_000)) {
            let charge = format!(r#"{{"rule":{{"limit":1,"window":"1s"}},"key":"visitor-{number}"}}"#);
            let line = format!(r#"{{"at_us":{at_us},"op":"check","charges":[{charge}]}}"#);
            let answer = opened.block_on(session.execute(Line::Whole(line.as_bytes()))).unwrap();
            assert!(!answer.is_failure());
        }
        let still_held = opened.limiter.store().stats().unwrap().keys;
        assert!(still_held <= 4_000, "{still_held} of {lines} keys, 1,000 in use");
    }
}
