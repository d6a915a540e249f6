//! What a body asks for, read in one go without copying.
//!
//! These readers know only good input. Where they fail, `slow_body` reads again, says what is
//! wrong, and is the one that is right: what it accepts is accepted.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use slidegate::rate::parse_window;
use slidegate::rule::OnStoreError;
use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::{ChargeRequest, Rate};

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
        let Object(request) = serde_json::from_slice::<Object<RequestBody<'_>>>(body).ok()?;
        request.try_into().ok()
    }

    /// Reads the body of a batch.
    pub(super) fn read_batch(body: &'a [u8]) -> Result<Vec<Self>, Problem> {
        let read = || -> Option<Vec<Self>> {
            let Object(BatchBody { checks }) = serde_json::from_slice(body).ok()?;
            checks.into_iter().map(|Object(check)| check.try_into().ok()).collect()
        };
        match read() {
            Some(batch) if !batch.is_empty() => Ok(batch),
            _ => slow_body::batch(body).map_err(|text| Problem::malformed(&text)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody<'a> {
    #[serde(borrow)]
    checks: Vec<Object<RequestBody<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestBody<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    rule: Option<RuleBody<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    key: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    cost: Option<u64>,
    #[serde(borrow, default, deserialize_with = "given")]
    checks: Option<Vec<Object<ChargeBody<'a>>>>,
    #[serde(borrow, default, deserialize_with = "given")]
    tag: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    on_store_error: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeBody<'a> {
    #[serde(borrow)]
    rule: RuleBody<'a>,
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(default, deserialize_with = "given")]
    cost: Option<u64>,
}

/// What is written as an object. Without it, serde would take a list of the fields' values too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
    }
}

/// A value that is there: `null` is none.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'a> TryFrom<RequestBody<'a>> for Request<'a> {
    type Error = ();

    fn try_from(body: RequestBody<'a>) -> Result<Self, ()> {
        if body.tag.is_some_and(|Text(tag)| slidegate::Key::new(&tag).is_err()) {
            return Err(());
        }
        let charges = match (body.rule, body.key, body.checks) {
            (Some(RuleBody(rule)), Some(Text(key)), None) => {
                Charges::One([ChargeRequest { rule, key, cost: body.cost.unwrap_or(1) }])
            }
            (None, None, Some(checks)) if body.cost.is_none() => {
                Charges::Several(checks.into_iter().map(|Object(check)| check.into()).collect())
            }
            _ => return Err(()),
        };
        let policy = match body.on_store_error.as_ref().map(|Text(policy)| &**policy) {
            None => None,
            Some("allow") => Some(OnStoreError::Allow),
            Some("deny") => Some(OnStoreError::Deny),
            Some(_) => return Err(()),
        };
        Ok(Self { charges, policy })
    }
}

impl<'a> From<ChargeBody<'a>> for ChargeRequest<'a> {
    fn from(ChargeBody { rule: RuleBody(rule), key: Text(key), cost }: ChargeBody<'a>) -> Self {
        Self { rule, key, cost: cost.unwrap_or(1) }
    }
}

/// A text that is borrowed from the body unless it has escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A rule by name or inline.
struct RuleBody<'a>(RuleRef<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for RuleBody<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleVisitor).map(Self)
    }
}

struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = RuleRef<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<RuleRef<'de>, E> {
        Ok(RuleRef::Named(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<RuleRef<'de>, E> {
        Ok(RuleRef::Named(Cow::Owned(name.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<RuleRef<'de>, A::Error> {
        let body = InlineBody::deserialize(MapAccessDeserializer::new(fields))?;
        body.rule().map(RuleRef::Inline).ok_or_else(|| A::Error::custom("no rule"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineBody<'a> {
    #[serde(borrow)]
    limit: LimitText<'a>,
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

impl InlineBody<'_> {
    fn rule(&self) -> Option<InlineRule> {
        let text = AlgorithmText {
            algorithm: self.algorithm.as_ref().map(|text| &*text.0),
            buckets: self.buckets,
            edge: self.edge.as_ref().map(|text| &*text.0),
            entries: self.entries,
        };
        let rate = match (&self.limit, &self.window) {
            (LimitText::Units(units), Some(window)) => Rate::new(*units, parse_window(&window.0)?).ok()?,
            (LimitText::Rate(rate), None) => rate.parse().ok()?,
            _ => return None,
        };
        Some(InlineRule::new(rate, text.parse().ok()?))
    }
}

/// A limit as a number, beside its window, or as a rate.
enum LimitText<'a> {
    Units(u64),
    Rate(Cow<'a, str>),
}

impl<'de: 'a, 'a> Deserialize<'de> for LimitText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

struct LimitVisitor;

impl<'de> Visitor<'de> for LimitVisitor {
    type Value = LimitText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit")
    }

    fn visit_u64<E>(self, units: u64) -> Result<LimitText<'de>, E> {
        Ok(LimitText::Units(units))
    }

    fn visit_borrowed_str<E>(self, rate: &'de str) -> Result<LimitText<'de>, E> {
        Ok(LimitText::Rate(Cow::Borrowed(rate)))
    }

    fn visit_str<E>(self, rate: &str) -> Result<LimitText<'de>, E> {
        Ok(LimitText::Rate(Cow::Owned(rate.to_owned())))
    }
}
