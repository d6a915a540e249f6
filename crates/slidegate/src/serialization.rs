//! Serde for rules and decisions, behind the feature `serde`.
//!
//! A rule has the fields of the configuration file, plus its name. A decision has those of `slidegate replay`, in
//! microseconds. Decisions are only written: they borrow the rules that they speak of.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Verdict};
use crate::rate::Rate;
use crate::rule::{
    Algorithm, AtBudget, Buckets, Decimal, Edge, Entries, Limit, OnStoreError, Rule, RuleBuilder, TakeOver,
};

/// Writes a type as its text, and reads it with `FromStr`, whose error names the remedy.
macro_rules! as_text {
    ($($kind:ty)+) => {$(
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextVisitor(stringify!($kind))).and_then(|text| {
                    <$kind>::from_str(&text).map_err(de::Error::custom)
                })
            }
        }
    )+};
}

as_text! { Rate Decimal }

/// Reads text, or a number as the text that it is written as: `headroom: 0.05`.
struct TextVisitor(&'static str);

impl Visitor<'_> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} as text", self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// The fields of a rule.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFields {
    name: String,
    #[serde(default, skip_serializing)]
    limit: Option<Rate>,
    #[serde(default)]
    limits: Vec<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(default)]
    headroom: Decimal,
    #[serde(default)]
    shadow: bool,
    #[serde(default)]
    on_store_error: OnStoreError,
    #[serde(default)]
    at_budget: AtBudget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    take_over: Option<TakeOver>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    shards: u16,
}

fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(number: &u16) -> bool {
    *number == 1
}

impl RuleFields {
    fn algorithm<E: de::Error>(&self) -> Result<Algorithm, E> {
        let algorithm = self.algorithm.as_deref().map_or(Ok(Algorithm::default()), str::parse);
        let algorithm = algorithm.map_err(E::custom)?;
        let belongs = |field, given: bool, to: &str| {
            let wrong = || E::custom(format!("{field}: belongs to {to}; leave it out of {algorithm}"));
            if given && algorithm.name() != to { Err(wrong()) } else { Ok(()) }
        };
        belongs("buckets", self.buckets.is_some(), "sliding-buckets")?;
        belongs("edge", self.edge.is_some(), "sliding-buckets")?;
        belongs("entries", self.entries.is_some(), "compact-log")?;
        Ok(match algorithm {
            Algorithm::SlidingBuckets(buckets, edge) => Algorithm::SlidingBuckets(
                self.buckets.map_or(Ok(buckets), Buckets::new).map_err(E::custom)?,
                self.edge.as_deref().map_or(Ok(edge), Edge::from_str).map_err(E::custom)?,
            ),
            Algorithm::CompactLog(entries) => {
                Algorithm::CompactLog(self.entries.map_or(Ok(entries), Entries::new).map_err(E::custom)?)
            }
            other => other,
        })
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (buckets, edge, entries) = match self.algorithm() {
            Algorithm::SlidingBuckets(buckets, edge) => (Some(buckets), Some(edge), None),
            Algorithm::CompactLog(entries) => (None, None, Some(entries)),
            _ => (None, None, None),
        };
        let fields = RuleFields {
            name: self.name().to_owned(),
            limit: None,
            limits: self.limits().iter().map(Limit::rate).collect(),
            algorithm: Some(self.algorithm().name().to_owned()),
            buckets: buckets.map(|buckets| u64::from(buckets.get())),
            edge: edge.map(|edge| edge.name().to_owned()),
            entries: entries.map(|entries| entries.get().into()),
            headroom: self.headroom(),
            shadow: self.shadow(),
            on_store_error: self.on_store_error(),
            at_budget: self.at_budget(),
            take_over: self.take_over(),
            shards: self.shards(),
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = RuleFields::deserialize(deserializer)?;
        if fields.limit.is_some() && !fields.limits.is_empty() {
            return Err(de::Error::custom("both limit and limits are given; give one of them"));
        }
        let algorithm = fields.algorithm()?;
        let rates = fields.limit.into_iter().chain(fields.limits);
        if Self::is_inline_name(&fields.name) {
            let mut inline = rates.map(|rate| Self::inline(rate, algorithm));
            let wrong =
                || de::Error::custom("the name of an inline rule does not fit its limit and algorithm");
            return inline.next().filter(|rule| rule.name() == fields.name).ok_or_else(wrong);
        }
        let builder = Self::builder(&fields.name)
            .algorithm(algorithm)
            .headroom(fields.headroom)
            .shadow(fields.shadow)
            .on_store_error(fields.on_store_error)
            .at_budget(fields.at_budget)
            .shards(fields.shards);
        let builder = fields.take_over.into_iter().fold(builder, RuleBuilder::take_over);
        rates.fold(builder, RuleBuilder::limit).build().map_err(de::Error::custom)
    }
}

impl Serialize for Decision<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Decision", 9)?;
        fields.serialize_field("allowed", &self.allowed())?;
        fields.serialize_field("rule", self.rule())?;
        fields.serialize_field("limit", &self.limit())?;
        fields.serialize_field("used", &self.used())?;
        fields.serialize_field("remaining", &self.remaining())?;
        fields.serialize_field("retry_after_us", &self.retry_after().map(whole_us))?;
        fields.serialize_field("reset_after_us", &self.reset_after().map(whole_us))?;
        fields.serialize_field("degraded", &self.degraded())?;
        fields.serialize_field("checks", &self.verdicts().collect::<Vec<_>>())?;
        fields.end()
    }
}

impl Serialize for Verdict<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdict", 7 + usize::from(self.tag().is_some()))?;
        fields.serialize_field("rule", self.rule())?;
        fields.serialize_field("key", self.key())?;
        match self.tag() {
            Some(tag) => fields.serialize_field("tag", tag)?,
            None => fields.skip_field("tag")?,
        }
        fields.serialize_field("allowed", &self.allowed())?;
        fields.serialize_field("limit", &self.limit())?;
        fields.serialize_field("used", &self.used())?;
        fields.serialize_field("remaining", &self.remaining())?;
        fields.serialize_field("retry_after_us", &self.retry_after().map(whole_us))?;
        fields.end()
    }
}

fn whole_us(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
