//! The service: what all wires ask, over any store, under the rules in force.

use std::sync::Arc;

use arc_swap::Guard;
use ring::rand::{SecureRandom, SystemRandom};
use slidegate::rule::OnStoreError;
use slidegate::ruleset::RuleRef;
use slidegate::store::{BoxStore, LimitUsage, Store};
use slidegate::time::Clock;
use slidegate::{
    Admission, Algorithm, Applied, ChargeRequest, CheckError, Decision, Limiter, Resolved, Rule, RuleSet,
};

use super::counted::Counted;
use super::failure::{Failure, Kind};
use super::settings::Settings;
use crate::metrics::{Outcome, Transport};
use crate::receipts::ReceiptText;
use crate::rules::Live;
use crate::stores::OpenError;

/// Everything that a request needs; shared by all threads.
pub(crate) struct Service {
    /// The rules in force, which a reload replaces.
    pub(crate) live: Arc<Live>,
    /// A reload carries states over with it; the wires ask through the verbs below, which count.
    pub(crate) limiter: Arc<Limiter<BoxStore>>,
    /// How receipts are written and read.
    pub(crate) receipts: ReceiptText,
    pub(crate) counted: Counted,
}

/// What a rule means for a key, and what is used of it.
#[derive(Debug)]
pub(crate) struct Explained<'a> {
    pub(crate) resolved: Resolved<'a>,
    /// The key or the pattern of the override that stands in the place of the rule's own limits.
    pub(crate) overridden_by: Option<&'a str>,
    pub(crate) usages: Vec<LimitUsage>,
    /// What would be said to this charge alone, if the rule has something to say.
    pub(crate) decision: Option<Decision<'a>>,
}

impl Service {
    /// Opens the store of `settings` on the runtime that this is called on, which must run for as long as the service is
    /// used.
    pub(crate) async fn open(
        settings: &Settings,
        rules: RuleSet,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let mut url = settings.store.clone().deadline(settings.deadline)?;
        if let Some(bytes) = settings.memory_budget {
            url = url.memory_budget(bytes);
        }
        let limiter = Limiter::new(url.open_on_clock(Arc::clone(&clock)).await?);
        // Where no other process shares the store, receipts are good for as long as this one runs.
        let mut secret = [0; 32];
        match limiter.store().secret().await? {
            Some(shared) => secret = shared,
            None => SystemRandom::new().fill(&mut secret).map_err(|_| OpenError::Random)?,
        }
        let counted = Counted::new(url.kind(), clock);
        let receipts = ReceiptText::new(&secret);
        Ok(Self { live: Arc::new(Live::new(rules)), limiter: Arc::new(limiter), receipts, counted })
    }

    /// The rules in force, to be kept for a whole request.
    pub(crate) fn rules(&self) -> Guard<Arc<RuleSet>> {
        self.live.load()
    }

    /// Everything that is counted, as Prometheus reads it.
    pub(crate) fn exposition(&self) -> String {
        self.counted.metrics.expose(&self.live.load(), self.limiter.store().stats().as_ref())
    }

    /// Whether the store answers, and if not, why. Charges nothing.
    pub(crate) async fn store_answers(&self) -> Result<(), Failure> {
        let rule = Rule::inline("1/1s".parse().expect("a rate"), Algorithm::FixedWindow);
        self.limiter.inspect_async(&rule, "slidegate-readyz").await?;
        Ok(())
    }

