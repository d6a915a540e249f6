//! The request that the arguments make. No store is opened to build it.

use std::slice;

use anyhow::{Error, Result, anyhow, bail};
use slidegate::charge::CHARGES_MAX;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::AdmissionErrorKind;
use slidegate::{Admission, ChargeError, ChargeRequest, Key, Resolved, Rule, RuleSet};

use super::answer::{CheckAnswer, KeyOverride};
use super::args::RequestArgs;
use super::location::StoreLocation;
use crate::config::{Config, shared_states_mistake};
use crate::text::excerpt;

/// How a request is answered.
#[derive(Debug)]
pub(in crate::cli) enum RequestPlan {
    /// By an override, without a store.
    Answered(CheckAnswer),
    /// By the store at a location.
    Ask(CommandRequest, StoreLocation),
}

/// Charges that are admitted all or none, and their rules.
#[derive(Debug)]
pub(in crate::cli) struct CommandRequest {
    rules: RuleSet,
    /// Never empty.
    pub(in crate::cli) charges: Vec<ChargeRequest<'static>>,
    /// Index of the first charge that `--also` gives.
    also_from: usize,
    pub(super) policy: Option<OnStoreError>,
}

impl RequestPlan {
    /// Builds the request, or returns the mistake in the arguments.
    pub(in crate::cli) fn of(args: &RequestArgs) -> Result<Self> {
        let config = args.config.as_deref().map(Config::load).transpose()?;
        let location = StoreLocation::choose(args.store.as_ref(), config.as_ref())?;
        let inline = |rate, key: &str, cost| {
            ChargeRequest::inline(rate, args.algorithm.unwrap_or_default(), key.to_owned(), cost)
                .with_tag(args.tag.as_deref())
        };
        let first = match (args.limit, args.rule.as_deref(), &config) {
            (Some(limit), ..) => inline(limit, &args.key, args.cost),
            (None, Some(_), Some(_)) if location.is_server() => {
                bail!(
                    "config: is not used with a server, which has its own rules; remove --config, or give another --store"
                )
            }
            (None, Some(name), None) if !location.is_server() => {
                bail!("rule: `{name}` needs its configuration file; add --config FILE")
            }
            (None, Some(name), _) => ChargeRequest::named(name.to_owned(), args.key.clone(), args.cost)
                .with_tag(args.tag.as_deref()),
            (None, None, _) => {
                bail!("limit: is missing; give --limit 60/1m, or --rule NAME with --config FILE")
            }
        };
        let mut rules = config.map_or_else(RuleSet::new, Config::into_rules);
        // `inline_rules` restricts the callers of a server, not the user of this command.
        rules.allow_inline();
        // Only the server knows the overrides of its rules.
        let resolved = if location.is_server() { None } else { Some(rules.resolve(&first)?) };
        let is_charged = match resolved {
            None | Some(Resolved::Limited(_)) => true,
            Some(Resolved::Unlimited(_)) if !args.also.is_empty() => false,
            Some(Resolved::Unlimited(charge)) => {
                return Ok(Self::Answered(CheckAnswer::overridden(
                    KeyOverride::Unlimited,
                    charge.rule().name(),
                )));
            }
            Some(Resolved::Blocked(charge)) => {
                return Ok(Self::Answered(CheckAnswer::overridden(
                    KeyOverride::Blocked,
                    charge.rule().name(),
                )));
            }
        };
        let also = args.also.iter().map(|also| inline(also.rate, &also.key, also.cost.unwrap_or(args.cost)));
        let charges = is_charged.then_some(first).into_iter().chain(also).collect();
        let also_from = usize::from(is_charged);
        let request = CommandRequest { rules, charges, also_from, policy: args.on_store_error };
        request.check_states(&location)?;
        // A request that can never pass is refused before a store is opened. Only a server knows its own rules.
        if args.rule.is_none() || !location.is_server() {
            request.admission()?;
        }
        Ok(Self::Ask(request, location))
    }
}

impl CommandRequest {
    /// Refuses a store whose names of keys leave out the rule, unless this is the only one.
    fn check_states(&self, location: &StoreLocation) -> Result<()> {
        let StoreLocation::Store(url) = location else { return Ok(()) };
        let Some(template) = url.template_without_rule() else { return Ok(()) };
        let charged = self.charges.iter().map(|request| request.rule.name());
        let names = self.rules.iter().map(Rule::name).chain(charged);
        match shared_states_mistake(&template, names, false) {
            Some(mistake) => bail!("store: {mistake}"),
            None => Ok(()),
        }
    }

    /// The name of the first rule.
    pub(super) fn rule(&self) -> &str {
        self.charges.first().map_or("", |request| request.rule.name())
    }

    /// The charges as one admission. Not for named rules of a server, which only the server can resolve.
    pub(super) fn admission(&self) -> Result<Admission<'_>> {
        self.rules.admission(&self.charges).map_err(|error| match error.reason {
            AdmissionErrorKind::Charge(ChargeError::Count { count }) => {
                anyhow!("also: {count} limits at once are too many; give at most {CHARGES_MAX}")
            }
            reason => self.also_error().unwrap_or_else(|| reason.into()),
        })
    }

    /// The error of the first charge that cannot pass alone, if `--also` gives it. The index in an admission's error is
    /// not enough: inline rules of one window share their name, whatever their limits.
    fn also_error(&self) -> Option<Error> {
        let mut alone = self.charges.iter().enumerate();
        let (index, charge, error) = alone.find_map(|(index, charge)| {
            let error = self.rules.admission(slice::from_ref(charge)).err()?;
            Some((index, charge, error))
        })?;
        (index >= self.also_from).then(|| anyhow!("also: `{}`: {error}", excerpt(&charge.key)))
    }

    /// The rule and the key of a charge.
    pub(super) fn rule_and_key<'a>(&'a self, request: &'a ChargeRequest<'a>) -> Result<(&'a Rule, Key<'a>)> {
        let charge = self.rules.resolve(request)?.charge();
        Ok((charge.rule(), charge.key()))
    }
}
