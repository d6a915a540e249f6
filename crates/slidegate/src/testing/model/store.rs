//! Model of a store: every (rule, key) in one list, every verb step by step.

use super::answer::{ModelDecision, ModelVerdict};
use super::keyed::Keyed;
use super::receipt::{ModelReceipt, Name, ReceiptCharge};
use crate::algorithm::Usage;
use crate::charge::Admission;
use crate::receipt::Applied;
use crate::rule::{Limit, Rule};

/// The model of a store.
#[derive(Debug, Clone, Default)]
pub struct ModelStore {
    states: Vec<(Name, Keyed)>,
    /// How many states were begun.
    begun: u64,
    receipts: u64,
    spent: Vec<u64>,
    /// The latest time at which a receipt was presented: what had expired then stays expired.
    latest_us: u64,
}

impl ModelStore {
    /// A store that has seen nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides without charging.
    #[must_use]
    pub fn peek(&self, now_us: u64, admission: &Admission<'_>) -> ModelDecision {
        decision(admission, &self.verdicts(now_us, admission))
    }

    /// Decides, and charges if admitted.
    pub fn check(&mut self, now_us: u64, admission: &Admission<'_>) -> (ModelDecision, Option<ModelReceipt>) {
        let mut verdicts = self.verdicts(now_us, admission);
        let before = decision(admission, &verdicts);
        if !before.allowed {
            return (before, None);
        }
        let mut charges = Vec::new();
        for (ask, verdict) in admission.asks().iter().zip(&mut verdicts) {
            if verdict.allowed {
                self.begun += 1;
                let mut keyed = self.current(ask.rule, ask.key.as_str());
                let places = keyed.charge(ask.rule.limits(), now_us, ask.cost);
                *verdict = keyed.admitted(now_us, ask.rule);
                self.put(&name(ask.rule, ask.key.as_str()), keyed);
                charges.push(ReceiptCharge {
                    name: name(ask.rule, ask.key.as_str()),
                    cost: ask.cost,
                    places,
                });
            }
        }
        self.receipts += 1;
        let receipt = ModelReceipt { id: self.receipts, charges };
        (decision(admission, &verdicts), (!receipt.charges.is_empty()).then_some(receipt))
    }

    /// Gives an admission back.
    pub fn refund(&mut self, now_us: u64, receipt: &ModelReceipt) -> Applied {
        if !self.spend(now_us, receipt) {
            return Applied::default();
        }
        self.give_back(now_us, receipt, |cost| cost)
    }

    /// Corrects an admission, all of whose charges have the same cost, to what was really used.
    pub fn settle(&mut self, now_us: u64, receipt: &ModelReceipt, actual: u64) -> Applied {
        if !self.spend(now_us, receipt) {
            return Applied::default();
        }
        let cost = receipt.charges[0].cost;
        if actual < cost {
            return self.give_back(now_us, receipt, |cost| cost - actual);
        }
        let excess = actual - cost;
        for charge in receipt.charges.iter().filter(|_| excess > 0) {
            let limits: Vec<Limit> = charge.places.iter().map(|place| place.limit).collect();
            self.begun += 1;
            let known = self.get(&charge.name).cloned();
            let mut keyed = known.unwrap_or_else(|| Keyed::new(&limits, self.begun));
            keyed.charge_excess(now_us, excess);
            self.put(&charge.name, keyed);
        }
        Applied { applied: true, units: excess * receipt.charges.len() as u64 }
    }

    /// Gives back units, oldest first.
    pub fn credit(&mut self, now_us: u64, rule: &Rule, key: &str, units: u64) -> Applied {
        self.begun += 1;
        let Some(keyed) = self.get(&name(rule, key)) else {
            return Applied::default();
        };
        let mut keyed = keyed.aligned(rule.limits(), self.begun);
        let units = keyed.credit(rule.limits(), now_us, units);
        self.put(&name(rule, key), keyed);
        Applied { applied: units > 0, units }
    }

    /// Forgets a key; receipts issued until now lose their hold on it.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: &str) -> Applied {
        let name = name(rule, key);
        let Some(keyed) = self.get(&name) else { return Applied::default() };
        let units = keyed.used_max(now_us);
        self.states.retain(|(other, _)| *other != name);
        Applied { applied: units > 0, units }
    }

    /// What is used of every limit of the rule.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: &str) -> Vec<(Limit, Usage)> {
        let keyed = self.current(rule, key);
        let limits = rule.limits().iter().zip(keyed.models());
        limits.map(|(limit, model)| (*limit, model.usage(limit, now_us))).collect()
    }

    /// Changes a rule live: every state of its name goes on under the new limits.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        self.begun += 1;
        for (_, keyed) in self.states.iter_mut().filter(|((of_rule, _), _)| of_rule == rule.name()) {
            *keyed = keyed.changed(rule.limits(), self.begun, now_us);
        }
    }

    /// A receipt was presented, whatever became of it: what has expired by now stays expired.
    pub fn presented(&mut self, now_us: u64) {
        self.latest_us = self.latest_us.max(now_us);
    }

    /// Forgets every state of which nothing is used; says how many.
    pub fn sweep(&mut self, now_us: u64) -> usize {
        let before = self.states.len();
        self.states.retain(|(_, keyed)| keyed.used_max(now_us) > 0);
        before - self.states.len()
    }

    fn get(&self, name: &Name) -> Option<&Keyed> {
        self.states.iter().find(|(other, _)| other == name).map(|(_, keyed)| keyed)
    }

    fn put(&mut self, name: &Name, keyed: Keyed) {
        self.states.retain(|(other, _)| other != name);
        self.states.push((name.clone(), keyed));
    }

    /// The state as `rule` sees it, whether or not the store has it.
    fn current(&self, rule: &Rule, key: &str) -> Keyed {
        let keyed = self.get(&name(rule, key));
        let fresh = || Keyed::new(rule.limits(), self.begun);
        keyed.map_or_else(fresh, |keyed| keyed.aligned(rule.limits(), self.begun))
    }

    fn verdicts(&self, now_us: u64, admission: &Admission<'_>) -> Vec<ModelVerdict> {
        let asks = admission.asks().iter();
        asks.map(|ask| self.current(ask.rule, ask.key.as_str()).decide(now_us, ask)).collect()
    }

    /// Marks the receipt as spent, unless it was or has expired; says whether it may still be used.
    fn spend(&mut self, now_us: u64, receipt: &ModelReceipt) -> bool {
        self.presented(now_us);
        if self.spent.contains(&receipt.id) || self.latest_us >= receipt.expires_us() {
            return false;
        }
        self.spent.push(receipt.id);
        true
    }

    fn give_back(&mut self, now_us: u64, receipt: &ModelReceipt, units_of: impl Fn(u64) -> u64) -> Applied {
        let mut units = 0;
        for charge in &receipt.charges {
            let state = self.states.iter_mut().find(|(name, _)| *name == charge.name);
            if let Some((_, keyed)) = state {
                units += keyed.refund(now_us, &charge.places, units_of(charge.cost));
            }
        }
        Applied { applied: units > 0, units }
    }
}

fn name(rule: &Rule, key: &str) -> Name {
    (rule.name().to_owned(), key.to_owned())
}

/// Every charge shows the verdict of its state.
fn decision(admission: &Admission<'_>, verdicts: &[ModelVerdict]) -> ModelDecision {
    ModelDecision::joined(admission.ask_of_charge().iter().map(|&ask| verdicts[ask].clone()).collect())
}

#[cfg(test)]
mod tests;
