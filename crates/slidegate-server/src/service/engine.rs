//! The service: what all wires ask, over whichever store, under the rules in force.

use std::slice;
use std::sync::Arc;

use arc_swap::Guard;
use slidegate::ruleset::RuleRef;
use slidegate::store::{LimitUsage, Outcome, Store, When};
use slidegate::time::Clock;
use slidegate::{Algorithm, Applied, ChargeRequest, Key, Resolved, Rule, RuleSet};

use super::answer::{Checked, Explained, Said};
use super::counted::Counted;
use super::failure::{Failure, Kind};
use super::policy::{Policy, passes_without_store};
use super::resolution::Resolution;
use super::settings::Settings;
use crate::metrics::{Metrics, Outcome as Counts, Transport};
use crate::receipts::ReceiptText;
use crate::rules::Live;
use crate::stores::{AnyStore, OpenError};
use crate::top::TopKeys;

/// Everything that a request needs; shared by all threads.
#[derive(Debug)]
pub(crate) struct Service {
    live: Arc<Live>,
    store: Arc<AnyStore>,
    receipts: ReceiptText,
    counted: Counted,
}

impl Service {
    /// Opens the store of `settings` on the runtime that this is called on, which must run for as long as the service is
    /// used.
    pub(crate) async fn open(
        settings: &Settings,
        rules: RuleSet,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let Settings { store, deadline, memory_budget, .. } = settings;
        let (store, secret) = AnyStore::open(store, *deadline, *memory_budget).await?;
        let counted = Counted::new(store.kind(), store.stats().is_none(), clock);
        let receipts = ReceiptText::new(&secret);
        Ok(Self { live: Arc::new(Live::new(rules)), store: Arc::new(store), receipts, counted })
    }

    /// The rules in force, to be kept for a whole request.
    pub(crate) fn rules(&self) -> Guard<Arc<RuleSet>> {
        self.live.load()
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.counted.metrics
    }

