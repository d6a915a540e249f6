//! The store under test, with helpers.

use crate::algorithm::Usage;
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::{Algorithm, Limit, Rule, RuleBuilder};
use crate::store::{Call, Store, Update, UpdateError};
use crate::time::whole_us;

pub(super) const SECOND_US: u64 = 1_000_000;
pub(super) const MINUTE_US: u64 = 60 * SECOND_US;
pub(super) const DAY_US: u64 = 86_400 * SECOND_US;
/// An instant that is a boundary of every window used with it.
pub(super) const BOUNDARY_US: u64 = 20_000 * DAY_US;

/// Units of a rule for a key.
pub(super) type Request<'a> = (&'a Rule, &'a str, u64);

/// A rule with one or several rates.
pub(super) fn rule(name: &str, rates: &[&str], algorithm: Algorithm) -> Rule {
    built(
        rates.iter().fold(Rule::builder(name), |builder, rate| {
            builder.limit(rate.parse().expect("the rates of the suite are well formed"))
        }),
        algorithm,
    )
}

/// A shadow rule with one or several rates.
pub(super) fn shadow(name: &str, rates: &[&str], algorithm: Algorithm) -> Rule {
    let rates: Vec<_> = rule(name, rates, algorithm).limits().iter().map(Limit::rate).collect();
    built(rates.into_iter().fold(Rule::builder(name).shadow(true), RuleBuilder::limit), algorithm)
}

fn built(builder: RuleBuilder, algorithm: Algorithm) -> Rule {
    builder.algorithm(algorithm).build().expect("the rules of the suite are valid")
}

pub(super) fn key(name: &str) -> Key<'_> {
    Key::new(name).expect("the keys of the suite are valid")
}

pub(super) fn admission<'a>(asks: &[Request<'a>]) -> Result<Admission<'a>, String> {
    let charges: Vec<_> = asks.iter().map(|&(rule, name, cost)| Charge::new(rule, key(name), cost)).collect();
    Admission::new(&charges).map_err(|error| error.to_string())
}

pub(super) fn retry_us(decision: &Decision<'_>) -> u64 {
    decision.retry_after().map_or(0, whole_us)
}

/// An empty store for one promise.
pub(super) struct Subject<S>(pub(super) S);

impl<S: Store> Subject<S> {
    pub(super) async fn new(fresh: &impl AsyncFn() -> S) -> Self {
        Self(fresh().await)
    }

    pub(super) async fn check<'a>(&self, at_us: u64, asks: &[Request<'a>]) -> Result<Decision<'a>, String> {
        let outcome = self.0.check(Call::at_us(at_us), &admission(asks)?).await;
        outcome.map_err(|error| error.to_string())
    }

    /// One charge for alice.
    pub(super) async fn ask<'a>(
        &self,
        at_us: u64,
        rule: &'a Rule,
        cost: u64,
    ) -> Result<Decision<'a>, String> {
        self.check(at_us, &[(rule, "alice", cost)]).await
    }

    /// One charge for alice that must pass.
    pub(super) async fn admit(&self, at_us: u64, rule: &Rule, cost: u64) -> Result<Receipt, String> {
        let outcome = self.check(at_us, &[(rule, "alice", cost)]).await?;
        let algorithm = rule.algorithm();
        ensure!(outcome.allowed(), "{algorithm}: {cost} units are denied at {at_us} although there is room");
        outcome.receipt().ok_or_else(|| format!("{algorithm}: an admission has no receipt"))
    }

    pub(super) async fn peek<'a>(&self, at_us: u64, asks: &[Request<'a>]) -> Result<Decision<'a>, String> {
        let decision = self.0.peek(Call::at_us(at_us), &admission(asks)?).await;
        decision.map_err(|error| error.to_string())
    }

    /// Whether `cost` units would pass for alice.
    pub(super) async fn passes(&self, at_us: u64, rule: &Rule, cost: u64) -> Result<bool, String> {
        Ok(self.peek(at_us, &[(rule, "alice", cost)]).await?.allowed())
    }

    /// Checks that the same request passes at the end of a denial's wait, and not a microsecond earlier.
    pub(super) async fn wait_is_exact(
        &self,
        at_us: u64,
        asks: &[Request<'_>],
        denied: &Decision<'_>,
    ) -> Result<(), String> {
        let (wait_us, algorithm) = (retry_us(denied), asks[0].0.algorithm());
        ensure!(wait_us > 0, "{algorithm}: a denial at {at_us} announces no wait");
        let early = self.peek(at_us + wait_us - 1, asks).await?;
        ensure!(!early.allowed(), "{algorithm}: denied at {at_us} for {wait_us} us, but passes 1 us earlier");
        let in_time = self.peek(at_us + wait_us, asks).await?;
        ensure!(in_time.allowed(), "{algorithm}: denied at {at_us} for {wait_us} us, but denied after them");
        Ok(())
    }

    /// Alice's usage of every limit.
    pub(super) async fn usages(&self, at_us: u64, rule: &Rule) -> Result<Vec<Usage>, String> {
        let inspected = self.0.inspect(Call::at_us(at_us), rule, key("alice")).await;
        let limits = inspected.map_err(|error| error.to_string())?;
        let usage = |used, reset_after| Usage { used, reset_after_us: whole_us(reset_after) };
        Ok(limits.into_iter().map(|limit| usage(limit.used, limit.reset_after)).collect())
    }

    /// Alice's largest use of any limit.
    pub(super) async fn used(&self, at_us: u64, rule: &Rule) -> Result<u64, String> {
        Ok(self.usages(at_us, rule).await?.iter().map(|usage| usage.used).max().unwrap_or(0))
    }

    /// The units that a refund gave back; `None` if it was not applied.
    pub(super) async fn refund(&self, at_us: u64, receipt: &Receipt) -> Result<Option<u64>, String> {
        let refunded = self.0.update(Call::at_us(at_us), Update::Refund(receipt)).await;
        Ok(units(refunded.map_err(|error| error.to_string())?))
    }

    pub(super) async fn settle(
        &self,
        at_us: u64,
        receipt: &Receipt,
        actual: u64,
    ) -> Result<Option<u64>, UpdateError> {
        self.0.update(Call::at_us(at_us), Update::Settle(receipt, actual)).await.map(units)
    }

    pub(super) async fn credit(&self, at_us: u64, rule: &Rule, given: u64) -> Result<Option<u64>, String> {
        let credited =
            self.0.update(Call::at_us(at_us), Update::Credit(Charge::new(rule, key("alice"), given))).await;
        Ok(units(credited.map_err(|error| error.to_string())?))
    }

    pub(super) async fn reset(&self, at_us: u64, rule: &Rule) -> Result<Option<u64>, String> {
        let reset = self.0.update(Call::at_us(at_us), Update::Reset(rule, key("alice"))).await;
        Ok(units(reset.map_err(|error| error.to_string())?))
    }

    pub(super) async fn change(&self, at_us: u64, rule: &Rule) -> Result<(), String> {
        self.0.change(Call::at_us(at_us), rule).await.map_err(|error| error.to_string())
    }
}

fn units(applied: Applied) -> Option<u64> {
    applied.applied.then_some(applied.units)
}
