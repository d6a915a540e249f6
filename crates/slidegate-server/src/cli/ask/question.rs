//! What is asked, once everything that was typed is understood. No store has been touched until here.

use anyhow::{Result, bail};
use slidegate::{Admission, Charge, ChargeError, Key, Rule};

use super::answer::{Answer, Override};
use super::args::Asked;
use super::location::Location;
use crate::config::Config;
use crate::rules::Resolved;
use crate::service::{Policy, passes_without_store};

/// What a command line comes down to.
#[derive(Debug)]
pub(in crate::cli) enum Meant {
    /// An override has the answer.
    Known(Answer),
    /// These charges, of the store there.
    Asks(Question, Location),
}

/// Charges that are admitted together or not at all.
#[derive(Debug)]
pub(in crate::cli) struct Question {
    charges: Vec<Wanted>,
    policy: Option<Policy>,
}

/// So many units of a rule for a key.
#[derive(Debug)]
pub(in crate::cli) struct Wanted {
    pub(super) rule: RuleWanted,
    pub(super) key: String,
    pub(super) cost: u64,
}

#[derive(Debug)]
pub(super) enum RuleWanted {
    /// Known here.
    Own(Box<Rule>),
    /// Of that name, where the server knows it.
    Of(String),
}

impl Meant {
    /// Says what was meant, or what cannot be.
    pub(in crate::cli) fn of(asked: &Asked) -> Result<Self> {
        let config = asked.config.as_deref().map(Config::load).transpose()?;
        let location = Location::choose(asked.store.as_ref(), config.as_ref())?;
        let mut charges = Vec::with_capacity(1 + asked.also.len());
        let first = match (asked.limit, asked.rule.as_deref(), &config) {
            (Some(limit), ..) => First::Rule(RuleWanted::inline(limit, asked)),
            (None, Some(_), Some(_)) if location.is_server() => {
                bail!(
                    "config: is not read where a server keeps the rules; remove --config, or give another --store"
                )
            }
            (None, Some(name), _) if location.is_server() => First::Rule(RuleWanted::Of(name.to_owned())),
            (None, Some(name), Some(config)) => First::resolved(config, name, &asked.key)?,
            (None, Some(name), None) => {
                bail!("rule: `{name}` is not known without its file; add --config FILE")
            }
            (None, None, _) => {
                bail!("limit: is missing; give --limit 60/1m, or --rule NAME with --config FILE")
            }
        };
        match first {
            First::Rule(rule) => charges.push(Wanted { rule, key: asked.key.clone(), cost: asked.cost }),
            First::Overridden(Override::Unlimited, _) if !asked.also.is_empty() => {}
            First::Overridden(by, rule) => return Ok(Self::Known(Answer::overridden(by, &rule))),
        }
        charges.extend(asked.also.iter().map(|also| Wanted {
            rule: RuleWanted::inline(also.rate, asked),
            key: also.key.clone(),
            cost: also.cost.unwrap_or(asked.cost),
        }));
        let question = Question { charges, policy: asked.policy() };
        // What can never pass is refused here, while nothing has been opened or made.
        question.admission()?;
        Ok(Self::Asks(question, location))
    }
}

/// What the first limit comes down to.
enum First {
    Rule(RuleWanted),
    /// By an override of that rule.
    Overridden(Override, String),
}

impl First {
    fn resolved(config: &Config, name: &str, key: &str) -> Result<Self> {
        Ok(match config.rules().resolve(name, key)? {
            Resolved::Limited(rule) => Self::Rule(RuleWanted::Own(Box::new(rule.clone()))),
            Resolved::Unlimited(rule) => Self::Overridden(Override::Unlimited, rule.name().to_owned()),
            Resolved::Blocked(rule) => Self::Overridden(Override::Blocked, rule.name().to_owned()),
        })
    }
}

impl RuleWanted {
    fn inline(rate: slidegate::Rate, asked: &Asked) -> Self {
        Self::Own(Box::new(Rule::inline(rate, asked.algorithm.unwrap_or_default())))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Own(rule) => rule.name(),
            Self::Of(name) => name,
        }
    }
}

impl Question {
    /// The charges as asked, of which there is at least one.
    pub(in crate::cli) fn charges(&self) -> &[Wanted] {
        &self.charges
    }

    /// Whose they are, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.charges.iter().map(|wanted| wanted.key.as_str())
    }

    /// The name of the first rule.
    pub(super) fn rule(&self) -> &str {
        self.charges.first().map_or("", |wanted| wanted.rule.name())
    }

    pub(super) fn policy(&self) -> Option<Policy> {
        self.policy
    }

    /// As one admission; `None` where only the server knows the rules.
    pub(super) fn admission(&self) -> Result<Option<Admission<'_>>> {
        let mut charges = Vec::with_capacity(self.charges.len());
        for wanted in &self.charges {
            let RuleWanted::Own(rule) = &wanted.rule else { return Ok(None) };
            charges.push(Charge { rule, key: Key::new(&wanted.key)?, cost: wanted.cost });
        }
        match Admission::new(&charges) {
            Ok(admission) => Ok(Some(admission)),
            Err(ChargeError::Count { count }) => {
                bail!(
                    "also: {count} limits at once are too many; give at most {}",
                    slidegate::charge::CHARGES_MAX
                )
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it passes while the store does not answer: by the caller's word, else by the strictest rule.
    pub(super) fn passes_without_store(&self) -> bool {
        match self.admission() {
            Ok(Some(admission)) => passes_without_store(self.policy, &admission),
            // The server's rules are not known here.
            _ => self.policy == Some(Policy::Allow),
        }
    }
}
