//! Charges: what one request asks of whom, and several of them as one admission.

use thiserror::Error;

use crate::few::Few;
use crate::key::Key;
use crate::rule::Rule;

/// Most charges of one admission.
pub const CHARGES_MAX: usize = 64;

/// So many units of one rule for one key.
#[derive(Debug, Clone, Copy)]
pub struct Charge<'a> {
    /// The rule that is charged.
    pub rule: &'a Rule,
    /// Who is charged.
    pub key: Key<'a>,
    /// Units asked for; checked when the charge becomes part of an [`Admission`].
    pub cost: u64,
}

impl Charge<'_> {
    /// Whether its cost is one that its rule may admit.
    #[inline]
    pub(crate) fn can_pass(&self) -> bool {
        (1..=self.rule.cost_max()).contains(&self.cost)
    }
}

/// One or several charges that are admitted together or not at all.
///
/// Charges on the same state are summed, so that they cannot pass one by one where their sum would
/// not. What no amount of waiting can admit is refused here, before any store is asked.
#[derive(Debug, Clone)]
pub struct Admission<'a> {
    asks: Few<Charge<'a>>,
    ask_of_charge: Few<usize>,
}

impl<'a> Admission<'a> {
    /// Checks the charges and sums those on the same state.
    #[inline]
    pub fn new(charges: &[Charge<'a>]) -> Result<Self, ChargeError> {
        match charges {
            [charge] if charge.can_pass() => Ok(Self::of_one(charge)),
            charges => Self::of_several(charges),
        }
    }

    /// One charge that was checked.
    pub(crate) fn of_one(charge: &Charge<'a>) -> Self {
        Self { asks: Few::One([*charge]), ask_of_charge: Few::One([0]) }
    }

    fn of_several(charges: &[Charge<'a>]) -> Result<Self, ChargeError> {
        if charges.is_empty() || charges.len() > CHARGES_MAX {
            return Err(ChargeError::Count { count: charges.len() });
        }
        let mut asks: Few<Charge<'a>> = Few::default();
        let mut ask_of_charge = Few::default();
        for charge in charges {
            if charge.cost == 0 {
                return Err(ChargeError::Zero { rule: charge.rule.name().to_owned() });
            }
            let twin =
                asks.iter().position(|ask| ask.key == charge.key && ask.rule.name() == charge.rule.name());
            if let Some(index) = twin {
                let ask = &mut asks[index];
                if !same_geometry(ask.rule, charge.rule) {
                    return Err(ChargeError::Conflict { rule: charge.rule.name().to_owned() });
                }
                ask.cost = ask.cost.saturating_add(charge.cost);
                // Inline rules of one name may differ in their limit: the strictest binds.
                if charge.rule.cost_max() < ask.rule.cost_max() {
                    ask.rule = charge.rule;
                }
                ask_of_charge.push(index);
            } else {
                ask_of_charge.push(asks.len());
                asks.push(*charge);
            }
        }
        // A shadow rule never refuses, not even what it could never admit.
        match asks.iter().find(|ask| !ask.rule.shadow() && ask.cost > ask.rule.cost_max()) {
            Some(ask) => Err(ChargeError::Never {
                rule: ask.rule.name().to_owned(),
                cost: ask.cost,
                limit: ask.rule.cost_max(),
            }),
            None => Ok(Self { asks, ask_of_charge }),
        }
    }

    /// One charge per state, costs summed, in order of first appearance.
    #[must_use]
    pub fn asks(&self) -> &[Charge<'a>] {
        &self.asks
    }

    /// The rule of every charge as given.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'a Rule> {
        self.ask_of_charge.iter().map(|&ask| self.asks[ask].rule)
    }

    /// For every charge as given, the index of its state in [`Admission::asks`].
    #[must_use]
    pub fn ask_of_charge(&self) -> &[usize] {
        &self.ask_of_charge
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
    #[error("cost: 0 asked of rule `{rule}`; ask for at least 1 unit, or peek to ask without charging")]
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
    /// A credit of nothing.
    #[error("units: 0 credited to rule `{rule}`; give back at least 1 unit")]
    ZeroCredit {
        /// The rule.
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
        let (api, dear) = (rule("api", "10/1m"), rule("dear", "10/1m"));
        let (alice, bob) = (Key::new("alice").unwrap(), Key::new("bob").unwrap());
        let charge = |rule, key, cost| Charge { rule, key, cost };
        let admission = Admission::new(&[
            charge(&api, alice, 2),
            charge(&dear, alice, 3),
            charge(&api, bob, 4),
            charge(&api, alice, 5),
        ])
        .unwrap();
        let costs: Vec<u64> = admission.asks().iter().map(|ask| ask.cost).collect();
        assert_eq!(costs, [7, 3, 4]);
        assert_eq!(admission.ask_of_charge(), [0, 1, 2, 0]);
    }

    #[test]
    fn what_can_never_pass_is_an_error() {
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
