//! What is asked, once everything that was typed is understood. No store has been touched until here.

use anyhow::{Result, bail};
use slidegate::ruleset::RuleRef;
use slidegate::{Admission, ChargeError, ChargeRequest, Key, Resolved, Rule, RuleSet};

use super::answer::{Answer, Override};
use super::args::Asked;
use super::location::Location;
use crate::config::Config;
use crate::service::{Policy, Reason, Resolution, passes_without_store};

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
    charges: Vec<ChargeRequest<'static>>,
    policy: Option<Policy>,
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
        let mut charges = Vec::with_capacity(1 + asked.also.len());
        match overridden(&rules, &first, &location)? {
            None => charges.push(first),
            Some((Override::Unlimited, _)) if !asked.also.is_empty() => {}
            Some((by, rule)) => return Ok(Self::Known(Answer::overridden(by, rule))),
        }
        charges.extend(
            asked.also.iter().map(|also| inline(also.rate, &also.key, also.cost.unwrap_or(asked.cost))),
        );
        let question = Question { rules, charges, policy: asked.policy() };
        // What can never pass is refused here, while nothing has been opened or made.
        question.admission()?;
        Ok(Self::Asks(question, location))
    }
}

/// Whether an override has the answer, and that of which rule. A server knows its own.
fn overridden<'a>(
    rules: &'a RuleSet,
    first: &'a ChargeRequest<'_>,
    location: &Location,
) -> Result<Option<(Override, &'a str)>> {
    if location.is_server() {
        return Ok(None);
    }
    Ok(match rules.resolve(first)? {
        Resolved::Limited(_) => None,
        Resolved::Unlimited { rule } => Some((Override::Unlimited, rule.name())),
        Resolved::Blocked { rule } => Some((Override::Blocked, rule.name())),
    })
}

impl Question {
    /// The charges as asked, of which there is at least one.
    pub(in crate::cli) fn charges(&self) -> &[ChargeRequest<'static>] {
        &self.charges
    }

    /// Whose they are, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.charges.iter().map(|request| &*request.key)
    }

    /// The name of the first rule.
    pub(super) fn rule(&self) -> &str {
        self.charges.first().map_or("", |request| request.rule.name())
    }

    pub(super) fn policy(&self) -> Option<Policy> {
        self.policy
    }

    /// As one admission; `None` where only the server knows the rules.
    pub(super) fn admission(&self) -> Result<Option<Admission<'_>>> {
        if self.charges.iter().any(|request| self.is_unknown(request)) {
            return Ok(None);
        }
        match Resolution::new(&self.rules, &self.charges) {
            Ok(Resolution::Charged { admission, .. }) => Ok(Some(admission)),
            // Charges that are free are not asked for.
            Ok(Resolution::Free { .. }) => Ok(None),
            Err(error) => match error.reason {
                Reason::Charge(ChargeError::Count { count }) => bail!(
                    "also: {count} limits at once are too many; give at most {}",
                    slidegate::charge::CHARGES_MAX
                ),
                reason => Err(reason.into()),
            },
        }
    }

    /// The rule and the key of one of the charges; `None` where only the server knows the rule.
    pub(super) fn located<'a>(
        &'a self,
        request: &'a ChargeRequest<'a>,
    ) -> Result<Option<(&'a Rule, Key<'a>)>> {
        Ok(if self.is_unknown(request) { None } else { Some(self.rules.locate(request)?) })
    }

    /// Whether only the server knows the rule.
    fn is_unknown(&self, request: &ChargeRequest<'_>) -> bool {
        matches!(&request.rule, RuleRef::Named(name) if self.rules.get(name).is_err())
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
