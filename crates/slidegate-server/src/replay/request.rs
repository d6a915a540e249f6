//! What a line asks for.

use slidegate::time::TIME_MAX_US;
use slidegate::{Key, Rule};

use super::failure::Failure;
use super::receipts::LineReference;
use crate::rules::Rules;
use crate::rules::inline;
use crate::text::fields::{Fields, Malformed};
use crate::text::json::Json;
use crate::text::{did_you_mean, shown};

const OPERATIONS: [&str; 8] = ["check", "peek", "refund", "settle", "credit", "reset", "inspect", "limit"];

/// An operation and its time.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) at_us: u64,
    pub(super) operation: Operation,
}

/// What to do.
#[derive(Debug)]
pub(super) enum Operation {
    Check(Vec<Asked>),
    Peek(Vec<Asked>),
    Refund(Returned),
    Settle(Returned, u64),
    Credit(Asked),
    Reset(Asked),
    Inspect(Asked),
    /// The rule's name, and its new limits with the fields they stand in.
    Limit(String, Vec<(String, String)>),
}

/// A rule, a key, and where it matters a number of units.
#[derive(Debug)]
pub(super) struct Asked {
    rule: RuleText,
    key: String,
    pub(super) units: u64,
    place: Place,
}

/// Where a charge stands in its line.
#[derive(Debug, Default)]
struct Place {
    /// What stands before its fields' names in errors.
    prefix: String,
    /// Whether others stand beside it, so that even what is said of its meaning has to say which.
    one_of_several: bool,
}

#[derive(Debug)]
enum RuleText {
    Named(String),
    Inline(Rule),
}

/// A receipt that is presented.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) line: LineReference,
    /// The rule that it is said to be of.
    pub(super) rule: Option<String>,
}

impl Asked {
    /// The rule, from the configuration or from the line itself.
    pub(super) fn rule<'a>(&'a self, rules: &'a Rules) -> Result<&'a Rule, Failure> {
        match &self.rule {
            RuleText::Named(name) => {
                rules.get(name).map_err(|error| Failure::UnknownRule(self.which().to_owned(), error))
            }
            RuleText::Inline(rule) => {
                let forbidden = |error| Failure::InlineRule(format!("{}{error}", self.which()));
                rules.check_inline().map_err(forbidden)?;
                Ok(rule)
            }
        }
    }

    /// Which of several charges it is, to stand before a field's name; empty if it is the only one.
    pub(super) fn which(&self) -> &str {
        if self.place.one_of_several { &self.place.prefix } else { "" }
    }

    /// The key as it was written.
    pub(super) fn key_text(&self) -> &str {
        &self.key
    }

    /// The key, checked.
    pub(super) fn key(&self) -> Result<Key<'_>, Failure> {
        Key::new(&self.key).map_err(|error| Failure::Key(format!("{}{error}", self.place.prefix)))
    }
}

impl Request {
    /// Reads a line.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        let fields = match Json::parse_line(text)? {
            Json::Object(fields) => fields,
            other => {
                let found = other.kind();
                return Err(
                    format!("expected an object, found {found}; write {{\"at_us\":..,\"op\":..}}").into()
                );
            }
        };
        let mut fields = Fields::new(String::new(), fields);
        let at_us = fields.required_whole("at_us", 0..=TIME_MAX_US)?;
        let name = fields.required_text("op")?;
        let operation = match name.as_str() {
            "check" => Operation::Check(charges(&mut fields)?),
            "peek" => Operation::Peek(charges(&mut fields)?),
            "refund" => Operation::Refund(returned(&mut fields)?),
            "settle" => {
                Operation::Settle(returned(&mut fields)?, fields.required_whole("actual", 0..=u64::MAX)?)
            }
            "credit" => {
                let units = fields.required_whole("units", 1..=u64::MAX)?;
                Operation::Credit(asked(&mut fields, Place::default(), units)?)
            }
            "reset" => Operation::Reset(asked(&mut fields, Place::default(), 0)?),
            "inspect" => Operation::Inspect(asked(&mut fields, Place::default(), 0)?),
            "limit" => Operation::Limit(fields.required_text("rule")?, new_limits(&mut fields)?),
            other => {
                let remedy = did_you_mean(other, &OPERATIONS);
                return Err(format!("op: `{}` is unknown; {remedy}", shown(other)).into());
            }
        };
        fields.finish()?;
        Ok(Self { at_us, operation })
    }
}

fn charges(fields: &mut Fields) -> Result<Vec<Asked>, Failure> {
    let found = fields.list("charges")?;
    let items = fields.required("charges", found)?;
    let one_of_several = items.len() > 1;
    let mut charges = Vec::with_capacity(items.len().min(slidegate::charge::CHARGES_MAX));
    for (index, item) in items.into_iter().enumerate() {
        let Json::Object(charge) = item else {
            return Err(format!("charges[{index}]: expected an object, found {}", item.kind()).into());
        };
        let mut charge = Fields::new(format!("charges[{index}]."), charge);
        let cost = charge.whole("cost", 1..=u64::MAX)?.unwrap_or(1);
        let place = Place { prefix: charge.path(""), one_of_several };
        charges.push(asked(&mut charge, place, cost)?);
        charge.finish()?;
    }
    Ok(charges)
}

fn asked(fields: &mut Fields, place: Place, units: u64) -> Result<Asked, Failure> {
    let found = fields.take("rule");
    let rule = match fields.required("rule", found)? {
        Json::Text(name) => RuleText::Named(name),
        Json::Object(inline) => RuleText::Inline(inline::read(Fields::new(fields.path("rule."), inline))?),
        other => {
            return Err(fields.wrong("rule", "the name of a rule or an inline rule", &other).into());
        }
    };
    Ok(Asked { rule, key: fields.required_text("key")?, units, place })
}

fn returned(fields: &mut Fields) -> Result<Returned, Failure> {
    let line = fields.required_text("receipt")?.parse::<LineReference>()?;
    Ok(Returned { line, rule: fields.text("rule")? })
}

/// Exactly one of `limit` and `limits`.
fn new_limits(fields: &mut Fields) -> Result<Vec<(String, String)>, Malformed> {
    match (fields.text("limit")?, fields.list("limits")?) {
        (Some(limit), None) => Ok(vec![("limit".to_owned(), limit)]),
        (None, Some(limits)) => {
            let named = limits.into_iter().enumerate().map(|(index, limit)| match limit {
                Json::Text(limit) => Ok((format!("limits[{index}]"), limit)),
                other => Err(format!("limits[{index}]: expected a text in quotes, found {}", other.kind())),
            });
            named.collect()
        }
        (Some(_), Some(_)) => Err("limits: is given beside limit; keep one of them".to_owned()),
        (None, None) => Err("limit: is missing; add it, for example \"limit\":\"7/1m\"".to_owned()),
    }
}
