//! The keys that are allowed and denied most (`busiest`), counted in Space-Saving sketches (`sketch`).

mod busiest;
mod sketch;
#[cfg(test)]
mod zipf;

#[cfg(test)]
pub(crate) use busiest::{TopKey, TopKeys};
pub(crate) use busiest::{LISTED_MAX, Top};
