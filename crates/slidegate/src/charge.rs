//! Charges (rule, key, cost), and several of them as one admission.

use thiserror::Error;

use crate::key::{IntoKey, Key, KeyError};
use crate::rule::Rule;

/// Most charges of one admission.
pub const CHARGES_MAX: usize = 64;

/// A number of units of one rule for one key.
///
/// ```
/// use slidegate::Rule;
///
/// let quota = Rule::new("quota", "9500/24h")?;
/// let call = quota.charge("yt:quota:key1", 100)?;
/// assert_eq!((call.rule().name(), call.key().as_str(), call.cost()), ("quota", "yt:quota:key1", 100));
/// assert!(quota.charge("", 100).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) key: Key<'a>,
    pub(crate) cost: u64,
}

impl<'a> Charge<'a> {
    /// `cost` units of `rule` for `key`. The cost is checked when the charge becomes part of an [`Admission`].
    #[must_use]
    #[inline]
    pub fn new(rule: &'a Rule, key: Key<'a>, cost: u64) -> Self {
        Self { rule, key, cost }
    }

    /// The rule that is charged.
    #[must_use]
    pub fn rule(&self) -> &'a Rule {
        self.rule
    }

    /// Who is charged.
    #[must_use]
    pub fn key(&self) -> Key<'a> {
        self.key
    }

    /// Units asked for.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

impl Rule {
    /// Whether a cost can ever pass: 1 to the smallest limit.
    #[inline]
    pub(crate) fn can_admit(&self, cost: u64) -> bool {
        (1..=self.cost_max()).contains(&cost)
    }

    /// A charge of `cost` units of this rule for a key, to be checked together with others by
    /// [`Limiter::check_all`](crate::Limiter::check_all).
    #[inline]
    pub fn charge<'a>(&'a self, key: impl IntoKey<'a>, cost: u64) -> Result<Charge<'a>, KeyError> {
        Ok(Charge::new(self, key.into_key()?, cost))
    }
}

/// One or several charges that are admitted together or not at all.
///
/// Charges on the same state are summed, so that they cannot pass one by one where their sum would
/// not. A cost that can never pass is refused here, before any store is asked.
#[derive(Debug, Clone)]
pub struct Admission<'a>(Charges<'a>);

/// Most admissions are one charge, and must not allocate.
#[derive(Debug, Clone)]
enum Charges<'a> {
    One(Charge<'a>),
    Several(Box<SummedCharges<'a>>),
}

#[derive(Debug, Clone)]
struct SummedCharges<'a> {
    asks: Vec<Charge<'a>>,
    treatments: Vec<ChargeTreatment<'a>>,
}

/// How an admission treats one of its charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeTreatment<'a> {
    /// The charge is part of the ask of that index in [`Admission::asks`].
    Ask(usize),
    /// An override lets it pass: no store is asked.
    Unlimited(Charge<'a>),
}