    /// The same, for whoever outlives a request.
    pub(crate) fn shared_metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.counted.metrics)
    }

    /// The rules in force, for whoever replaces them.
    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// Where states live, for whoever changes rules.
    pub(crate) fn store(&self) -> Arc<AnyStore> {
        Arc::clone(&self.store)
    }

    /// Everything that is counted, as Prometheus reads it.
    pub(crate) fn exposition(&self) -> String {
        self.counted.metrics.expose(&self.live.load(), self.store.stats().as_ref())
    }

    /// The keys that were allowed and denied most.
    pub(crate) fn top(&self, listed: usize) -> TopKeys {
        self.counted.top.read(listed)
    }

    /// Whether the store answers, and if not, why. Charges nothing.
    pub(crate) async fn store_answers(&self) -> Result<(), Failure> {
        let rule = Rule::inline("1/1s".parse().expect("a rate"), Algorithm::FixedWindow);
        let key = Key::new("slidegate-readyz")?;
        self.store.inspect(When::Now, &rule, key).await?;
        Ok(())
    }

    /// How receipts are written and read.
    pub(crate) fn receipts(&self) -> &ReceiptText {
        &self.receipts
    }

    /// Decides and, if every charge passes, makes all of them; counted under the `transport` of the request.
    pub(crate) async fn check<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<Policy>,
    ) -> Result<Checked<'a>, Failure> {
        let (admission, is_free) = match self.resolution(transport, rules, requests)? {
            Resolution::Charged { admission, is_free } => (admission, is_free),
            Resolution::Free { rule } => return Ok(self.unlimited(transport, rule, requests)),
        };
        let said = match self.counted.asked("check", self.store.check(When::Now, &admission)).await {
            Ok(Outcome { decision, receipt }) => {
                self.counted.decided(transport, &admission, &decision);
                if decision.allowed() {
                    self.free_charges(transport, requests, &is_free);
                }
                Said::Decided { decision, receipt }
            }
            Err(error) => self.without_store(transport, policy, &admission, error)?,
        };
        Ok(Checked { said, is_free })
    }

    /// Decides several requests, each on its own, and answers in their order.
    pub(crate) async fn check_batch<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        batch: &[(&'a [ChargeRequest<'a>], Option<Policy>)],
    ) -> Vec<Result<Checked<'a>, Failure>> {
        let resolved: Vec<_> =
            batch.iter().map(|(requests, _)| self.resolution(transport, rules, requests)).collect();
        let admissions: Vec<_> =
            resolved.iter().filter_map(|one| one.as_ref().ok()?.admission().cloned()).collect();
        let call = self.store.check_batch(When::Now, &admissions);
        let mut outcomes = self.counted.timed("check_batch", call).await.into_iter();
        let answered = resolved.into_iter().zip(batch).map(|(resolution, (requests, policy))| {
            let (admission, is_free) = match resolution? {
                Resolution::Charged { admission, is_free } => (admission, is_free),
                Resolution::Free { rule } => return Ok(self.unlimited(transport, rule, requests)),
            };
            let said = match outcomes.next() {
                Some(Ok(Outcome { decision, receipt })) => {
                    self.counted.heard();
                    self.counted.decided(transport, &admission, &decision);
                    if decision.allowed() {
                        self.free_charges(transport, requests, &is_free);
                    }
                    Said::Decided { decision, receipt }
                }
                Some(Err(error)) => {
                    self.counted.failed("check_batch", &error);
                    self.without_store(transport, *policy, &admission, error)?
                }
                None => {
                    let text = "store: gave fewer answers than it was asked for; see its log".to_owned();
                    return Err(Failure::new(Kind::Store { maybe_charged: true }, text));
                }
            };
            Ok(Checked { said, is_free })
        });
        answered.collect()
    }

    /// Decides without charging.
    pub(crate) async fn peek<'a>(
        &self,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<Policy>,
    ) -> Result<Checked<'a>, Failure> {
        let resolution = Resolution::new(rules, requests);
        let (admission, is_free) = match resolution.map_err(|error| Failure::of(error, requests.len()))? {
            Resolution::Charged { admission, is_free } => (admission, is_free),
            Resolution::Free { rule } => return Ok(Checked::unlimited(rule)),
        };
        let said = match self.counted.asked("peek", self.store.peek(When::Now, &admission)).await {
            Ok(decision) => Said::Decided { decision, receipt: None },
            Err(_) if passes_without_store(policy, &admission) => {
                Said::Degraded { rule: admission.asks()[0].rule.name() }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Checked { said, is_free })
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
        let (rule, key) = rules.locate(request)?;
        let usages = self.counted.asked("inspect", self.store.inspect(When::Now, rule, key)).await?;
        let decision = match Resolution::new(rules, slice::from_ref(request)) {
            Ok(Resolution::Charged { admission, .. }) => {
                Some(self.counted.asked("peek", self.store.peek(When::Now, &admission)).await?)
            }
            Ok(Resolution::Free { .. }) => None,
            Err(error) => match Failure::of(error, 1) {
                // Never is an explanation, too.
                Failure { kind: Kind::Never, .. } => None,
                _ if !matches!(resolved, Resolved::Limited(_)) => None,
                failure => return Err(failure),
            },
        };
        Ok(Explained { resolved, overridden_by, usages, decision })
    }

    /// Takes back a whole admission.
    pub(crate) async fn refund(&self, receipt: &str) -> Result<Applied, Failure> {
        let receipt = self.receipts.read(receipt)?;
        Ok(self.counted.asked("refund", self.store.refund(When::Now, &receipt)).await?)
    }

    /// Replaces the cost of an admission by what was really spent.
    pub(crate) async fn settle(&self, receipt: &str, actual: u64) -> Result<Applied, Failure> {
        let receipt = self.receipts.read(receipt)?;
        Ok(self.counted.asked("settle", self.store.settle(When::Now, &receipt, actual)).await?)
    }

    /// Gives back the oldest units.
    pub(crate) async fn credit<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Applied, Failure> {
        let (rule, key) = rules.locate(request)?;
        let call = self.store.credit(When::Now, rule, key, request.cost);
        Ok(self.counted.asked("credit", call).await?)
    }

    /// Forgets a key.
    pub(crate) async fn reset<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Applied, Failure> {
        let (rule, key) = rules.locate(request)?;
        Ok(self.counted.asked("reset", self.store.reset(When::Now, rule, key)).await?)
    }

    /// What is used of every limit that a rule means for a key.
    pub(crate) async fn inspect<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<(&'a Rule, Vec<LimitUsage>), Failure> {
        let (rule, key) = rules.locate(request)?;
        Ok((rule, self.counted.asked("inspect", self.store.inspect(When::Now, rule, key)).await?))
    }

    /// The charges of a request; one that is blocked is counted.
    fn resolution<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
    ) -> Result<Resolution<'a>, Failure> {
        Resolution::new(rules, requests).map_err(|error| {
            let failure = Failure::of(error, requests.len());
            if let (Kind::Blocked, Some(request)) = (failure.kind, requests.get(failure.at.unwrap_or(0))) {
                self.counted.charge(transport, request.rule.name(), &request.key, Counts::Denied, 0);
            }
            failure
        })
    }

    /// Counts charges that passed for free beside others that did not.
    fn free_charges(&self, transport: Transport, requests: &[ChargeRequest<'_>], is_free: &[bool]) {
        for (request, _) in requests.iter().zip(is_free).filter(|(_, is_free)| **is_free) {
            self.counted.charge(transport, request.rule.name(), &request.key, Counts::Allowed, 0);
        }
    }

    fn unlimited<'a>(
        &self,
        transport: Transport,
        rule: &'a Rule,
        requests: &[ChargeRequest<'_>],
    ) -> Checked<'a> {
        for request in requests {
            self.counted.charge(transport, request.rule.name(), &request.key, Counts::Allowed, 0);
        }
        Checked::unlimited(rule)
    }

    /// The answer of the outage policy.
    #[cold]
    fn without_store<'a>(
        &self,
        transport: Transport,
        policy: Option<Policy>,
        admission: &slidegate::Admission<'a>,
        error: slidegate::store::StoreError,
    ) -> Result<Said<'a>, Failure> {
        let passes = passes_without_store(policy, admission);
        self.counted.without_store(transport, admission, passes);
        if passes { Ok(Said::Degraded { rule: admission.asks()[0].rule.name() }) } else { Err(error.into()) }
    }
}
