//! Model of a store: every (rule, key) in one list, every verb step by step.

use super::decision::{ModelDecision, ModelVerdict};
use super::key_model::KeyModel;
use super::limit_model::{LimitModel, ModelPlace};
use super::receipt::{ModelReceipt, Name, ReceiptCharge};
use crate::algorithm::Usage;
use crate::charge::{Admission, Slot};
use crate::receipt::Applied;
use crate::rule::{Algorithm, Limit, Rule};

/// The model of a store.
#[derive(Debug, Clone, Default)]
pub struct ModelStore {
    states: Vec<(Name, KeyModel)>,
    /// Charges so far.
    order: u64,
    voids: Vec<VoidedReceipts>,
    receipts: Vec<ModelReceipt>,
    spent: Vec<u64>,
    /// The latest time at which a receipt was presented: what had expired then stays expired.
    latest_us: u64,
    /// Time has reached this for sure.
    noted_us: u64,
    without_watermark: bool,
}

/// Time is noted when it has moved on by this much.
const NOTED_STEP_US: u64 = 1_000;

/// Receipts of charges up to `order` give nothing back.
#[derive(Debug, Clone)]
struct VoidedReceipts {
    name: Name,
    /// Of states of this geometry only.
    limit: Option<Limit>,
    order: u64,
}

/// Whether a charge gives nothing back at one of its places.
fn is_void(noted_us: u64, voids: &[VoidedReceipts], charge: &ReceiptCharge, place: &ModelPlace) -> bool {
    LimitModel::expires_us(place) <= noted_us || voids.iter().any(|void| void.covers(charge, &place.limit))
}

impl VoidedReceipts {
    fn covers(&self, charge: &ReceiptCharge, limit: &Limit) -> bool {
        self.name == charge.name
            && self.limit.is_none_or(|of| limit.keeps_state_of(&of))
            && charge.order <= self.order
    }
}

