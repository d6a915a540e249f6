//! Model of a store: every (rule, key) in one list, every verb step by step.

use super::answer::{ModelDecision, ModelVerdict};
use super::keyed::Keyed;
use super::receipt::{ModelReceipt, Name, ReceiptCharge};
use crate::algorithm::Usage;
use crate::charge::{Admission, Charge};
use crate::receipt::Applied;
use crate::rule::{Limit, Rule};

/// The model of a store.
#[derive(Debug, Clone, Default)]
pub struct ModelStore {
    states: Vec<(Name, Keyed)>,
    resets: Vec<(Name, u64)>,
    receipts: u64,
    spent: Vec<u64>,
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
                let mut keyed = self.asked(now_us, ask);
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
        let receipt = ModelReceipt { id: self.receipts, at_us: now_us, charges };
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
            let mut keyed = self.get(&charge.name).cloned().unwrap_or_else(|| Keyed::new(&limits));
            keyed.charge_excess(now_us, excess);
            self.put(&charge.name, keyed);
        }
        Applied { applied: true, units: excess * receipt.charges.len() as u64 }
    }

    /// Gives back units, oldest first.
    pub fn credit(&mut self, now_us: u64, rule: &Rule, key: &str, units: u64) -> Applied {
        let Some(keyed) = self.get(&name(rule, key)) else {
            return Applied::default();
        };
        let mut keyed = keyed.aligned(rule.limits(), now_us);
        let units = keyed.credit(rule.limits(), now_us, units);
        self.put(&name(rule, key), keyed);
        Applied { applied: units > 0, units }
    }

    /// Forgets a key; receipts issued until now lose their hold on it.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: &str) -> Applied {
        let name = name(rule, key);
        let Some(keyed) = self.get(&name) else { return Applied::default() };
        let units = keyed.aligned(rule.limits(), now_us).used_max(now_us);
        self.states.retain(|(other, _)| *other != name);
        self.resets.push((name, now_us));
        Applied { applied: units > 0, units }
    }

    /// What is used of every limit of the rule.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: &str) -> Vec<(Limit, Usage)> {
        let keyed = self.current(now_us, rule, key);
        let limits = rule.limits().iter().zip(keyed.models());
        limits.map(|(limit, model)| (*limit, model.usage(limit, now_us))).collect()
    }

    /// Changes a rule live: every state of its name goes on under the new limits.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        for (_, keyed) in self.states.iter_mut().filter(|((of_rule, _), _)| of_rule == rule.name()) {
            *keyed = keyed.changed(rule.limits(), now_us);
        }
    }

    fn get(&self, name: &Name) -> Option<&Keyed> {
        self.states.iter().find(|(other, _)| other == name).map(|(_, keyed)| keyed)
    }

    fn put(&mut self, name: &Name, keyed: Keyed) {
        self.states.retain(|(other, _)| other != name);
        self.states.push((name.clone(), keyed));
    }

    /// The state as `rule` sees it, whether or not the store has it.
    fn current(&self, now_us: u64, rule: &Rule, key: &str) -> Keyed {
        let keyed = self.get(&name(rule, key));
        keyed.map_or_else(|| Keyed::new(rule.limits()), |keyed| keyed.aligned(rule.limits(), now_us))
    }

    fn asked(&self, now_us: u64, ask: &Charge<'_>) -> Keyed {
        self.current(now_us, ask.rule, ask.key.as_str())
    }

    fn verdicts(&self, now_us: u64, admission: &Admission<'_>) -> Vec<ModelVerdict> {
        admission.asks().iter().map(|ask| self.asked(now_us, ask).decide(now_us, ask)).collect()
    }

    /// Marks the receipt as spent, unless it was or has expired; says whether it may still be used.
    fn spend(&mut self, now_us: u64, receipt: &ModelReceipt) -> bool {
        if self.spent.contains(&receipt.id) || now_us >= receipt.expires_us() {
            return false;
        }
        self.spent.push(receipt.id);
        true
    }

    fn give_back(&mut self, now_us: u64, receipt: &ModelReceipt, units_of: impl Fn(u64) -> u64) -> Applied {
        let mut units = 0;
        for charge in &receipt.charges {
            let was_reset =
                self.resets.iter().any(|(name, at_us)| *name == charge.name && *at_us >= receipt.at_us);
            let state = self.states.iter_mut().find(|(name, _)| *name == charge.name);
            if let Some((_, keyed)) = state.filter(|_| !was_reset) {
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
