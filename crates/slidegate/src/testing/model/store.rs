//! Model of a store: every (rule, key) in one list, every verb step by step.

use self::set_back::FollowedClock;
use super::decision::{ModelDecision, ModelVerdict};
use super::key_model::KeyModel;
use super::limit_model::{LimitModel, ModelPlace};
use super::receipt::{ModelReceipt, Name, ReceiptCharge};
use crate::algorithm::Usage;
use crate::charge::{Admission, ChargeTreatment};
use crate::receipt::Applied;
use crate::rule::{Limit, Rule};

/// The model of a store.
#[derive(Debug, Clone, Default)]
pub struct ModelStore {
    states: Vec<(Name, KeyModel)>,
    /// Charges so far.
    order: u64,
    voids: Vec<VoidedReceipts>,
    receipts: Vec<ModelReceipt>,
    spent: Vec<u64>,
    /// The latest time at which a receipt was presented: receipts that had expired then stay expired.
    latest_us: u64,
    /// The watermark of time.
    noted_us: u64,
    without_watermark: bool,
    /// `None` if time stands still while the clock is behind.
    clock: Option<FollowedClock>,
}

/// The watermark moves in steps of at least this.
const NOTED_STEP_US: u64 = 1_000;

/// Receipts up to `order` that give nothing back.
#[derive(Debug, Clone)]
struct VoidedReceipts {
    name: Name,
    /// Only for states of this geometry.
    limit: Option<Limit>,
    order: u64,
}

/// Whether a refund at one of a charge's places gives nothing back.
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
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The model of a store without a watermark of time, which never drops states.
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
        self.follow_clock(now_us);
        let mut verdicts = self.verdicts(now_us, admission);
        let before = decision(admission, &verdicts);
        if !before.allowed {
            return (before, None);
        }
        let mut charges = Vec::new();
        for (ask, verdict) in admission.asks().iter().zip(&mut verdicts) {
            if verdict.allowed {
                self.order += 1;
                self.void_if_geometry_differs(ask.rule, ask.key.identity());
                let mut key_model = self.current(ask.rule, ask.key.identity());
                let places = key_model.charge(ask.rule.limits(), now_us, ask.cost);
                *verdict = key_model.admitted(now_us, ask.rule);
                self.put(&name(ask.rule, ask.key.identity()), key_model);
                let name = name(ask.rule, ask.key.identity());
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

    /// Settles an admission whose charges all have the same cost.
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
        self.follow_clock(now_us);
        self.void_if_geometry_differs(rule, key);
        let Some(key_model) = self.get(&name(rule, key)) else {
            return Applied::default();
        };
        let mut key_model = key_model.adapted_to(rule.limits());
        let units = key_model.credit(rule.limits(), now_us, units);
        self.put(&name(rule, key), key_model);
        Applied { applied: units > 0, units }
    }

    /// Drops the state of a key; its receipts so far are void.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: &str) -> Applied {
        self.follow_clock(now_us);
        let name = name(rule, key);
        let Some(key_model) = self.get(&name) else { return Applied::default() };
        let units = key_model.used_max(now_us);
        self.states.retain(|(other, _)| *other != name);
        self.voids.push(VoidedReceipts { name, limit: None, order: self.order });
        Applied { applied: units > 0, units }
    }

    /// The usage of every limit of the rule.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: &str) -> Vec<(Limit, Usage)> {
        let key_model = self.current(rule, key);
        let limits = rule.limits().iter().zip(key_model.models());
        limits.map(|(limit, model)| (*limit, model.usage(limit, now_us))).collect()
    }

    /// Applies a live change: every state of the rule continues under the new limits.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        self.follow_clock(now_us);
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

    /// Records that a receipt was presented: receipts that have expired by now stay expired.
    pub fn presented(&mut self, now_us: u64) {
        self.follow_clock(now_us);
        self.latest_us = self.latest_us.max(now_us).max(self.noted_us);
    }

    /// Raises the watermark of time.
    pub fn note(&mut self, now_us: u64) {
        self.noted_us = self.noted_us.max(now_us);
    }

    /// The watermark of time.
    #[must_use]
    pub fn noted_us(&self) -> u64 {
        self.noted_us
    }

    /// Whether the store has a state of the key.
    #[must_use]
    pub fn knows(&self, rule: &Rule, key: &str) -> bool {
        self.get(&name(rule, key)).is_some()
    }

    /// Voids the receipts of a state whose geometry is not the rule's.
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

    /// The state adapted to `rule`; a new one if the store has none.
    fn current(&self, rule: &Rule, key: &str) -> KeyModel {
        let key_model = self.get(&name(rule, key));
        key_model
            .map_or_else(|| KeyModel::new(rule.limits()), |key_model| key_model.adapted_to(rule.limits()))
    }

    fn verdicts(&self, now_us: u64, admission: &Admission<'_>) -> Vec<ModelVerdict> {
        let asks = admission.asks().iter();
        asks.map(|ask| self.current(ask.rule, ask.key.identity()).decide(now_us, ask)).collect()
    }

    /// Marks the receipt as spent; false if it was spent already or has expired.
    fn spend(&mut self, now_us: u64, receipt: &ModelReceipt) -> bool {
        self.presented(now_us);
        let expired_by_us = self.latest_us.max(self.expired_by_us(receipt));
        if self.spent.contains(&receipt.id) || expired_by_us >= receipt.expires_us() {
            return false;
        }
        self.spent.push(receipt.id);
        true
    }

    fn give_back(&mut self, now_us: u64, receipt: &ModelReceipt, units_of: impl Fn(u64) -> u64) -> Applied {
        let (mut units, noted_us) = (0, self.noted_us.max(self.expired_by_us(receipt)));
        for charge in &receipt.charges {
            let voids = &self.voids;
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

/// The decision in which every charge has the verdict of its state.
fn decision(admission: &Admission<'_>, verdicts: &[ModelVerdict]) -> ModelDecision {
    let shown = admission.treatments().iter().map(|slot| match slot {
        ChargeTreatment::Ask(index) => verdicts[*index].clone(),
        ChargeTreatment::Unlimited(_) => panic!("traces have no overrides"),
    });
    ModelDecision::joined(shown.collect())
}

mod forgetting;
mod set_back;
#[cfg(test)]
mod tests;
