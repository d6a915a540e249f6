//! The charges of a line, made into an admission.

use slidegate::{Admission, Charge, ChargeError};

use super::failure::Failure;
use super::request::Asked;
use crate::rules::Rules;
use crate::text::shown;

/// The charge that is asked for; its units are not checked.
pub(super) fn charge<'a>(rules: &'a Rules, asked: &'a Asked) -> Result<Charge<'a>, Failure> {
    Ok(Charge { rule: asked.rule(rules)?, key: asked.key()?, cost: asked.units })
}

/// All charges as one admission.
pub(super) fn admission<'a>(rules: &'a Rules, asked: &'a [Asked]) -> Result<Admission<'a>, Failure> {
    let charges = asked.iter().map(|asked| charge(rules, asked)).collect::<Result<Vec<_>, _>>()?;
    Admission::new(&charges).map_err(|error| match &error {
        ChargeError::Zero { .. } => {
            let which = asked.iter().find(|asked| asked.units == 0).map_or("", Asked::which);
            Failure::Cost(format!("{which}{error}"))
        }
        ChargeError::Never { rule, cost, .. } => {
            let excess = Excess::find(&charges, rule, *cost);
            Failure::Never(excess.map_or_else(|| error.to_string(), |excess| excess.said(asked, &error)))
        }
        _ => Failure::Charge(error),
    })
}

/// The charges of one key that together ask for more than their rule can ever give.
struct Excess<'a> {
    key: &'a str,
    /// The first of them, by its index.
    first: usize,
    is_sum: bool,
}

impl<'a> Excess<'a> {
    /// Finds the charges that ask for `cost` units of `rule`.
    fn find(charges: &[Charge<'a>], rule: &str, cost: u64) -> Option<Self> {
        charges.iter().enumerate().filter(|(_, charge)| charge.rule.name() == rule).find_map(
            |(first, charge)| {
                let twins = charges.iter().filter(|twin| twin.rule.name() == rule && twin.key == charge.key);
                let asked = twins.clone().fold(0_u64, |sum, twin| sum.saturating_add(twin.cost));
                let found = Self { key: charge.key.as_str(), first, is_sum: twins.count() > 1 };
                Some(found).filter(|_| asked == cost)
            },
        )
    }

    fn said(&self, asked: &[Asked], error: &ChargeError) -> String {
        let (text, which) = (error.to_string(), asked[self.first].which());
        match text.strip_prefix("cost: ").filter(|_| self.is_sum) {
            Some(text) => {
                format!("{which}cost: with the other charges of key `{}`, {text}", shown(self.key))
            }
            None => format!("{which}{text}"),
        }
    }
}
