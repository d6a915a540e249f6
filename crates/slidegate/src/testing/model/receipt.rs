//! What the model store hands out for an admission.

use super::limit_model::{LimitModel, ModelPlace};

/// Which state: rule name and key.
pub(super) type Name = (String, String);

/// What an admission by the model returns, to be refunded or settled.
#[derive(Debug, Clone)]
pub struct ModelReceipt {
    /// Which admission of the store it is.
    pub(super) id: u64,
    /// What was charged: one entry per state.
    pub(super) charges: Vec<ReceiptCharge>,
}

/// What one state was charged.
#[derive(Debug, Clone)]
pub(super) struct ReceiptCharge {
    /// The state.
    pub(super) name: Name,
    /// When it was made, among all charges of the store.
    pub(super) order: u64,
    /// Units.
    pub(super) cost: u64,
    /// Where they stand: one place per limit.
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
