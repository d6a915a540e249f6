//! The service that every wire asks: it resolves charges under the rules in force, asks the store, counts the
//! answer, and answers by the outage policy where the store fails.

mod counted;
mod engine;
mod failure;
mod settings;

pub(crate) use engine::{Explained, Service};
pub(crate) use failure::{Failure, Kind};
pub(crate) use settings::{Bounds, HeaderSet, Secret, Settings};
/// What is used of a limit; the wires take it from here, as they never name a store.
pub(crate) use slidegate::store::LimitUsage;
