//! The service and its verbs, over any store, under the rules in force.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use ring::rand::{SecureRandom, SystemRandom};
use slidegate::guard::GuardOptions;
use slidegate::rate::LIMIT_MAX;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::RuleRef;
use slidegate::store::{BoxStore, LimitUsage, SECRET_BYTES, Store};
use slidegate::time::Clock;
use slidegate::{
    Admission, Algorithm, Applied, Charge, ChargeError, ChargeRequest, CheckError, Decision, Limiter, Rate,
    Resolved, Rule, RuleSet,
};

use super::counters::ServiceCounters;
use super::error::{ServiceError, ServiceErrorKind};
use super::inline_bounds::InlineBounds;
use super::settings::Settings;
use super::shared_receipts::{SharedReceipts, share};
use crate::metrics::{ChargeOutcome, StoreCause, Transport};
use crate::receipts::ReceiptCodec;
use crate::rules::LiveRules;
use crate::stores::{HashedKeys, OpenError};
use crate::tokens::LiveTokens;

/// The rule and the key of probes.
pub(super) const PROBE: &str = "slidegate-readyz";
const PROBE_WINDOW: Duration = Duration::from_secs(1);

/// The rules, the limiter and the counters that all threads share.
pub(crate) struct Service {
    /// The rules in force, which a reload replaces.
    pub(crate) live: Arc<LiveRules>,
    /// The tokens in force, which a reload replaces.
    pub(crate) tokens: Arc<LiveTokens>,
    /// Public for reloads, which carry states over with it. The wires use the verbs below, which count.
    pub(crate) limiter: Arc<Limiter<BoxStore>>,
    /// Whether the store is remote: it is not asked by every check.
    is_remote: bool,
    pub(crate) receipts: SharedReceipts,
    pub(crate) counters: ServiceCounters,
    inline_bounds: InlineBounds,
}

/// How a charge resolves, what is used of its limits, and what a check would decide.
#[derive(Debug)]
pub(crate) struct Explained<'a> {
    pub(crate) resolved: Resolved<'a>,
    /// The key or the pattern of the override that replaces the rule's own limits.
    pub(crate) overridden_by: Option<&'a str>,
    pub(crate) usages: Vec<LimitUsage>,
    /// The decision on this charge alone; `None` for an override, and for a cost that can never pass.
    pub(crate) decision: Option<Decision<'a>>,
}

impl Service {
    /// Opens the store of `settings` on the current runtime, which must outlive the service. A server that cannot be
    /// reached is no error: until it is, outage policies answer.
    pub(crate) async fn open(
        settings: &Settings,
        rules: RuleSet,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let url = settings.store_url()?;
        let mut store = url.open_lazily_on_clock(Arc::clone(&clock)).await?;
        if let Some(secret) = &settings.hash_keys_secret {
            store = BoxStore::new(HashedKeys::new(store, secret.0.as_bytes()));
        }
        let is_remote = store.is_remote();
        let counters = ServiceCounters::new(url.kind(), Arc::clone(&clock));
        let limiter = Limiter::guarded(store, GuardOptions::default().on_event(counters.observer()));
        let secret = match limiter.secret_async().await {
            Ok(Some(shared)) => shared,
            Err(error) if !is_remote => return Err(error.into()),
            // A store that no other process shares has no secret: its receipts are valid while this process runs. One that
            // is out of reach is given this one later.
            Ok(None) | Err(_) => {
                let mut drawn = [0; SECRET_BYTES];
                SystemRandom::new().fill(&mut drawn).map_err(|_| OpenError::Random)?;
                drawn
            }
        };
        let receipts = ReceiptCodec::new(&secret);
        let inline_bounds = InlineBounds::new(&settings.bounds, Arc::clone(&clock));
        let (live, tokens) = (LiveRules::new(rules), LiveTokens::new(settings.tokens()));
        let (live, tokens) = (Arc::new(live), Arc::new(tokens));
        let receipts = SharedReceipts::new(receipts, clock);
        Ok(Self { live, tokens, limiter: Arc::new(limiter), is_remote, receipts, counters, inline_bounds })
    }

    /// The rules in force. A request loads them once.
    pub(crate) fn rules(&self) -> Guard<Arc<RuleSet>> {
        self.live.load()
    }

    /// All metrics in the Prometheus text format.
    pub(crate) fn exposition(&self) -> String {
        self.counters.metrics.expose(&self.live.load(), &self.limiter.stats().into())
    }