impl ModelStore {
    /// A store that has seen nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The model of a store that does not note the time of its charges, and so never forgets by it.
    #[must_use]
    pub fn without_watermark() -> Self {
        Self { without_watermark: true, ..Self::default() }
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
                self.order += 1;
                self.void_if_geometry_differs(ask.rule, ask.key.as_str());
                let mut key_model = self.current(ask.rule, ask.key.as_str());
                let places = key_model.charge(ask.rule.limits(), now_us, ask.cost);
                *verdict = key_model.admitted(now_us, ask.rule);
                self.put(&name(ask.rule, ask.key.as_str()), key_model);
                let name = name(ask.rule, ask.key.as_str());
                charges.push(ReceiptCharge { name, order: self.order, cost: ask.cost, places });
            }
        }
        if !self.without_watermark && !charges.is_empty() && now_us >= self.noted_us + NOTED_STEP_US {
            self.noted_us = now_us;
        }
        let receipt = ModelReceipt { id: self.receipts.len() as u64, charges };
        let receipt = Some(receipt).filter(|receipt| !receipt.charges.is_empty());
        self.receipts.extend(receipt.clone());
        (decision(admission, &verdicts), receipt)
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
            let known = self.get(&charge.name).cloned();
            let mut key_model = known.unwrap_or_else(|| KeyModel::new(&limits));
            key_model.charge_excess(now_us, excess);
            self.put(&charge.name, key_model);
        }
        Applied { applied: true, units: excess * receipt.charges.len() as u64 }
    }

    /// Gives back units, oldest first.
    pub fn credit(&mut self, now_us: u64, rule: &Rule, key: &str, units: u64) -> Applied {
        self.void_if_geometry_differs(rule, key);
        let Some(key_model) = self.get(&name(rule, key)) else {
            return Applied::default();
        };
        let mut key_model = key_model.adapted_to(rule.limits());
        let units = key_model.credit(rule.limits(), now_us, units);
        self.put(&name(rule, key), key_model);
        Applied { applied: units > 0, units }
    }

    /// Forgets a key; receipts issued until now lose their hold on it.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: &str) -> Applied {
        let name = name(rule, key);
        let Some(key_model) = self.get(&name) else { return Applied::default() };
        let units = key_model.used_max(now_us);
        self.states.retain(|(other, _)| *other != name);
        self.voids.push(VoidedReceipts { name, limit: None, order: self.order });
        Applied { applied: units > 0, units }
    }

    /// What is used of every limit of the rule.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: &str) -> Vec<(Limit, Usage)> {
        let key_model = self.current(rule, key);
        let limits = rule.limits().iter().zip(key_model.models());
        limits.map(|(limit, model)| (*limit, model.usage(limit, now_us))).collect()
    }

    /// Changes a rule live: every state of its name goes on under the new limits.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        for (name, key_model) in self.states.iter_mut().filter(|((of_rule, _), _)| of_rule == rule.name()) {
            for limit in rule.limits() {
                if !key_model.models().iter().any(|model| limit.keeps_state_of(model.limit())) {
                    self.voids.push(VoidedReceipts {
                        name: name.clone(),
                        limit: Some(*limit),
                        order: self.order,
                    });
                }
            }
            *key_model = key_model.changed(rule.limits(), now_us);
        }
    }

    /// A receipt was presented, whatever became of it: what has expired by now stays expired.
    pub fn presented(&mut self, now_us: u64) {
        self.latest_us = self.latest_us.max(now_us).max(self.noted_us);
    }

    /// Time is at least so late.
    pub fn note(&mut self, now_us: u64) {
        self.noted_us = self.noted_us.max(now_us);
    }

    /// The latest time that was noted.
    #[must_use]
    pub fn noted_us(&self) -> u64 {
        self.noted_us
    }

    /// Whether the store knows the key.
    #[must_use]
    pub fn knows(&self, rule: &Rule, key: &str) -> bool {
        self.get(&name(rule, key)).is_some()
    }

    /// Whether the state of a key may be forgotten: by the time that was noted nothing is used, and every
    /// receipt that charged it was spent or has expired, or stands in a log that credits have emptied: at a past stamp
    /// nothing is charged again while time moves forward.
    #[must_use]
    pub fn may_forget(&self, rule: &Rule, key: &str) -> bool {
        let name = name(rule, key);
        let Some(key_model) = self.get(&name) else { return true };
        let fits = |place: &ModelPlace| {
            key_model.models().iter().any(|model| model.limit().keeps_state_of(&place.limit))
        };
        let gives_nothing = |charge: &ReceiptCharge| {
            let mut places = charge.places.iter().filter(|place| fits(place));
            places.all(|place| {
                let is_past = place.at < self.noted_us.into();
                let is_emptied = place.limit.algorithm() == Algorithm::SlidingLog && is_past;
                is_emptied || is_void(self.noted_us, &self.voids, charge, place)
            })
        };
        let unspent = self.receipts.iter().filter(|receipt| !self.spent.contains(&receipt.id));
        let mut charges = unspent.flat_map(|receipt| &receipt.charges).filter(|charge| charge.name == name);
        key_model.used_max(self.noted_us) == 0 && charges.all(gives_nothing)
    }

    /// Whether a sweep at `noted_us` finds nothing that keeps the state of a key: nothing is used, and all
    /// that was ever charged has expired.
    #[must_use]
    pub fn has_ended(&self, rule: &Rule, key: &str, noted_us: u64) -> bool {
        self.get(&name(rule, key)).is_some_and(|key_model| key_model.has_ended(noted_us))
    }

    /// Forgets a key, as a store may do when it has ended. Which store does so when is its own affair.
    pub fn forget(&mut self, rule: &Rule, key: &str) {
        let name = name(rule, key);
        self.states.retain(|(other, _)| *other != name);
    }

    /// A state of another geometry than the rule's loses its receipts when it is charged.
    fn void_if_geometry_differs(&mut self, rule: &Rule, key: &str) {
        let name = name(rule, key);
        if self.get(&name).is_some_and(|key_model| !key_model.fits(rule.limits())) {
            self.voids.push(VoidedReceipts { name, limit: None, order: self.order.saturating_sub(1) });
        }
    }

    fn get(&self, name: &Name) -> Option<&KeyModel> {
        self.states.iter().find(|(other, _)| other == name).map(|(_, key_model)| key_model)
    }

    fn put(&mut self, name: &Name, key_model: KeyModel) {
        self.states.retain(|(other, _)| other != name);
        self.states.push((name.clone(), key_model));
    }

    /// The state as `rule` sees it, whether or not the store has it.
    fn current(&self, rule: &Rule, key: &str) -> KeyModel {
        let key_model = self.get(&name(rule, key));
        key_model
            .map_or_else(|| KeyModel::new(rule.limits()), |key_model| key_model.adapted_to(rule.limits()))
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
            let (noted_us, voids) = (self.noted_us, &self.voids);
            let void = |place: &ModelPlace| is_void(noted_us, voids, charge, place);
            let state = self.states.iter_mut().find(|(name, _)| *name == charge.name);
            if let Some((_, key_model)) = state {
                units += key_model.refund(now_us, &charge.places, units_of(charge.cost), void);
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
    let shown = admission.slots().iter().map(|slot| match slot {
        Slot::Ask(index) => verdicts[*index].clone(),
        Slot::Unlimited(_) => panic!("traces have no overrides"),
    });
    ModelDecision::joined(shown.collect())
}

#[cfg(test)]
mod tests;
