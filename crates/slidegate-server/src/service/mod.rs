//! The service that every wire asks: it resolves charges under the rules in force, asks the store, counts the
//! answer, and answers by the outage policy where the store fails.

mod answer;
mod counted;
mod engine;
mod failure;
mod policy;
mod resolution;
mod settings;

pub(crate) use answer::{Checked, Explained, Said};
pub(crate) use engine::Service;
pub(crate) use failure::{Failure, Kind};
pub(crate) use policy::{Policy, passes_without_store};
pub(crate) use resolution::{Reason, Resolution, ResolutionError};
pub(crate) use settings::{Bounds, HeaderSet, Secret, Settings};
/// What is used of a limit; the wires take it from here, as they never name a store.
pub(crate) use slidegate::store::LimitUsage;