    /// Asks the store about a key of the server's own; returns why it fails requests of all keys, if it does. Writes
    /// only while writes are known to fail: then an answer to a read proves nothing. It asks while the circuit breaker is
    /// open, too: a server that is not ready gets no requests that could close it.
    pub(crate) async fn probe_store(&self) -> Option<StoreCause> {
        let rule = Rule::builder(PROBE).limit(Rate::new(LIMIT_MAX, PROBE_WINDOW).ok()?);
        let rule = rule.algorithm(Algorithm::FixedWindow).build().ok()?;
        let health = &self.counters.store_health;
        let writes = health.failing().iter().any(|failing| failing.cause.fails_writes_only());
        let failure = if writes {
            let limiter = self.limiter.probing();
            let limiter = limiter.with_outage_policy(OnStoreError::Deny);
            self.counters.call_store("probe", limiter.check_async(&rule, PROBE)).await.err()?
        } else {
            let limiter = self.limiter.probing();
            self.counters.call_store("probe", limiter.inspect_async(&rule, PROBE)).await.err()?
        };
        let CheckError::Store(error) = failure else { return None };
        Some(StoreCause::of(&error)).filter(|cause| cause.fails_all())
    }

    /// Decides and, if every charge passes, makes all of them.
    pub(crate) async fn check<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<OnStoreError>,
    ) -> Result<Decision<'a>, ServiceError> {
        let admission = self.admission(transport, rules, requests)?;
        let limiter = self.limiter.with_outage_policy(policy);
        let decided = match limiter.try_decide(&admission) {
            Some(decided) => {
                // The deny cache or the outage policy answered for a remote store, and a cached denial says nothing
                // about it.
                if !self.is_remote || decided.as_ref().map_or(true, Decision::degraded) {
                    self.record_store_health("check", &admission, &decided);
                }
                decided
            }
            None => self.call_store("check", &admission, limiter.decide_async(&admission)).await,
        };
        if decided.as_ref().is_ok_and(Decision::is_charged) {
            self.share_secret();
        }
        self.count(transport, &admission, decided)
    }

    /// Decides several requests, each on its own, and answers in their order.
    pub(crate) async fn check_batch<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        batch: &[(&'a [ChargeRequest<'a>], Option<OnStoreError>)],
    ) -> Vec<Result<Decision<'a>, ServiceError>> {
        let resolved: Vec<_> =
            batch.iter().map(|(requests, _)| self.admission(transport, rules, requests)).collect();
        let admissions: Vec<_> = resolved.iter().flatten().cloned().collect();
        let policies =
            batch.iter().zip(&resolved).filter(|(_, one)| one.is_ok()).map(|((_, policy), _)| *policy);
        let policies: Vec<_> = policies.collect();
        let call = self.limiter.check_batch_each_async(&admissions, |index| policies[index]);
        let decided = self.counters.timed("check_batch", call).await;
        if decided.iter().flatten().any(Decision::is_charged) {
            self.share_secret();
        }
        let mut decided = decided.into_iter();
        let answered = resolved.into_iter().map(|admission| {
            let (admission, decided) = (admission?, decided.next().expect("an answer for each admission"));
            self.record_store_health("check_batch", &admission, &decided);
            self.count(transport, &admission, decided)
        });
        answered.collect()
    }

    /// Decides without charging.
    pub(crate) async fn peek<'a>(
        &self,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
        policy: Option<OnStoreError>,
    ) -> Result<Decision<'a>, ServiceError> {
        let admission = rules.admission(requests).map_err(|error| ServiceError::of(error, requests.len()))?;
        self.inline_bounds.check_windows(requests)?;
        let limiter = self.limiter.with_outage_policy(policy);
        Ok(self.call_store("peek", &admission, limiter.peek_admission_async(&admission)).await?)
    }

    /// Explains how a charge would be decided; charges nothing.
    pub(crate) async fn explain<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Explained<'a>, ServiceError> {
        let resolved = self.resolve(rules, request)?;
        let overridden_by = match &request.rule {
            RuleRef::Named(name) => rules.overridden_by(name, &request.key),
            RuleRef::Inline(_) => None,
        };
        let usages = self.usages(resolved.charge()).await?;
        let decision = match (resolved, Admission::new(&[resolved.charge()])) {
            (Resolved::Limited(_), Ok(admission)) => {
                let limiter = self.limiter.with_outage_policy(OnStoreError::Deny);
                match self.counters.call_store("peek", limiter.peek_admission_async(&admission)).await {
                    Err(CheckError::Charge(ChargeError::NeverInShard { .. })) => None,
                    decided => Some(decided?),
                }
            }
            (Resolved::Limited(_), Err(error)) => match ServiceError::from(error) {
                // A cost above the limit is an explanation, not an error.
                ServiceError { kind: ServiceErrorKind::Never, .. } => None,
                failure => return Err(failure),
            },
            _ => None,
        };
        Ok(Explained { resolved, overridden_by, usages, decision })
    }

    /// Takes back a whole admission.
    pub(crate) async fn refund(&self, receipt: &str) -> Result<Applied, ServiceError> {
        let receipt = self.receipts.read(&self.limiter, receipt).await?;
        Ok(self.counters.call_store("refund", self.limiter.refund_async(&receipt)).await?)
    }

    /// Replaces the cost of an admission by the units really spent.
    pub(crate) async fn settle(&self, receipt: &str, actual: u64) -> Result<Applied, ServiceError> {
        let receipt = self.receipts.read(&self.limiter, receipt).await?;
        Ok(self.counters.call_store("settle", self.limiter.settle_async(&receipt, actual)).await?)
    }

    /// Gives back the oldest units of a key.
    pub(crate) async fn credit(&self, request: &ChargeRequest<'_>) -> Result<Applied, ServiceError> {
        let rules = self.rules();
        let charge = self.resolve(&rules, request)?.charge();
        let call = self.limiter.credit_async(charge.rule(), charge.key(), charge.cost());
        Ok(self.counters.call_store("credit", call).await?)
    }

    /// Forgets a key.
    pub(crate) async fn reset(&self, request: &ChargeRequest<'_>) -> Result<Applied, ServiceError> {
        let rules = self.rules();
        let charge = self.resolve(&rules, request)?.charge();
        let call = self.limiter.reset_async(charge.rule(), charge.key());
        Ok(self.counters.call_store("reset", call).await?)
    }

    /// What is used of every limit that applies to a key.
    pub(crate) async fn inspect<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<(&'a Rule, Vec<LimitUsage>), ServiceError> {
        let charge = self.resolve(rules, request)?.charge();
        Ok((charge.rule(), self.usages(charge).await?))
    }

    fn resolve<'a>(
        &self,
        rules: &'a RuleSet,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Resolved<'a>, ServiceError> {
        let resolved = rules.resolve(request)?;
        self.inline_bounds.check_windows(std::slice::from_ref(request))?;
        Ok(resolved)
    }

    async fn usages(&self, state: Charge<'_>) -> Result<Vec<LimitUsage>, ServiceError> {
        let call = self.limiter.inspect_async(state.rule(), state.key());
        Ok(self.counters.call_store("inspect", call).await?)
    }

    /// The charges of a request as an admission. Counts a blocked charge as denied.
    fn admission<'a>(
        &self,
        transport: Transport,
        rules: &'a RuleSet,
        requests: &'a [ChargeRequest<'a>],
    ) -> Result<Admission<'a>, ServiceError> {
        let admission = rules.admission(requests).map_err(|error| {
            let failure = ServiceError::of(error, requests.len());
            if let (ServiceErrorKind::Blocked, Some(request)) =
                (failure.kind, requests.get(failure.at.unwrap_or(0)))
            {
                self.counters.count_charge(
                    transport,
                    request.rule.name(),
                    &request.key,
                    ChargeOutcome::Denied,
                    0,
                );
            }
            failure
        })?;
        self.inline_bounds.check_windows(requests)?;
        self.inline_bounds.register(requests)?;
        Ok(admission)
    }

    /// Calls the store, and counts the duration and a failure. Unlimited keys need no store, so nothing is counted.
    async fn call_store<'a>(
        &self,
        operation: &'static str,
        admission: &Admission<'_>,
        call: impl Future<Output = Result<Decision<'a>, CheckError>>,
    ) -> Result<Decision<'a>, CheckError> {
        if admission.asks().is_empty() {
            return call.await;
        }
        self.counters.call_store(operation, call).await
    }

    /// Once a second while receipts are signed, gives the store their secret in case that it has lost it.
    fn share_secret(&self) {
        if self.is_remote && self.receipts.is_due() {
            let (codec, limiter) = (Arc::clone(&self.receipts.codec), Arc::clone(&self.limiter));
            // A failure shows in the next answer of the store.
            tokio::spawn(async move { share(&codec, &limiter).await.map(drop) });
        }
    }

    /// Records whether the store answered. Unlimited keys need no store.
    fn record_store_health(
        &self,
        operation: &'static str,
        admission: &Admission<'_>,
        decided: &Result<Decision<'_>, CheckError>,
    ) {
        if !admission.asks().is_empty() {
            self.counters.record_store_health(operation, decided);
        }
    }

    /// Counts a decision, or a refusal because the store failed.
    fn count<'a>(
        &self,
        transport: Transport,
        admission: &Admission<'_>,
        decided: Result<Decision<'a>, CheckError>,
    ) -> Result<Decision<'a>, ServiceError> {
        match &decided {
            Ok(decision) => self.counters.count_decision(transport, decision),
            Err(_) => self.counters.count_refusal(transport, admission),
        }
        Ok(decided?)
    }
}
