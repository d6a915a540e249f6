//! What a body asks for, read in one go without copying.
//!
//! These readers know only good input. Where they fail, `slow_body` reads again, says what is
//! wrong, and is the one that is right: what it accepts is accepted.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use slidegate::rate::parse_window;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::{ChargeRequest, Key, Rate};

use super::problem::Problem;
use super::slow_body;
use crate::rules::AlgorithmText;

/// The body of a check, a peek or an explanation.
#[derive(Debug, PartialEq)]
pub(super) struct Request<'a> {
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

impl<'a> Request<'a> {
    /// Reads a body.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Problem> {
        match Self::read_good(body) {
            Some(request) => Ok(request),
            None => slow_body::request(body).map_err(|text| Problem::malformed(&text)),
        }
    }

    /// Reads a body that is as it should be.
    pub(super) fn read_good(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<Body<'_>>(body).ok()?.request()
    }

    /// Reads the body of a batch.
    pub(super) fn read_batch(body: &'a [u8]) -> Result<Vec<Self>, Problem> {
        match serde_json::from_slice::<Body<'_>>(body).ok().and_then(Body::batch) {
            Some(batch) if !batch.is_empty() => Ok(batch),
            _ => slow_body::batch(body).map_err(|text| Problem::malformed(&text)),
        }
    }
}

/// The policy that a request names.
pub(super) fn policy(name: &str) -> Option<OnStoreError> {
    match name {
        "allow" => Some(OnStoreError::Allow),
        "deny" => Some(OnStoreError::Deny),
        _ => None,
    }
}

/// A batch, a request or one of its charges: they differ in which of the fields they may have.
struct Body<'a>(BodyFields<'a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyFields<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    rule: Option<Value<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    key: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    cost: Option<u64>,
    #[serde(borrow, default, deserialize_with = "given")]
    checks: Option<Vec<Body<'a>>>,
    #[serde(borrow, default, deserialize_with = "given")]
    tag: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    on_store_error: Option<Text<'a>>,
}

/// A value that is there: `null` is none.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'a> Body<'a> {
    fn batch(self) -> Option<Vec<Request<'a>>> {
        let BodyFields { checks, rule: None, key: None, cost: None, tag: None, on_store_error: None } =
            self.0
        else {
            return None;
        };
        checks?.into_iter().map(Self::request).collect()
    }

    fn request(mut self) -> Option<Request<'a>> {
        if let Some(Text(tag)) = self.0.tag.take() {
            Key::new(&tag).ok()?;
        }
        let policy = match self.0.on_store_error.take() {
            Some(Text(name)) => Some(policy(&name)?),
            None => None,
        };
        let charges = match self.0 {
            BodyFields { checks: Some(charges), rule: None, key: None, cost: None, .. } => {
                Charges::Several(charges.into_iter().map(Self::charge).collect::<Option<_>>()?)
            }
            _ => Charges::One([self.charge()?]),
        };
        Some(Request { charges, policy })
    }

    fn charge(self) -> Option<ChargeRequest<'a>> {
        let BodyFields { rule, key: Some(Text(key)), cost, checks: None, tag: None, on_store_error: None } =
            self.0
        else {
            return None;
        };
        let rule = match rule? {
            Value::Text(name) => RuleRef::Named(name),
            Value::Inline(rule) => RuleRef::Inline(rule),
            Value::Whole(_) => return None,
        };
        Some(ChargeRequest { rule, key, cost: cost.unwrap_or(1) })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

/// Takes objects only. Without it, serde would take a list of the fields' values too.
struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Body<'de>, A::Error> {
        BodyFields::deserialize(MapAccessDeserializer::new(fields)).map(Body)
    }
}

/// A text that is borrowed from the body unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a rule or its limit may be: the name of the rule or the rule itself, a rate or a number beside its window.
enum Value<'a> {
    Whole(u64),
    Text(Cow<'a, str>),
    Inline(InlineRule),
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule or a limit")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Whole(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value<'de>, A::Error> {
        let fields = InlineFields::deserialize(MapAccessDeserializer::new(fields))?;
        fields.rule().map(Value::Inline).ok_or_else(|| A::Error::custom("no rule"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineFields<'a> {
    #[serde(borrow)]
    limit: Value<'a>,
    #[serde(borrow, default, deserialize_with = "given")]
    window: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    algorithm: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    buckets: Option<u64>,
    #[serde(borrow, default, deserialize_with = "given")]
    edge: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    entries: Option<u64>,
}

impl InlineFields<'_> {
    fn rule(&self) -> Option<InlineRule> {
        let text = AlgorithmText {
            algorithm: self.algorithm.as_ref().map(|text| &*text.0),
            buckets: self.buckets,
            edge: self.edge.as_ref().map(|text| &*text.0),
            entries: self.entries,
        };
        let rate = match (&self.limit, &self.window) {
            (Value::Whole(units), Some(window)) => Rate::new(*units, parse_window(&window.0)?).ok()?,
            (Value::Text(rate), None) => rate.parse().ok()?,
            _ => return None,
        };
        Some(InlineRule::new(rate, text.parse().ok()?))
    }
}
