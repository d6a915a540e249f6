//! Parses a line into an operation and its time.

use slidegate::ChargeRequest;
use slidegate::charge::CHARGES_MAX;
use slidegate::time::TIME_MAX_US;

use super::line_error::LineError;
use super::receipts::line_of;
use crate::rules::charge_request;
use crate::text::fields::{Fields, Malformed};
use crate::text::json::Json;
use crate::text::{did_you_mean, excerpt};

const OPERATIONS: [&str; 8] = ["check", "peek", "refund", "settle", "credit", "reset", "inspect", "limit"];

/// An operation and its time.
#[derive(Debug)]
pub(super) struct TimedOperation {
    pub(super) at_us: u64,
    pub(super) operation: Operation,
}

/// An operation.
#[derive(Debug)]
pub(super) enum Operation {
    Check(Vec<ChargeRequest<'static>>),
    Peek(Vec<ChargeRequest<'static>>),
    Return(ReceiptReturn),
    Credit(ChargeRequest<'static>),
    Reset(ChargeRequest<'static>),
    Inspect(ChargeRequest<'static>),
    /// The rule's name, and its new limits as (field, rate).
    Limit(String, Vec<(String, String)>),
}

/// A refund or a settlement of a receipt.
#[derive(Debug)]
pub(super) struct ReceiptReturn {
    pub(super) line: u64,
    /// The rule that the trace claims for the receipt.
    pub(super) rule: Option<String>,
    /// The units really spent, for a settlement; `None` for a refund.
    pub(super) actual: Option<u64>,
}

impl TimedOperation {
    /// Reads a line.
    pub(super) fn parse(text: &[u8]) -> Result<Self, LineError> {
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
            "refund" => Operation::Return(returned(&mut fields)?),
            "settle" => {
                let returned = returned(&mut fields)?;
                let actual = Some(fields.required_whole("actual", 0..=u64::MAX)?);
                Operation::Return(ReceiptReturn { actual, ..returned })
            }
            "credit" => {
                let units = fields.required_whole("units", 1..=u64::MAX)?;
                Operation::Credit(charge_request(&mut fields, units)?)
            }
            "reset" => Operation::Reset(charge_request(&mut fields, 0)?),
            "inspect" => Operation::Inspect(charge_request(&mut fields, 0)?),
            "limit" => Operation::Limit(fields.required_text("rule")?, new_limits(&mut fields)?),
            other => {
                let remedy = did_you_mean(other, &OPERATIONS);
                return Err(format!("op: `{}` is unknown; {remedy}", excerpt(other)).into());
            }
        };
        fields.finish()?;
        Ok(Self { at_us, operation })
    }
}

fn charges(fields: &mut Fields) -> Result<Vec<ChargeRequest<'static>>, LineError> {
    let found = fields.list("charges")?;
    let items = fields.required("charges", found)?;
    let mut charges = Vec::with_capacity(items.len().min(CHARGES_MAX));
    for (index, item) in items.into_iter().enumerate() {
        let Json::Object(charge) = item else {
            return Err(format!("charges[{index}]: expected an object, found {}", item.kind()).into());
        };
        let mut charge = Fields::new(format!("charges[{index}]."), charge);
        let cost = charge.whole("cost", 1..=u64::MAX)?.unwrap_or(1);
        charges.push(charge_request(&mut charge, cost)?);
        charge.finish()?;
    }
    Ok(charges)
}

fn returned(fields: &mut Fields) -> Result<ReceiptReturn, LineError> {
    let line = line_of(&fields.required_text("receipt")?)?;
    Ok(ReceiptReturn { line, rule: fields.text("rule")?, actual: None })
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
        (Some(_), Some(_)) => Err("limits: cannot be combined with limit; keep one of them".to_owned()),
        (None, None) => Err("limit: is missing; add it, for example \"limit\":\"7/1m\"".to_owned()),
    }
}
