//! Reads bodies slowly and says what is wrong with them: field, nearest valid name, remedy.

use slidegate::rule::OnStoreError;
use slidegate::{ChargeRequest, Key};

use super::body::{Charges, Request};
use crate::rules::charge_request;
use crate::text::fields::{Fields, Malformed};
use crate::text::json::Json;
use crate::text::shown;

const EXAMPLE: &str = "send for example {\"rule\":\"api\",\"key\":\"alice\",\"cost\":1}";

/// The body of a check, a peek or an explanation.
pub(super) fn request(body: &[u8]) -> Result<Request<'static>, Malformed> {
    request_of(object(body)?)
}

/// The body of a batch.
pub(super) fn batch(body: &[u8]) -> Result<Vec<Request<'static>>, Malformed> {
    let mut fields = object(body)?;
    let found = fields.list("checks")?;
    let items = fields.required("checks", found)?;
    fields.finish()?;
    if items.is_empty() {
        return Err("checks: is empty; give at least one".to_owned());
    }
    let read = items.into_iter().enumerate().map(|(index, item)| match item {
        Json::Object(fields) => request_of(Fields::new(format!("checks[{index}]."), fields)),
        other => Err(format!("checks[{index}]: expected an object, found {}; {EXAMPLE}", other.kind())),
    });
    read.collect()
}

/// The body of a refund: the receipt.
pub(super) fn receipt(body: &[u8]) -> Result<String, Malformed> {
    let mut fields = object(body)?;
    let receipt = fields.required_text("receipt")?;
    fields.finish()?;
    Ok(receipt)
}

/// The body of a settlement: the receipt, and the units that were really spent.
pub(super) fn settlement(body: &[u8]) -> Result<(String, u64), Malformed> {
    let mut fields = object(body)?;
    let settlement = (fields.required_text("receipt")?, fields.required_whole("actual", 0..=u64::MAX)?);
    fields.finish()?;
    Ok(settlement)
}

/// The body of a credit: whose units, and how many.
pub(super) fn credit(body: &[u8]) -> Result<ChargeRequest<'static>, Malformed> {
    let mut fields = object(body)?;
    let units = fields.required_whole("units", 1..=u64::MAX)?;
    let credit = charge(&mut fields, units)?;
    fields.finish()?;
    Ok(credit)
}

/// The body of a reset: whose state.
pub(super) fn reset(body: &[u8]) -> Result<ChargeRequest<'static>, Malformed> {
    let mut fields = object(body)?;
    let reset = charge(&mut fields, 0)?;
    fields.finish()?;
    Ok(reset)
}

fn object(body: &[u8]) -> Result<Fields, Malformed> {
    match Json::parse_body(body)? {
        Json::Object(fields) => Ok(Fields::new(String::new(), fields)),
        other => Err(format!("body: expected an object, found {}; {EXAMPLE}", other.kind())),
    }
}

fn request_of(mut fields: Fields) -> Result<Request<'static>, Malformed> {
    if let Some(tag) = fields.text("tag")? {
        let bad = |error: slidegate::KeyError| {
            let error = error.to_string();
            format!("{}: {}", fields.path("tag"), error.strip_prefix("key: ").unwrap_or(&error))
        };
        Key::new(&tag).map_err(bad)?;
    }
    let policy = match fields.text("on_store_error")?.as_deref() {
        None => None,
        Some("allow") => Some(OnStoreError::Allow),
        Some("deny") => Some(OnStoreError::Deny),
        Some(other) => {
            let path = fields.path("on_store_error");
            return Err(format!("{path}: `{}` is unknown; choose allow or deny", shown(other)));
        }
    };
    let charges = if let Some(items) = fields.list("checks")? {
        for name in ["rule", "key", "cost"] {
            if fields.take(name).is_some() {
                let path = fields.path(name);
                return Err(format!("{path}: is given beside checks; put it into one of them"));
            }
        }
        Charges::Several(several(&fields, items)?)
    } else {
        let cost = fields.whole("cost", 1..=u64::MAX)?.unwrap_or(1);
        Charges::One([charge(&mut fields, cost)?])
    };
    fields.finish()?;
    Ok(Request { charges, policy })
}

fn several(fields: &Fields, items: Vec<Json>) -> Result<Vec<ChargeRequest<'static>>, Malformed> {
    let read = items.into_iter().enumerate().map(|(index, item)| {
        let path = fields.path(&format!("checks[{index}]"));
        let Json::Object(item) = item else {
            return Err(format!("{path}: expected an object, found {}; {EXAMPLE}", item.kind()));
        };
        let mut item = Fields::new(format!("{path}."), item);
        let cost = item.whole("cost", 1..=u64::MAX)?.unwrap_or(1);
        let charge = charge(&mut item, cost)?;
        item.finish()?;
        Ok(charge)
    });
    read.collect()
}

fn charge(fields: &mut Fields, cost: u64) -> Result<ChargeRequest<'static>, Malformed> {
    charge_request(fields, cost).map_err(|error| error.to_string())
}
