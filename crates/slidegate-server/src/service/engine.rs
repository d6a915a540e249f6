//! The service: what all wires ask, over whichever store, under the rules in force.

use std::sync::Arc;

use arc_swap::Guard;
use slidegate::store::{LimitUsage, Outcome, Store, When};
use slidegate::time::Clock;
use slidegate::{Algorithm, Applied, Decision, Key, Receipt, Rule};

use super::ask::{Ask, Policy, Resolution, passes_without_store};
use super::counted::Counted;
use super::failure::{Failure, Kind};
use super::settings::Settings;
use crate::metrics::{Metrics, Outcome as Counts, Transport};
use crate::receipts::ReceiptText;
use crate::rules::{Live, Resolved, Rules};
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

/// The answer to a check or a peek.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    pub(crate) said: Said<'a>,
    /// For every charge whether an override lets it pass for free; empty if none is.
    pub(crate) is_free: Vec<bool>,
}

/// Who said what.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    /// The store decided.
    Decided { decision: Decision<'a>, receipt: Option<Receipt<'a>> },
    /// An override lets every charge pass, and nothing is counted.
    Unlimited { rule: &'a str },
    /// The store did not answer, and the outage policy lets the request pass.
    Degraded { rule: &'a str },
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
        rules: Rules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let Settings { store, deadline, memory_budget, .. } = settings;
        let (store, secret) = AnyStore::open(store, *deadline, *memory_budget).await?;
        let counted = Counted::new(store.kind(), store.stats().is_none(), clock);
        let receipts = ReceiptText::new(&secret);
        Ok(Self { live: Arc::new(Live::new(rules)), store: Arc::new(store), receipts, counted })
    }

    /// The rules in force, to be kept for a whole request.
    pub(crate) fn rules(&self) -> Guard<Arc<Rules>> {
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
        rules: &'a Rules,
        asks: &[Ask<'a>],
        policy: Option<Policy>,
    ) -> Result<Checked<'a>, Failure> {
        let Resolution { admission, free, is_free } = self.resolution(transport, rules, asks)?;
        let Some(admission) = admission else {
            return Ok(self.unlimited(transport, free, asks, is_free));
        };
        let said = match self.counted.asked("check", self.store.check(When::Now, &admission)).await {
            Ok(Outcome { decision, receipt }) => {
                self.counted.decided(transport, &admission, &decision);
                if decision.allowed() {
                    self.free_charges(transport, asks, &is_free);
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
        rules: &'a Rules,
        batch: &[(&[Ask<'a>], Option<Policy>)],
    ) -> Vec<Result<Checked<'a>, Failure>> {
        let resolved: Vec<_> =
            batch.iter().map(|(asks, _)| self.resolution(transport, rules, asks)).collect();
        let admissions: Vec<_> =
            resolved.iter().filter_map(|one| one.as_ref().ok()?.admission.clone()).collect();
        let call = self.store.check_batch(When::Now, &admissions);
        let mut outcomes = self.counted.timed("check_batch", call).await.into_iter();
        let answered = resolved.into_iter().zip(batch).map(|(resolution, (asks, policy))| {
            let Resolution { admission, free, is_free } = resolution?;
            let Some(admission) = admission else {
                return Ok(self.unlimited(transport, free, asks, is_free));
            };
            let said = match outcomes.next() {
                Some(Ok(Outcome { decision, receipt })) => {
                    self.counted.heard();
                    self.counted.decided(transport, &admission, &decision);
                    if decision.allowed() {
                        self.free_charges(transport, asks, &is_free);
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
        rules: &'a Rules,
        asks: &[Ask<'a>],
        policy: Option<Policy>,
    ) -> Result<Checked<'a>, Failure> {
        let Resolution { admission, free, is_free } = Resolution::new(rules, asks)?;
        let Some(admission) = admission else {
            let rule = free.map_or("", Rule::name);
            return Ok(Checked { said: Said::Unlimited { rule }, is_free });
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
        rules: &'a Rules,
        ask: &Ask<'a>,
    ) -> Result<Explained<'a>, Failure> {
        let (resolved, key) = ask.resolve(rules)?;
        let overridden_by = match ask.rule {
            super::ask::RuleAsked::Named(name) => rules.overridden_by(name, ask.key),
            super::ask::RuleAsked::Inline(_) => None,
        };
        let rule = of(resolved);
        let usages = self.counted.asked("inspect", self.store.inspect(When::Now, rule, key)).await?;
        let decision = match (resolved, Resolution::new(rules, std::slice::from_ref(ask))) {
            (Resolved::Limited(_), Ok(Resolution { admission: Some(admission), .. })) => {
                Some(self.counted.asked("peek", self.store.peek(When::Now, &admission)).await?)
            }
            // Never is an explanation, too.
            (Resolved::Limited(_), Err(failure)) if failure.kind != Kind::Never => return Err(failure),
            _ => None,
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
    pub(crate) async fn credit<'a>(&self, rules: &'a Rules, ask: &Ask<'a>) -> Result<Applied, Failure> {
        let (resolved, key) = ask.resolve(rules)?;
        let call = self.store.credit(When::Now, of(resolved), key, ask.units);
        Ok(self.counted.asked("credit", call).await?)
    }

    /// Forgets a key.
    pub(crate) async fn reset<'a>(&self, rules: &'a Rules, ask: &Ask<'a>) -> Result<Applied, Failure> {
        let (resolved, key) = ask.resolve(rules)?;
        Ok(self.counted.asked("reset", self.store.reset(When::Now, of(resolved), key)).await?)
    }

    /// What is used of every limit that a rule means for a key.
    pub(crate) async fn inspect<'a>(
        &self,
        rules: &'a Rules,
        ask: &Ask<'a>,
    ) -> Result<(&'a Rule, Vec<LimitUsage>), Failure> {
        let (resolved, key) = ask.resolve(rules)?;
        let rule = of(resolved);
        Ok((rule, self.counted.asked("inspect", self.store.inspect(When::Now, rule, key)).await?))
    }

    /// The charges of a request; one that is blocked is counted.
    fn resolution<'a>(
        &self,
        transport: Transport,
        rules: &'a Rules,
        asks: &[Ask<'a>],
    ) -> Result<Resolution<'a>, Failure> {
        Resolution::new(rules, asks).inspect_err(|failure| {
            if let (Kind::Blocked, Some(ask)) = (failure.kind, asks.get(failure.at.unwrap_or(0))) {
                self.counted.charge(transport, ask.rule.name(), ask.key, Counts::Denied, 0);
            }
        })
    }

    /// Counts charges that passed for free beside others that did not.
    fn free_charges(&self, transport: Transport, asks: &[Ask<'_>], is_free: &[bool]) {
        for (ask, _) in asks.iter().zip(is_free).filter(|(_, is_free)| **is_free) {
            self.counted.charge(transport, ask.rule.name(), ask.key, Counts::Allowed, 0);
        }
    }

    fn unlimited<'a>(
        &self,
        transport: Transport,
        free: Option<&'a Rule>,
        asks: &[Ask<'a>],
        is_free: Vec<bool>,
    ) -> Checked<'a> {
        for ask in asks {
            self.counted.charge(transport, ask.rule.name(), ask.key, Counts::Allowed, 0);
        }
        let rule = free.map_or("", Rule::name);
        Checked { said: Said::Unlimited { rule }, is_free }
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

/// The rule, whatever it means for a key.
fn of(resolved: Resolved<'_>) -> &Rule {
    match resolved {
        Resolved::Limited(rule) | Resolved::Unlimited(rule) | Resolved::Blocked(rule) => rule,
    }
}