impl<'a> Admission<'a> {
    /// Checks the charges and sums those on the same state.
    #[inline]
    pub fn new(charges: &[Charge<'a>]) -> Result<Self, ChargeError> {
        match charges {
            [charge] => Self::of_one(*charge),
            charges => Self::of_several(charges, |_| false),
        }
    }

    /// [`Admission::new`] where an override makes some keys unlimited: `unlimited` says so for the index of each
    /// charge. Unlimited charges always pass and are charged nowhere.
    pub fn partly_unlimited(
        charges: &[Charge<'a>],
        unlimited: impl Fn(usize) -> bool,
    ) -> Result<Self, ChargeError> {
        Self::of_several(charges, unlimited)
    }

    /// [`Admission::new`] for one charge.
    ///
    /// ```
    /// use slidegate::{Admission, Rule};
    ///
    /// let api = Rule::new("api", "5/1m")?;
    /// assert_eq!(Admission::of_one(api.charge("alice", 2)?)?.asks()[0].cost(), 2);
    /// assert!(Admission::of_one(api.charge("alice", 6)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn of_one(charge: Charge<'a>) -> Result<Self, ChargeError> {
        if !charge.rule.can_admit(charge.cost) {
            Self::check_inadmissible(charge)?;
        }
        Ok(Self::of_checked(charge))
    }

    /// Why a charge whose rule never admits its cost cannot be made; a shadow rule never refuses one.
    #[cold]
    fn check_inadmissible(charge: Charge<'a>) -> Result<(), ChargeError> {
        Self::of_several(&[charge], |_| false).map(drop)
    }

    /// One charge that was checked before.
    #[inline]
    pub(crate) fn of_checked(charge: Charge<'a>) -> Self {
        Self(Charges::One(charge))
    }

    /// One ask per charge, on different states, without a check of their costs.
    pub(crate) fn of_asks(asks: Vec<Charge<'a>>) -> Self {
        if let [ask] = *asks {
            return Self::of_checked(ask);
        }
        let treatments = (0..asks.len()).map(ChargeTreatment::Ask).collect();
        Self(Charges::Several(Box::new(SummedCharges { asks, treatments })))
    }

    fn of_several(charges: &[Charge<'a>], unlimited: impl Fn(usize) -> bool) -> Result<Self, ChargeError> {
        if charges.is_empty() || charges.len() > CHARGES_MAX {
            return Err(ChargeError::Count { count: charges.len() });
        }
        let mut asks: Vec<Charge<'a>> = Vec::with_capacity(charges.len());
        let mut treatments = Vec::with_capacity(charges.len());
        for (number, charge) in charges.iter().enumerate() {
            if charge.cost == 0 {
                return Err(ChargeError::Zero { rule: charge.rule.name().to_owned() });
            }
            if unlimited(number) {
                treatments.push(ChargeTreatment::Unlimited(*charge));
                continue;
            }
            let same_state =
                |ask: &Charge<'_>| ask.key == charge.key && ask.rule.name() == charge.rule.name();
            let Some(index) = asks.iter().position(same_state) else {
                treatments.push(ChargeTreatment::Ask(asks.len()));
                asks.push(*charge);
                continue;
            };
            let ask = &mut asks[index];
            if !same_geometry(ask.rule, charge.rule) {
                return Err(ChargeError::Conflict { rule: charge.rule.name().to_owned() });
            }
            ask.cost = ask.cost.saturating_add(charge.cost);
            // Inline rules of one name may differ in their limit: the strictest binds.
            if charge.rule.cost_max() < ask.rule.cost_max() {
                ask.rule = charge.rule;
            }
            treatments.push(ChargeTreatment::Ask(index));
        }
        // A shadow rule never refuses, not even what it could never admit.
        match asks.iter().find(|ask| !ask.rule.shadow() && ask.cost > ask.rule.cost_max()) {
            Some(ask) => Err(ChargeError::Never {
                rule: ask.rule.name().to_owned(),
                cost: ask.cost,
                limit: ask.rule.cost_max(),
            }),
            None => Ok(match (&*asks, &*treatments) {
                ([ask], [ChargeTreatment::Ask(0)]) => Self(Charges::One(*ask)),
                _ => Self(Charges::Several(Box::new(SummedCharges { asks, treatments }))),
            }),
        }
    }

    /// One charge per state, costs summed, in order of first appearance. Empty if every charge is unlimited.
    #[must_use]
    #[inline]
    pub fn asks(&self) -> &[Charge<'a>] {
        match &self.0 {
            Charges::One(charge) => std::slice::from_ref(charge),
            Charges::Several(several) => &several.asks,
        }
    }

    /// How every charge is treated, in the order in which they were given.
    #[must_use]
    pub fn treatments(&self) -> &[ChargeTreatment<'a>] {
        match &self.0 {
            Charges::One(_) => &[ChargeTreatment::Ask(0)],
            Charges::Several(several) => &several.treatments,
        }
    }

    /// The same admission with other charges in place of its asks, for a store that passes it on under other rules or
    /// keys. Their costs are not checked, and they must be on different states.
    #[must_use]
    pub fn with_asks<'b>(&self, replaced: impl Fn(usize, &Charge<'a>) -> Charge<'b>) -> Admission<'b>
    where
        'a: 'b,
    {
        let replaced = |(index, ask)| replaced(index, ask);
        match &self.0 {
            Charges::One(ask) => Admission(Charges::One(replaced((0, ask)))),
            Charges::Several(several) => {
                let asks = several.asks.iter().enumerate().map(replaced).collect();
                let treatments = several.treatments.clone();
                Admission(Charges::Several(Box::new(SummedCharges { asks, treatments })))
            }
        }
    }

    /// Whether a rule splits its keys into shards.
    #[inline]
    pub(crate) fn has_shards(&self) -> bool {
        self.asks().iter().any(|ask| ask.rule.of_shard().is_some())
    }

    /// On a store that splits keys: an error if no shard ever admits the cost of an ask.
    pub(crate) fn check_shards(&self) -> Result<(), ChargeError> {
        for ask in self.asks().iter().filter(|ask| !ask.rule.shadow()) {
            let Some(shard) = ask.rule.of_shard().filter(|shard| ask.cost > shard.cost_max()) else {
                continue;
            };
            let (rule, shards) = (ask.rule.name().to_owned(), ask.rule.shards());
            return Err(ChargeError::NeverInShard { rule, cost: ask.cost, limit: shard.cost_max(), shards });
        }
        Ok(())
    }

    /// The only charge, if there is one.
    #[inline]
    pub(crate) fn only(&self) -> Option<&Charge<'a>> {
        match &self.0 {
            Charges::One(charge) => Some(charge),
            Charges::Several(_) => None,
        }
    }
}

