//! A flood of new keys on a store with a memory budget: its memory, its speed, and the counts of the keys from before.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use slidegate::rule::AtBudget;
use slidegate::store::StoreError;
use slidegate::{Algorithm, CheckError, Limiter, Rule};

use crate::requests::every_key;
use crate::resident;
use crate::scenario::Effort;

/// Keys that are charged before, during and after the flood.
const KNOWN_KEYS: u64 = 1_000;
/// New keys between two charges of a known key.
const FLOOD_PER_KNOWN: u64 = 1_000;

/// The figures of one flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloodFigures {
    /// Most resident bytes, beyond those at the start.
    pub(crate) peak_bytes: u64,
    pub(crate) budget_bytes: u64,
    /// New keys that were refused as `full`.
    pub(crate) full: u64,
    pub(crate) evicted: u64,
    /// Known keys whose counts were lost; 0 unless keys are evicted.
    pub(crate) lost: u64,
    pub(crate) decision_ps: u64,
}

#[expect(clippy::disallowed_methods, reason = "this measures elapsed time")]
pub(crate) fn flood(
    algorithm: Algorithm,
    at_budget: AtBudget,
    keys: u64,
    effort: Effort,
) -> Result<FloodFigures> {
    let budget_bytes = if effort == Effort::Full { 512 << 20 } else { 100 << 20 };
    let rule = Rule::builder("bench").limit("1000000/24h".parse()?).algorithm(algorithm);
    let rule = rule.at_budget(at_budget).build().context("the rule")?;
    let before = resident::peak_bytes()?;
    let limiter = Limiter::with_budget(budget_bytes)?;
    let known: Vec<String> = (0..KNOWN_KEYS).map(|number| format!("known:{number}")).collect();
    let charge = |key: &str| limiter.check(&rule, key).map(|decision| decision.allowed());
    let mut charged = vec![0_u64; known.len()];
    let mut charge_known = |index: usize| {
        charged[index] += u64::from(matches!(charge(&known[index]), Ok(true)));
    };
    (0..known.len()).for_each(&mut charge_known);
    let (mut full, mut asked, mut next) = (0, 0, 0);
    let mut failed = None;
    let started = Instant::now();
    every_key(keys, |key| {
        match charge(key) {
            Ok(_) => {}
            Err(CheckError::Store(StoreError::Full { .. })) => full += 1,
            Err(error) => failed = Some(error),
        }
        asked += 1;
        if asked % FLOOD_PER_KNOWN == 0 {
            charge_known(next);
            next = (next + 1) % known.len();
        }
    });
    let elapsed = started.elapsed();
    (0..known.len()).for_each(&mut charge_known);
    if let Some(error) = failed {
        return Err(error.into());
    }
    let mut lost = 0;
    for (name, charged) in known.iter().zip(&charged) {
        lost += u64::from(limiter.inspect(&rule, name)?[0].used != *charged);
    }
    ensure!(lost == 0 || at_budget == AtBudget::EvictOldest, "{lost} known keys lost their counts");
    let stats = limiter.stats().store.context("a store in memory has statistics")?;
    Ok(FloodFigures {
        peak_bytes: resident::peak_bytes()?.saturating_sub(before),
        budget_bytes,
        full,
        evicted: stats.evicted,
        lost,
        decision_ps: u64::try_from(elapsed.as_nanos())? * 1_000 / keys,
    })
}
