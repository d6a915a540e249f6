//! The differential test: the same trace through a store and through the model must give the same answers,
//! field by field.

use super::coverage::{Coverage, Event};
use super::expiring::ExpiringStore;
use super::model::{ModelDecision, ModelReceipt, ModelStore};
use super::trace::{Ask, KEYS, Operation, Step, Trace};
use crate::algorithm::Usage;
use crate::charge::{Admission, Charge};
use crate::key::Key;
use crate::receipt::Receipt;
use crate::rule::{Algorithm, Limit, Rule};
use crate::store::{Call, LimitUsage, Update};

/// Runs a trace of `steps` through an empty store, and counts its events. The error names the seed, the step and the
/// two answers.
pub async fn run<S: ExpiringStore>(
    store: &S,
    seed: u64,
    algorithm: Algorithm,
    steps: usize,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let judged = run_trace(store, Trace::new(seed, algorithm), steps, coverage).await;
    judged.map_err(|wrong| format!("seed {seed}, {algorithm}, {wrong}"))
}

/// Runs a given trace; the error names the step and the two answers.
pub async fn run_trace<S: ExpiringStore>(
    store: &S,
    trace: Trace,
    steps: usize,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let notes = store.noted_us().await.is_some();
    let mut run = Run {
        trace,
        store,
        model: match (S::FOLLOWS_CLOCK, notes) {
            (true, _) => ModelStore::following_the_clock(),
            (false, true) => ModelStore::new(),
            (false, false) => ModelStore::without_watermark(),
        },
        receipts: Vec::new(),
        resets: Vec::new(),
        coverage,
        before_us: 0,
        looks: false,
    };
    for index in 0..steps {
        let costs: Vec<u64> = run.receipts.iter().map(|(receipt, _)| receipt.charges()[0].cost()).collect();
        let rules_before = run.trace.rules().to_vec();
        let step = run.trace.step(&run.model, &costs);
        run.looks = (index + 1) % S::INSPECT_EVERY == 0 || index + 1 == steps;
        let judged = run.step(&step, &rules_before).await;
        judged.map_err(|wrong| format!("step {index} at {}: {wrong}\n{step:?}", step.at_us))?;
    }
    Ok(())
}

struct Run<'a, S> {
    trace: Trace,
    store: &'a S,
    model: ModelStore,
    receipts: Vec<(Receipt, ModelReceipt)>,
    /// Rule, key, and how many receipts had been issued then.
    resets: Vec<(String, String, usize)>,
    coverage: &'a mut Coverage,
    before_us: u64,
    /// Whether this step is followed by an inspection of all states.
    looks: bool,
}