fn same_geometry(first: &Rule, second: &Rule) -> bool {
    let (first, second) = (first.limits(), second.limits());
    first.len() == second.len()
        && first.iter().zip(second).all(|(first, second)| first.keeps_state_of(second))
}

/// Why charges cannot be an admission. Nothing was charged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChargeError {
    /// No charge, or more than [`CHARGES_MAX`].
    #[error("charges: {count} given; give 1 to {CHARGES_MAX} at once")]
    Count {
        /// How many were given.
        count: usize,
    },
    /// A charge of nothing.
    #[error("cost: 0 asked of rule `{rule}`; charge at least 1 unit, or peek, which charges nothing")]
    Zero {
        /// The rule.
        rule: String,
    },
    /// Two rules of one name but with other windows, algorithms or buckets, for the same key.
    #[error(
        "charges: two rules named `{rule}` differ in window, algorithm or buckets; give one of them another name"
    )]
    Conflict {
        /// The name.
        rule: String,
    },
    /// More units than the limit: waiting does not help.
    #[error(
        "cost: {cost} units can never pass rule `{rule}`, whose limit is {limit}; split the request or raise the limit"
    )]
    Never {
        /// The rule.
        rule: String,
        /// Units asked for, all charges on the same state together.
        cost: u64,
        /// The smallest limit that the rule enforces.
        limit: u64,
    },
    /// More units than a shard of the key has: waiting does not help.
    #[error(
        "cost: {cost} units can never pass rule `{rule}`, whose limit is {limit} for each of its {shards} shards; split \
         the request, or give the rule fewer shards"
    )]
    NeverInShard {
        /// The rule.
        rule: String,
        /// Units asked for, all charges on the same state together.
        cost: u64,
        /// The smallest limit of a shard.
        limit: u64,
        /// Number of shards.
        shards: u16,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Algorithm;

    fn rule(name: &str, rate: &str) -> Rule {
        Rule::builder(name).limit(rate.parse().unwrap()).build().unwrap()
    }

    #[test]
    fn charges_on_one_state_are_summed() {
        let (api, search) = (rule("api", "10/1m"), rule("search", "10/1m"));
        let (alice, bob) = (Key::new("alice").unwrap(), Key::new("bob").unwrap());
        let charge = |rule, key, cost| Charge { rule, key, cost };
        let admission = Admission::new(&[
            charge(&api, alice, 2),
            charge(&search, alice, 3),
            charge(&api, bob, 4),
            charge(&api, alice, 5),
        ])
        .unwrap();
        let costs: Vec<u64> = admission.asks().iter().map(|ask| ask.cost).collect();
        assert_eq!(costs, [7, 3, 4]);
        assert_eq!(admission.treatments(), [0, 1, 2, 0].map(ChargeTreatment::Ask));
    }

    #[test]
    fn a_cost_that_can_never_pass_is_an_error() {
        let api = rule("api", "10/1m");
        let key = Key::new("alice").unwrap();
        let ask = |costs: &[u64]| {
            let charges: Vec<_> = costs.iter().map(|&cost| Charge { rule: &api, key, cost }).collect();
            Admission::new(&charges).map(|_| ()).unwrap_err()
        };
        assert_eq!(ask(&[11]), ChargeError::Never { rule: "api".into(), cost: 11, limit: 10 });
        assert_eq!(ask(&[5, 6]), ChargeError::Never { rule: "api".into(), cost: 11, limit: 10 });
        assert_eq!(ask(&[u64::MAX, u64::MAX]).to_string().split(' ').nth(1), Some("18446744073709551615"));
        assert_eq!(ask(&[1, 0]), ChargeError::Zero { rule: "api".into() });
        assert_eq!(ask(&[]), ChargeError::Count { count: 0 });
        assert_eq!(ask(&[1; 65]), ChargeError::Count { count: 65 });
    }

    #[test]
    fn unlimited_charges_are_not_sent_to_a_store() {
        let api = rule("api", "10/1m");
        let charges = [("alice", 2), ("ci-7", 50), ("alice", 3)]
            .map(|(key, cost)| Charge::new(&api, Key::new(key).unwrap(), cost));
        let admission = Admission::partly_unlimited(&charges, |index| index == 1).unwrap();
        assert_eq!(admission.asks(), [Charge { cost: 5, ..charges[0] }]);
        assert_eq!(
            admission.treatments(),
            [ChargeTreatment::Ask(0), ChargeTreatment::Unlimited(charges[1]), ChargeTreatment::Ask(0)]
        );
        assert!(Admission::partly_unlimited(&charges, |_| true).unwrap().asks().is_empty());
        assert!(Admission::partly_unlimited(&charges, |_| false).is_err(), "50 units never pass");
    }

    #[test]
    fn a_shadow_rule_never_refuses() {
        let shadow = Rule::builder("s").limit("10/1m".parse().unwrap()).shadow(true).build().unwrap();
        let charge = Charge { rule: &shadow, key: Key::new("alice").unwrap(), cost: 11 };
        assert!(Admission::new(&[charge]).is_ok());
    }

    #[test]
    fn two_rules_of_one_name_must_fit_one_state() {
        let (minute, hour) = (rule("api", "10/1m"), rule("api", "20/1h"));
        let charge = |rule, name| Charge { rule, key: Key::new(name).unwrap(), cost: 1 };
        let error = Admission::new(&[charge(&minute, "alice"), charge(&hour, "alice")]).unwrap_err();
        assert_eq!(error, ChargeError::Conflict { rule: "api".into() });
        assert!(Admission::new(&[charge(&minute, "alice"), charge(&hour, "bob")]).is_ok());
    }

    #[test]
    fn the_strictest_of_two_inline_limits_binds() {
        let inline = |rate: &str| Rule::inline(rate.parse().unwrap(), Algorithm::SlidingLog);
        let (loose, strict) = (inline("10/1m"), inline("5/1m"));
        let key = Key::new("alice").unwrap();
        let charges = [&loose, &strict].map(|rule| Charge { rule, key, cost: 2 });
        assert_eq!(Admission::new(&charges).unwrap().asks()[0].rule.cost_max(), 5);
    }
}