    /// Decides and, if every charge passes, makes all of them; counted under the `transport` of the request.
    pub(crate) async fn check<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<OnStoreError>,
    ) -> Result<Decision<'a>, Failure> {
        let admission = self.admission(transport, rules, requests)?;
        let limiter = self.limiter.with_outage_policy(policy);
        let decided = self.asked("check", &admission, limiter.decide_async(&admission)).await;
        self.decided(transport, &admission, decided)
    }

    /// Decides several requests, each on its own, and answers in their order.
    pub(crate) async fn check_batch<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        batch: &[(&'a [ChargeRequest<'a>], Option<OnStoreError>)],
    ) -> Vec<Result<Decision<'a>, Failure>> {
        let resolved: Vec<_> =
            batch.iter().map(|(requests, _)| self.admission(transport, rules, requests)).collect();
        let admissions: Vec<_> = resolved.iter().flatten().cloned().collect();
        let policies =
            batch.iter().zip(&resolved).filter(|(_, one)| one.is_ok()).map(|((_, policy), _)| *policy);
        let policies: Vec<_> = policies.collect();
        let call = self.limiter.check_batch_each_async(&admissions, |index| policies[index]);
        let mut decided = self.counted.timed("check_batch", call).await.into_iter();
        let answered = resolved.into_iter().map(|admission| {
            let (admission, decided) = (admission?, decided.next().expect("an answer for each admission"));
            if !admission.asks().is_empty() {
                self.counted.heard("check_batch", &decided);
            }
            self.decided(transport, &admission, decided)
        });
        answered.collect()
    }

    /// Decides without charging.
    pub(crate) async fn peek<'a>(
        &self,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<OnStoreError>,
    ) -> Result<Decision<'a>, Failure> {
        let admission = rules.admission(requests).map_err(|error| Failure::of(error, requests.len()))?;
        let limiter = self.limiter.with_outage_policy(policy);
        Ok(self.asked("peek", &admission, limiter.peek_admission_async(&admission)).await?)
    }

    /// What the rules mean for a charge, and what is used; charges nothing.
    pub(crate) async fn explain<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Explained<'a>, Failure> {
        let resolved = rules.resolve(request)?;
        let overridden_by = match &request.rule {
            RuleRef::Named(name) => rules.overridden_by(name, &request.key),
            RuleRef::Inline(_) => None,
        };
        let usages = self.usages(resolved.rule(), &request.key).await?;
        let decision = match (resolved, Admission::new(&[resolved.charge()])) {
            (Resolved::Limited(_), Ok(admission)) => {
                let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
                Some(self.counted.asked("peek", limiter.peek_admission_async(&admission)).await?)
            }
            (Resolved::Limited(_), Err(error)) => match Failure::from(error) {
                // Never is an explanation, too.
                Failure { kind: Kind::Never, .. } => None,
                failure => return Err(failure),
            },
            _ => None,
        };
        Ok(Explained { resolved, overridden_by, usages, decision })
    }

    /// Takes back a whole admission.
    pub(crate) async fn refund(&self, receipt: &str) -> Result<Applied, Failure> {
        let receipt = self.receipts.read(receipt)?;
        Ok(self.counted.asked("refund", self.limiter.refund_async(&receipt)).await?)
    }

    /// Replaces the cost of an admission by what was really spent.
    pub(crate) async fn settle(&self, receipt: &str, actual: u64) -> Result<Applied, Failure> {
        let receipt = self.receipts.read(receipt)?;
        Ok(self.counted.asked("settle", self.limiter.settle_async(&receipt, actual)).await?)
    }

    /// Gives back the oldest units.
    pub(crate) async fn credit(&self, request: &ChargeRequest<'_>) -> Result<Applied, Failure> {
        let rules = self.rules();
        let charge = rules.resolve(request)?.charge();
        let call = self.limiter.credit_async(charge.rule(), charge.key().as_str(), charge.cost());
        Ok(self.counted.asked("credit", call).await?)
    }

    /// Forgets a key.
    pub(crate) async fn reset(&self, request: &ChargeRequest<'_>) -> Result<Applied, Failure> {
        let rules = self.rules();
        let charge = rules.resolve(request)?.charge();
        let call = self.limiter.reset_async(charge.rule(), charge.key().as_str());
        Ok(self.counted.asked("reset", call).await?)
    }

    /// What is used of every limit that a rule means for a key.
    pub(crate) async fn inspect<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<(&'a Rule, Vec<LimitUsage>), Failure> {
        let rule = rules.resolve(request)?.rule();
        Ok((rule, self.usages(rule, &request.key).await?))
    }

    async fn usages(&self, rule: &Rule, key: &str) -> Result<Vec<LimitUsage>, Failure> {
        Ok(self.counted.asked("inspect", self.limiter.inspect_async(rule, key)).await?)
    }

    /// The charges of a request; one that is blocked is counted.
    fn admission<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
    ) -> Result<Admission<'a>, Failure> {
        rules.admission(requests).map_err(|error| {
            let failure = Failure::of(error, requests.len());
            if let (Kind::Blocked, Some(request)) = (failure.kind, requests.get(failure.at.unwrap_or(0))) {
                self.counted.charge(transport, request.rule.name(), &request.key, Outcome::Denied, 0);
            }
            failure
        })
    }

    /// Asks the store, and counts how long that takes and whether it fails. An admission of unlimited keys asks none.
    async fn asked<'a>(
        &self,
        operation: &'static str,
        admission: &Admission<'_>,
        call: impl Future<Output = Result<Decision<'a>, CheckError>>,
    ) -> Result<Decision<'a>, CheckError> {
        if admission.asks().is_empty() {
            return call.await;
        }
        let decided = self.counted.timed(operation, call).await;
        self.counted.heard(operation, &decided);
        decided
    }

    /// Counts an answer.
    fn decided<'a>(
        &self,
        transport: Transport,
        admission: &Admission<'_>,
        decided: Result<Decision<'a>, CheckError>,
    ) -> Result<Decision<'a>, Failure> {
        match &decided {
            Ok(decision) => self.counted.decided(transport, decision),
            Err(_) => self.counted.refused(transport, admission),
        }
        Ok(decided?)
    }
}
