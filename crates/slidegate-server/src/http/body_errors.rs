//! Parses bodies slowly and reports their mistakes: field, nearest valid name, remedy.

use slidegate::{ChargeRequest, Key};

use super::body::{Charges, CheckBody, policy};
use crate::rules::charge_request;
use crate::text::excerpt;
use crate::text::fields::{Fields, Malformed};
use crate::text::json::Json;

const EXAMPLE: &str = "send for example {\"rule\":\"api\",\"key\":\"alice\",\"cost\":1}";
const BATCH_EXAMPLE: &str = "send for example {\"checks\":[{\"rule\":\"api\",\"key\":\"alice\",\"cost\":1}]}";

/// The body of a check, a peek or an explanation.
pub(super) fn request(body: &[u8]) -> Result<CheckBody<'static>, Malformed> {
    read(body, request_of)
}

/// The body of a batch.
pub(super) fn batch(body: &[u8]) -> Result<Vec<CheckBody<'static>>, Malformed> {
    read_like(BATCH_EXAMPLE, body, |fields| match fields.list("checks")? {
        None => Err(format!("checks: is missing; {BATCH_EXAMPLE}")),
        Some(items) if items.is_empty() => Err(format!("checks: is empty; {BATCH_EXAMPLE}")),
        Some(items) => each(fields, items, request_of),
    })
}

/// The body of a refund: the receipt.
pub(super) fn receipt(body: &[u8]) -> Result<String, Malformed> {
    read(body, |fields| fields.required_text("receipt"))
}

/// The body of a settlement: the receipt, and the units really spent.
pub(super) fn settlement(body: &[u8]) -> Result<(String, u64), Malformed> {
    read(body, |fields| {
        Ok((fields.required_text("receipt")?, fields.required_whole("actual", 0..=u64::MAX)?))
    })
}

/// The body of a credit: rule, key, tag and units.
pub(super) fn credit(body: &[u8]) -> Result<ChargeRequest<'static>, Malformed> {
    read(body, |fields| {
        let units = fields.required_whole("units", 1..=u64::MAX)?;
        charge(fields, units)
    })
}

/// The body of a reset: rule, key and tag.
pub(super) fn reset(body: &[u8]) -> Result<ChargeRequest<'static>, Malformed> {
    read(body, |fields| charge(fields, 0))
}

fn read<T>(body: &[u8], read: impl Fn(&mut Fields) -> Result<T, Malformed>) -> Result<T, Malformed> {
    read_like(EXAMPLE, body, read)
}

/// Reads a body; a mistake in its shape shows `example`.
fn read_like<T>(
    example: &str,
    body: &[u8],
    read: impl Fn(&mut Fields) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    object(Json::parse_body(body)?, "body", example, String::new(), read)
}

/// Reads every item of `checks`.
fn each<T>(
    fields: &Fields,
    items: Vec<Json>,
    read: impl Fn(&mut Fields) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let read = items.into_iter().enumerate().map(|(index, item)| {
        let path = fields.path(&format!("checks[{index}]"));
        object(item, &path, EXAMPLE, format!("{path}."), &read)
    });
    read.collect()
}

/// Reads an object; `read` must take all its fields. Errors prefix field names with `prefix`.
fn object<T>(
    json: Json,
    path: &str,
    example: &str,
    prefix: String,
    read: impl Fn(&mut Fields) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let Json::Object(fields) = json else {
        return Err(format!("{path}: expected an object, found {}; {example}", json.kind()));
    };
    let mut fields = Fields::new(prefix, fields);
    let value = read(&mut fields)?;
    fields.finish()?;
    Ok(value)
}

fn request_of(fields: &mut Fields) -> Result<CheckBody<'static>, Malformed> {
    let tag = fields.text("tag")?;
    if let Some(tag) = &tag {
        Key::check_tag(tag).map_err(|error| fields.path(&error.to_string()))?;
    }
    let tagged = |charge: ChargeRequest<'static>| {
        if charge.tag().is_some() { charge } else { charge.with_tag(tag.as_deref()) }
    };
    let policy = match fields.text("on_store_error")? {
        None => None,
        Some(name) => Some(policy(&name).ok_or_else(|| {
            let path = fields.path("on_store_error");
            format!("{path}: `{}` is unknown; choose allow or deny", excerpt(&name))
        })?),
    };
    let charges = if let Some(items) = fields.list("checks")? {
        for name in ["rule", "key", "cost"] {
            if fields.take(name).is_some() {
                let path = fields.path(name);
                return Err(format!("{path}: cannot be combined with checks; put it into one of them"));
            }
        }
        Charges::Several(each(fields, items, one_charge)?.into_iter().map(tagged).collect())
    } else {
        Charges::One([tagged(one_charge(fields)?)])
    };
    Ok(CheckBody { charges, policy })
}

fn one_charge(fields: &mut Fields) -> Result<ChargeRequest<'static>, Malformed> {
    let cost = fields.whole("cost", 1..=u64::MAX)?.unwrap_or(1);
    charge(fields, cost)
}

fn charge(fields: &mut Fields, cost: u64) -> Result<ChargeRequest<'static>, Malformed> {
    charge_request(fields, cost).map_err(|error| error.to_string())
}
