//! Parses the body of a check in one pass without copying.
//!
//! These parsers handle only valid input. Where they fail, `body_errors` parses again and reports the mistake; its
//! result is authoritative.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use slidegate::rate::parse_window;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::{ChargeRequest, Key, Rate};

use super::body_errors;
use super::problem::Problem;
use crate::rules::AlgorithmFields;

/// The body of a check, a peek or an explanation.
#[derive(Debug, PartialEq)]
pub(super) struct CheckBody<'a> {
    pub(super) charges: Charges<'a>,
    pub(super) policy: Option<OnStoreError>,
}

/// One charge, or a list of them.
#[derive(Debug, PartialEq)]
pub(super) enum Charges<'a> {
    One([ChargeRequest<'a>; 1]),
    Several(Vec<ChargeRequest<'a>>),
}

impl<'a> Charges<'a> {
    pub(super) fn as_slice(&self) -> &[ChargeRequest<'a>] {
        match self {
            Self::One(charge) => charge,
            Self::Several(charges) => charges,
        }
    }
}

impl<'a> CheckBody<'a> {
    /// Parses a body.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Problem> {
        match Self::read_valid(body) {
            Some(request) => Ok(request),
            None => body_errors::request(body).map_err(|text| Problem::malformed(&text)),
        }
    }

    /// Parses a body; `None` if it is not valid.
    pub(super) fn read_valid(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<RawBody<'_>>(body).ok()?.request()
    }

    /// Parses the body of a batch.
    pub(super) fn read_batch(body: &'a [u8]) -> Result<Vec<Self>, Problem> {
        match serde_json::from_slice::<RawBody<'_>>(body).ok().and_then(RawBody::batch) {
            Some(batch) if !batch.is_empty() => Ok(batch),
            _ => body_errors::batch(body).map_err(|text| Problem::malformed(&text)),
        }
    }
}

/// The outage policy of that name.
pub(super) fn policy(name: &str) -> Option<OnStoreError> {
    match name {
        "allow" => Some(OnStoreError::Allow),
        "deny" => Some(OnStoreError::Deny),
        _ => None,
    }
}

/// A batch, a request or a charge: each allows some of the fields.
struct RawBody<'a>(RawBodyFields<'a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBodyFields<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    rule: Option<RuleOrLimit<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    key: Option<BodyText<'a>>,
    #[serde(default, deserialize_with = "given")]
    cost: Option<u64>,
    #[serde(borrow, default, deserialize_with = "given")]
    checks: Option<Vec<RawBody<'a>>>,
    #[serde(borrow, default, deserialize_with = "given")]
    tag: Option<BodyText<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    on_store_error: Option<BodyText<'a>>,
}

/// A present value; `null` is an error.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'a> RawBody<'a> {
    fn batch(self) -> Option<Vec<CheckBody<'a>>> {
        let RawBodyFields { checks, rule: None, key: None, cost: None, tag: None, on_store_error: None } =
            self.0
        else {
            return None;
        };
        checks?.into_iter().map(Self::request).collect()
    }

    fn request(mut self) -> Option<CheckBody<'a>> {
        let tag = self.0.tag.take();
        if let Some(BodyText(tag)) = &tag {
            Key::check_tag(tag).ok()?;
        }
        let policy = match self.0.on_store_error.take() {
            Some(BodyText(name)) => Some(policy(&name)?),
            None => None,
        };
        let charges = match self.0 {
            RawBodyFields { checks: Some(charges), rule: None, key: None, cost: None, .. } => {
                let charges = charges.into_iter().map(|charge| charge.charge(tag.as_ref()));
                Charges::Several(charges.collect::<Option<_>>()?)
            }
            _ => Charges::One([self.charge(tag.as_ref())?]),
        };
        Some(CheckBody { charges, policy })
    }

    /// The charge; `tag` is for charges without one of their own.
    fn charge(self, tag: Option<&BodyText<'a>>) -> Option<ChargeRequest<'a>> {
        let RawBodyFields {
            rule,
            key: Some(BodyText(key)),
            cost,
            checks: None,
            tag: own_tag,
            on_store_error: None,
        } = self.0
        else {
            return None;
        };
        let rule = match rule? {
            RuleOrLimit::Text(name) => RuleRef::Named(name),
            RuleOrLimit::Inline(rule) => RuleRef::Inline(rule),
            RuleOrLimit::Whole(_) => return None,
        };
        let charge = ChargeRequest::new(rule, key, cost.unwrap_or(1));
        match own_tag.as_ref().or(tag) {
            Some(BodyText(tag)) => Some(charge.with_tag(Some(tag))),
            None => Some(charge),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawBody<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawBodyVisitor)
    }
}

/// Accepts objects only. The derived reader would also accept a list of the fields' values.
struct RawBodyVisitor;

impl<'de> Visitor<'de> for RawBodyVisitor {
    type Value = RawBody<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<RawBody<'de>, A::Error> {
        RawBodyFields::deserialize(MapAccessDeserializer::new(fields)).map(RawBody)
    }
}

/// A text, borrowed from the body unless it has escapes.
#[derive(Deserialize)]
struct BodyText<'a>(#[serde(borrow)] Cow<'a, str>);

/// The value of `rule` (a name or an inline rule) or of `limit` (a rate or a number).
enum RuleOrLimit<'a> {
    Whole(u64),
    Text(Cow<'a, str>),
    Inline(InlineRule),
}

impl<'de: 'a, 'a> Deserialize<'de> for RuleOrLimit<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleOrLimitVisitor)
    }
}

struct RuleOrLimitVisitor;

impl<'de> Visitor<'de> for RuleOrLimitVisitor {
    type Value = RuleOrLimit<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule or a limit")
    }

    fn visit_u64<E>(self, number: u64) -> Result<RuleOrLimit<'de>, E> {
        Ok(RuleOrLimit::Whole(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<RuleOrLimit<'de>, E> {
        Ok(RuleOrLimit::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<RuleOrLimit<'de>, E> {
        Ok(RuleOrLimit::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<RuleOrLimit<'de>, A::Error> {
        let fields = InlineFields::deserialize(MapAccessDeserializer::new(fields))?;
        fields.rule().map(RuleOrLimit::Inline).ok_or_else(|| A::Error::custom("no rule"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineFields<'a> {
    #[serde(borrow)]
    limit: RuleOrLimit<'a>,
    #[serde(borrow, default, deserialize_with = "given")]
    window: Option<BodyText<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    algorithm: Option<BodyText<'a>>,
    #[serde(default, deserialize_with = "given")]
    buckets: Option<u64>,
    #[serde(borrow, default, deserialize_with = "given")]
    edge: Option<BodyText<'a>>,
    #[serde(default, deserialize_with = "given")]
    entries: Option<u64>,
}

impl InlineFields<'_> {
    fn rule(&self) -> Option<InlineRule> {
        let fields = AlgorithmFields {
            algorithm: self.algorithm.as_ref().map(|text| &*text.0),
            buckets: self.buckets,
            edge: self.edge.as_ref().map(|text| &*text.0),
            entries: self.entries,
        };
        let rate = match (&self.limit, &self.window) {
            (RuleOrLimit::Whole(units), Some(window)) => Rate::new(*units, parse_window(&window.0)?).ok()?,
            (RuleOrLimit::Text(rate), None) => rate.parse().ok()?,
            _ => return None,
        };
        Some(InlineRule::new(rate, fields.parse().ok()?))
    }
}
