//! What every way in shares: the rules by name, how parts of them are written, and the service that answers.

mod algorithm;
mod ask;
mod base64url;
mod counted;
mod engine;
mod failure;
pub(crate) mod fields;
pub(crate) mod inline;
pub(crate) mod json;
mod live;
mod log;
mod metrics;
mod nearest;
mod opened;
mod overrides;
mod pattern;
mod receipt_text;
mod rules;
mod settings;
mod shown;
mod size;
mod store_url;
mod top;
mod worker;

pub(crate) use algorithm::AlgorithmText;
pub(crate) use ask::{Ask, Policy, RuleAsked, passes_without_store};
pub(crate) use engine::{Checked, Explained, Said, Service};
pub(crate) use failure::{Failure, Kind};
pub(crate) use live::Live;
pub(crate) use log::{LogFormat, LogLevel, LogOptions, install as install_log};
pub(crate) use metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics, Outcome, Transport};
pub(crate) use nearest::{did_you_mean, nearest};
pub(crate) use opened::{AnyStore, Opened};
pub(crate) use overrides::{Override, Overrides, PATTERNS_MAX};
pub(crate) use receipt_text::ReceiptText;
pub(crate) use rules::{Resolved, Rules, UnknownRule};
pub(crate) use settings::{Bounds, HeaderSet, Secret, Settings};
pub(crate) use shown::{escaped, shown};
pub(crate) use size::bytes_per_key;
/// What is used of a limit; the wires take it from here, as they never name a store.
pub(crate) use slidegate::store::LimitUsage;
pub(crate) use store_url::{StoreUrl, StoreUrlError};
pub(crate) use top::{LISTED_MAX as TOP_LISTED_MAX, Top, TopKeys};
