//! What is asked, once everything that was typed is understood. No store has been touched until here.

use anyhow::{Result, anyhow, bail};
use slidegate::charge::CHARGES_MAX;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::AdmissionErrorKind;
use slidegate::{Admission, ChargeError, ChargeRequest, Resolved, Rule, RuleSet};

use super::answer::{Answer, Override};
use super::args::Asked;
use super::location::Location;
use crate::config::Config;

/// What a command line comes down to.
#[derive(Debug)]
pub(in crate::cli) enum Meant {
    /// An override has the answer.
    Known(Answer),
    /// These charges, of the store there.
    Asks(Question, Location),
}

/// Charges that are admitted together or not at all, and the rules that they go by.
#[derive(Debug)]
pub(in crate::cli) struct Question {
    rules: RuleSet,
    /// At least one.
    pub(in crate::cli) charges: Vec<ChargeRequest<'static>>,
    pub(super) policy: Option<OnStoreError>,
}

impl Meant {
    /// Says what was meant, or what cannot be.
    pub(in crate::cli) fn of(asked: &Asked) -> Result<Self> {
        let config = asked.config.as_deref().map(Config::load).transpose()?;
        let location = Location::choose(asked.store.as_ref(), config.as_ref())?;
        let inline = |rate, key: &str, cost| {
            ChargeRequest::inline(rate, asked.algorithm.unwrap_or_default(), key.to_owned(), cost)
        };
        let first = match (asked.limit, asked.rule.as_deref(), &config) {
            (Some(limit), ..) => inline(limit, &asked.key, asked.cost),
            (None, Some(_), Some(_)) if location.is_server() => {
                bail!(
                    "config: is not read where a server keeps the rules; remove --config, or give another --store"
                )
            }
            (None, Some(name), None) if !location.is_server() => {
                bail!("rule: `{name}` is not known without its file; add --config FILE")
            }
            (None, Some(name), _) => ChargeRequest::named(name.to_owned(), asked.key.clone(), asked.cost),
            (None, None, _) => {
                bail!("limit: is missing; give --limit 60/1m, or --rule NAME with --config FILE")
            }
        };
        let mut rules = config.map_or_else(RuleSet::new, Config::into_rules);
        // A file forbids the rules that callers of a server bring along; this limit was typed by its owner.
        rules.allow_inline();
        // Overrides of a server's rules are its own to know.
        let resolved = if location.is_server() { None } else { Some(rules.resolve(&first)?) };
        let is_charged = match resolved {
            None | Some(Resolved::Limited(_)) => true,
            Some(Resolved::Unlimited(_)) if !asked.also.is_empty() => false,
            Some(Resolved::Unlimited(charge)) => {
                return Ok(Self::Known(Answer::overridden(Override::Unlimited, charge.rule().name())));
            }
            Some(Resolved::Blocked(charge)) => {
                return Ok(Self::Known(Answer::overridden(Override::Blocked, charge.rule().name())));
            }
        };
        let also =
            asked.also.iter().map(|also| inline(also.rate, &also.key, also.cost.unwrap_or(asked.cost)));
        let charges = is_charged.then_some(first).into_iter().chain(also).collect();
        let question = Question { rules, charges, policy: asked.on_store_error };
        // What can never pass is refused here, while nothing has been opened or made. A server knows its rules itself.
        if asked.rule.is_none() || !location.is_server() {
            question.admission()?;
        }
        Ok(Self::Asks(question, location))
    }
}

impl Question {
    /// The name of the first rule.
    pub(super) fn rule(&self) -> &str {
        self.charges.first().map_or("", |request| request.rule.name())
    }

    /// As one admission. Fails where only a server knows the rules, which is asked without one.
    pub(super) fn admission(&self) -> Result<Admission<'_>> {
        self.rules.admission(&self.charges).map_err(|error| match error.reason {
            AdmissionErrorKind::Charge(ChargeError::Count { count }) => {
                anyhow!("also: {count} limits at once are too many; give at most {CHARGES_MAX}")
            }
            reason => reason.into(),
        })
    }

    /// The rule and the key of one of the charges.
    pub(super) fn located<'a>(&'a self, request: &'a ChargeRequest<'a>) -> Result<(&'a Rule, &'a str)> {
        let charge = self.rules.resolve(request)?.charge();
        Ok((charge.rule(), charge.key().as_str()))
    }
}
