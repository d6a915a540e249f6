//! The service behind every wire: it resolves charges under the rules in force, calls the store, counts the answer,
//! and applies the outage policy where the store fails.

mod counters;
mod error;
mod inline_bounds;
mod settings;
mod shared_receipts;
mod store_health;
mod verbs;

pub(crate) use error::{ServiceError, ServiceErrorKind};
pub(crate) use settings::{Bounds, HeaderSet, STORE_FIELD, Secret, Settings, TlsFiles};
/// Re-exported for the wires, which never name a store.
pub(crate) use slidegate::store::LimitUsage;
pub(crate) use verbs::{Explained, Service};
