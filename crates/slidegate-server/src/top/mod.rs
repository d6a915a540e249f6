//! The busiest keys (`busiest`), counted in Space-Saving sketches (`sketch`).

mod busiest;
mod sketch;
#[cfg(test)]
mod zipf;

pub(crate) use busiest::{LISTED_MAX, Top};
#[cfg(test)]
pub(crate) use busiest::{TopKey, TopKeys};
