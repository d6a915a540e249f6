//! The receipts of the model store.

use super::limit_model::{LimitModel, ModelPlace};

/// The name of a state: rule name and key.
pub(super) type Name = (String, String);

/// The receipt of an admission by the model.
#[derive(Debug, Clone)]
pub struct ModelReceipt {
    /// The number of the admission in its store.
    pub(super) id: u64,
    /// The charges: one entry per state.
    pub(super) charges: Vec<ReceiptCharge>,
}

/// The charge of one state.
#[derive(Debug, Clone)]
pub(super) struct ReceiptCharge {
    /// The state.
    pub(super) name: Name,
    /// The sequence number of the charge in the store.
    pub(super) order: u64,
    /// Units.
    pub(super) cost: u64,
    /// The places of the charge: one per limit.
    pub(super) places: Vec<ModelPlace>,
}

impl ModelReceipt {
    /// The instant from which none of its charges counts any more.
    #[must_use]
    pub fn expires_us(&self) -> u64 {
        let places = self.charges.iter().flat_map(|charge| &charge.places);
        places.map(LimitModel::expires_us).max().unwrap_or(0)
    }

    /// How many states were charged.
    #[must_use]
    pub fn charge_count(&self) -> usize {
        self.charges.len()
    }
}