impl<S: ExpiringStore> Run<'_, S> {
    async fn step(&mut self, step: &Step, rules_before: &[Rule]) -> Result<(), String> {
        let now_us = step.at_us;
        match &step.operation {
            Operation::Check(asks) => self.check(now_us, asks, rules_before).await?,
            Operation::Peek(asks) => self.peek(now_us, asks, rules_before).await?,
            Operation::Refund { receipt } => self.refund(now_us, *receipt, rules_before).await?,
            Operation::Settle { receipt, actual } => {
                self.settle(now_us, *receipt, *actual, rules_before).await?;
            }
            Operation::Credit(ask) => {
                let rule = &rules_before[ask.rule];
                let key = key_of(KEYS[ask.key]);
                let credited = self
                    .store
                    .update(Call::at_us(now_us), Update::Credit(Charge::new(rule, key, ask.cost)))
                    .await;
                let real = credited.map_err(|error| error.to_string())?;
                same(&real, &self.model.credit(now_us, rule, KEYS[ask.key], ask.cost))?;
                if real.applied {
                    self.coverage.count(rule.algorithm(), Event::Credited);
                }
            }
            Operation::Reset { rule, key } => {
                let (rule, key) = (&rules_before[*rule], KEYS[*key]);
                let reset = self.store.update(Call::at_us(now_us), Update::Reset(rule, key_of(key))).await;
                let real = reset.map_err(|error| error.to_string())?;
                same(&real, &self.model.reset(now_us, rule, key))?;
                self.resets.push((rule.name().to_owned(), key.to_owned(), self.receipts.len()));
                self.coverage.count(rule.algorithm(), Event::Reset);
            }
            Operation::Inspect { rule, key } => {
                self.inspect(now_us, &rules_before[*rule], KEYS[*key]).await?;
                self.coverage.count(rules_before[*rule].algorithm(), Event::Inspected);
            }
            Operation::Sweep => self.sweep(now_us).await?,
            Operation::Change { rule, changed } => {
                let taken_over = self.store.change(Call::at_us(now_us), changed).await;
                taken_over.map_err(|error| error.to_string())?;
                self.model.change(now_us, changed);
                let old = &rules_before[*rule];
                let kept =
                    changed.limits().iter().zip(old.limits()).all(|(new, old)| new.keeps_state_of(old));
                let event = if kept { Event::LimitChanged } else { Event::GeometryChanged };
                self.coverage.count(old.algorithm(), event);
                self.coverage.count(changed.algorithm(), event);
            }
        }
        if let Some(noted_us) = self.store.noted_us().await {
            same(&noted_us, &self.model.noted_us())?;
        }
        self.forget().await?;
        self.count_time(now_us);
        if self.looks {
            let rules = self.trace.rules().to_vec();
            for (rule, key) in rules.iter().flat_map(|rule| KEYS.map(|key| (rule, key))) {
                self.inspect(now_us, rule, key).await?;
            }
        }
        Ok(())
    }

    async fn check(&mut self, now_us: u64, asks: &[Ask], rules: &[Rule]) -> Result<(), String> {
        let Some(admission) = admission(rules, asks) else { return Ok(()) };
        let (decision, receipt) = self.model.check(now_us, &admission);
        let looks = self.looks && !decision.allowed;
        let before = if looks { self.snapshots(asks, rules).await } else { Vec::new() };
        let outcome = self.store.check(Call::at_us(now_us), &admission).await;
        let outcome = outcome.map_err(|error| error.to_string())?;
        same(&ModelDecision::of(&outcome), &decision)?;
        same(&outcome.receipt().is_some(), &receipt.is_some())?;
        if looks && self.snapshots(asks, rules).await != before {
            return Err("a denial changed a state".to_owned());
        }
        self.trace.saw_wait(decision.retry_after_us);
        for (ask, verdict) in asks.iter().zip(&decision.verdicts) {
            let rule = &rules[ask.rule];
            let event = if decision.allowed && verdict.allowed { Event::Admitted } else { Event::Denied };
            self.count(rule, event);
            if asks.len() > 1 {
                self.count(rule, Event::SeveralCharges);
            }
            if admission.asks().len() < asks.len() {
                self.count(rule, Event::Summed);
            }
        }
        self.receipts.extend(outcome.receipt().zip(receipt));
        Ok(())
    }

    async fn peek(&mut self, now_us: u64, asks: &[Ask], rules: &[Rule]) -> Result<(), String> {
        let Some(admission) = admission(rules, asks) else { return Ok(()) };
        let real =
            self.store.peek(Call::at_us(now_us), &admission).await.map_err(|error| error.to_string())?;
        self.model.follow_clock(now_us);
        same(&ModelDecision::of(&real), &self.model.peek(now_us, &admission))?;
        for ask in asks {
            self.count(&rules[ask.rule], Event::Peeked);
        }
        Ok(())
    }

    async fn refund(&mut self, now_us: u64, index: usize, rules: &[Rule]) -> Result<(), String> {
        let (receipt, model_receipt) = self.receipts[index].clone();
        let refunded = self.store.update(Call::at_us(now_us), Update::Refund(&receipt)).await;
        let real = refunded.map_err(|error| error.to_string())?;
        same(&real, &self.model.refund(now_us, &model_receipt))?;
        let event = if real.applied { Event::Refunded } else { Event::RefundedNothing };
        self.count_receipt(&receipt, rules, event);
        for charge in receipt.charges() {
            let reset = |(rule, key, issued): &(String, String, usize)| {
                rule == charge.rule() && key == charge.key().identity() && index < *issued
            };
            if self.resets.iter().any(reset) {
                self.count_receipt(&receipt, rules, Event::RefundedAfterReset);
            }
        }
        Ok(())
    }

    async fn settle(&mut self, now_us: u64, index: usize, actual: u64, rules: &[Rule]) -> Result<(), String> {
        let (receipt, model_receipt) = self.receipts[index].clone();
        // Rejected settlements change nothing; other tests check which are rejected.
        let Ok(real) = self.store.update(Call::at_us(now_us), Update::Settle(&receipt, actual)).await else {
            self.model.presented(now_us);
            return Ok(());
        };
        same(&real, &self.model.settle(now_us, &model_receipt, actual))?;
        let event = match actual.cmp(&receipt.charges()[0].cost()) {
            _ if !real.applied => Event::RefundedNothing,
            std::cmp::Ordering::Less => Event::SettledForLess,
            std::cmp::Ordering::Equal => Event::SettledAsCharged,
            std::cmp::Ordering::Greater => Event::SettledForMore,
        };
        self.count_receipt(&receipt, rules, event);
        Ok(())
    }

    /// Snapshots of the states of the asks, if the store has them.
    async fn snapshots(&self, asks: &[Ask], rules: &[Rule]) -> Vec<Option<String>> {
        let mut snapshots = Vec::with_capacity(asks.len());
        for ask in asks {
            snapshots.push(self.store.snapshot(&rules[ask.rule], key_of(KEYS[ask.key])).await);
        }
        snapshots
    }

    /// Number of states in the store.
    async fn present(&self) -> usize {
        let mut present = 0;
        for (rule, key) in self.names() {
            present += usize::from(self.store.has_state(rule, key_of(key)).await);
        }
        present
    }

    fn names(&self) -> impl Iterator<Item = (&Rule, &'static str)> {
        self.trace.rules().iter().flat_map(|rule| KEYS.map(|key| (rule, key)))
    }

    async fn sweep(&mut self, now_us: u64) -> Result<(), String> {
        let before = self.present().await;
        let Some(swept) = self.store.sweep(now_us).await else { return Ok(()) };
        self.model.note(now_us);
        same(&swept, &(before - self.present().await))?;
        self.forget().await?;
        for (rule, key) in self.names() {
            // A state of dropped edges may be kept for one bucket longer than it counts.
            let longer_us = rule.limits().iter().map(Limit::bucket_us).max().unwrap_or(0);
            if self.model.has_ended(rule, key, self.model.noted_us().saturating_sub(longer_us)) {
                return Err(format!("{} {key} has ended and was not swept", rule.name()));
            }
        }
        Ok(())
    }

    /// Drops in the model the states that the store has dropped; an error if the store dropped one too early. The store
    /// may drop an ended state at any time.
    async fn forget(&mut self) -> Result<(), String> {
        for (rule, key) in self.trace.rules().iter().flat_map(|rule| KEYS.map(|key| (rule, key))) {
            if self.model.knows(rule, key) && !self.store.has_state(rule, key_of(key)).await {
                if !self.model.may_forget(rule, key) {
                    return Err(format!("{} {key} was forgotten too early", rule.name()));
                }
                self.model.forget(rule, key);
                self.coverage.count(rule.algorithm(), Event::Forgotten);
            }
        }
        Ok(())
    }

    async fn inspect(&mut self, now_us: u64, rule: &Rule, key: &str) -> Result<(), String> {
        self.model.follow_clock(now_us);
        let inspected = self.store.inspect(Call::at_us(now_us), rule, key_of(key)).await;
        let of_limit = |limit: LimitUsage| {
            let reset_after_us = u64::try_from(limit.reset_after.as_micros()).expect("windows fit u64");
            (limit.limit, Usage { used: limit.used, reset_after_us })
        };
        let real: Vec<_> = inspected.map_err(|error| error.to_string())?.into_iter().map(of_limit).collect();
        same(&real, &self.model.inspect(now_us, rule, key))
            .map_err(|wrong| format!("inspect {} {key}: {wrong}", rule.name()))
    }

    fn count(&mut self, rule: &Rule, event: Event) {
        self.coverage.count(rule.algorithm(), event);
        let limit = rule.limits()[0];
        if u128::from(limit.units()) * u128::from(limit.window_us()) > u128::from(u64::MAX) {
            self.coverage.count(rule.algorithm(), Event::Wide);
        }
    }

    fn count_receipt(&mut self, receipt: &Receipt, rules: &[Rule], event: Event) {
        for charge in receipt.charges() {
            if let Some(rule) = rules.iter().find(|rule| rule.name() == charge.rule()) {
                self.coverage.count(rule.algorithm(), event);
            }
        }
    }

    fn count_time(&mut self, now_us: u64) {
        let limit = self.trace.rules()[0].limits()[0];
        let (now, before) = (now_us / limit.window_us(), self.before_us / limit.window_us());
        let event = match now_us.cmp(&self.before_us) {
            std::cmp::Ordering::Less => Some(Event::SetBack),
            std::cmp::Ordering::Equal => Some(Event::SameInstant),
            std::cmp::Ordering::Greater if now > before + 2 => Some(Event::Idle),
            std::cmp::Ordering::Greater if now > before => Some(Event::Rolled),
            std::cmp::Ordering::Greater => None,
        };
        if let Some(event) = event {
            self.coverage.count(limit.algorithm(), event);
        }
        self.before_us = now_us;
    }
}

fn same<T: PartialEq + std::fmt::Debug>(real: &T, model: &T) -> Result<(), String> {
    if real == model { Ok(()) } else { Err(format!("\n  store {real:?}\n  model {model:?}")) }
}

/// `None` if a cost can never pass: no store is asked then.
fn admission<'a>(rules: &'a [Rule], asks: &[Ask]) -> Option<Admission<'a>> {
    let charges: Vec<_> = asks.iter().map(|&ask| charge(rules, ask)).collect();
    Admission::new(&charges).ok()
}

fn charge(rules: &[Rule], ask: Ask) -> Charge<'_> {
    Charge::new(&rules[ask.rule], key_of(KEYS[ask.key]), ask.cost)
}

fn key_of(text: &str) -> Key<'_> {
    Key::new(text).expect("the keys of traces are valid")
}
