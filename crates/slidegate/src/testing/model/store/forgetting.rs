//! Dropping ended states, in the model of a store.

use super::super::limit_model::ModelPlace;
use super::super::receipt::{ModelReceipt, ReceiptCharge};
use super::{ModelStore, is_void, name};
use crate::rule::{Algorithm, Rule};

impl ModelStore {
    /// Whether the state of a key may be dropped: by the watermark nothing is used, and every receipt that charged it
    /// was spent, has expired, or is of a log that credits have emptied, where nothing is charged again at a past stamp
    /// while time moves forward.
    #[must_use]
    pub fn may_forget(&self, rule: &Rule, key: &str) -> bool {
        let name = name(rule, key);
        let Some(key_model) = self.get(&name) else { return true };
        let fits = |place: &ModelPlace| {
            key_model.models().iter().any(|model| model.limit().keeps_state_of(&place.limit))
        };
        let gives_nothing = |receipt: &ModelReceipt, charge: &ReceiptCharge| {
            let expired_by_us = self.noted_us.max(self.expired_by_us(receipt));
            let mut places = charge.places.iter().filter(|place| fits(place));
            places.all(|place| {
                let is_past = place.at < self.noted_us.into();
                let is_emptied = place.limit.algorithm() == Algorithm::SlidingLog && is_past;
                is_emptied || is_void(expired_by_us, &self.voids, charge, place)
            })
        };
        let mut unspent = self.receipts.iter().filter(|receipt| !self.spent.contains(&receipt.id));
        let all_give_nothing = |receipt: &ModelReceipt| {
            let mut charges = receipt.charges.iter().filter(|charge| charge.name == name);
            charges.all(|charge| gives_nothing(receipt, charge))
        };
        key_model.used_max(self.noted_us) == 0 && unspent.all(all_give_nothing)
    }

    /// Whether a key has ended by `noted_us`: nothing is used, and all its charges have expired.
    #[must_use]
    pub fn has_ended(&self, rule: &Rule, key: &str, noted_us: u64) -> bool {
        self.get(&name(rule, key)).is_some_and(|key_model| key_model.has_ended(noted_us))
    }

    /// Drops the state of a key, as a store may do at any time after it has ended.
    pub fn forget(&mut self, rule: &Rule, key: &str) {
        let name = name(rule, key);
        self.states.retain(|(other, _)| *other != name);
    }
}
