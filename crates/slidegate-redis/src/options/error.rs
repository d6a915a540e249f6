//! Errors of options.

use std::time::Duration;

use thiserror::Error;

use super::{CONNECTIONS_MAX, WAIT_MAX};
use crate::endpoint::{FORM, SENTINEL_FORM};
use crate::keys::TEMPLATE_BYTES_MAX;

/// An invalid option. It never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A malformed URL.
    #[error("store: the URL is not understood: {why}; its form is {FORM}")]
    Url {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A malformed URL of sentinels.
    #[error("store: the Sentinel URL is not understood: {why}; its form is {SENTINEL_FORM}")]
    Sentinel {
        /// What is wrong with it, and the remedy.
        why: String,
    },
    /// A scheme that is not one of a Redis.
    #[error(
        "store: `{scheme}://` is not a Redis scheme; use redis://, rediss:// (TLS), redis+sentinel://, redis+cluster:// or unix://, for example {FORM}"
    )]
    Scheme {
        /// What stands before `://`.
        scheme: String,
    },
    /// An unknown parameter in the URL.
    #[error("store: the URL has the parameter `{name}`, which is unknown; {remedy}")]
    Parameter {
        /// Its name.
        name: String,
        /// The nearest name, or all names.
        remedy: String,
    },
    /// A parameter that the URL has twice.
    #[error("store: the URL has the parameter `{name}` twice; keep one of them")]
    DuplicateParameter {
        /// Its name.
        name: String,
    },
    /// Malformed percent-encoding.
    #[error(
        "store: the parameter `{name}` is not percent-encoded UTF-8; write %25 for a percent sign, and two hexadecimal \
         digits after every other one"
    )]
    Percent {
        /// The name of the parameter.
        name: &'static str,
    },
    /// Two parameters that both set the names of keys.
    #[error("store: key_prefix and key_template both name the keys; keep one of them")]
    PrefixAndTemplate,
    /// An unknown layout.
    #[error("log_layout: `{text}` is unknown; {remedy}")]
    Layout {
        /// The given text.
        text: String,
        /// The nearest name, or all names.
        remedy: String,
    },
    /// A text that is not a duration.
    #[error("{name}: `{text}` is not a duration; write a number and ms, s, m, h or d, for example 50ms")]
    Duration {
        /// The name of the option.
        name: &'static str,
        /// The given text.
        text: String,
    },
    /// A text that is neither a duration nor `off`.
    #[error(
        "deny_cache: `{text}` is not a duration; write a number and ms, s, m, h or d, for example 200ms, or off"
    )]
    DenyCache {
        /// The given text.
        text: String,
    },
    /// A text that is not a number of connections.
    #[error("connections: `{text}` is not a whole number; write digits only")]
    Count {
        /// The given text.
        text: String,
    },
    /// A template without `{key}`.
    #[error(
        "key_template: `{template}` has no {{key}}, so all keys would share one state; write {{key}} where the key \
         belongs, for example `sg:{{{{key}}}}:{{rule}}`"
    )]
    Template {
        /// The given text.
        template: String,
    },
    /// A template for a cluster without the key in a hash tag.
    #[error(
        "key_template: `{template}` has no {{key}} in a hash tag, and in a cluster the keys of one state would lie in \
         several slots; write braces around it: `{{{{key}}}}`, as in `sg:{{{{key}}}}:{{rule}}`"
    )]
    HashTag {
        /// The given text.
        template: String,
    },
    /// A template or a prefix that is too long.
    #[error("{name}: {bytes} bytes are too many; give at most {TEMPLATE_BYTES_MAX}")]
    TemplateLength {
        /// The name of the option.
        name: &'static str,
        /// The length of the text.
        bytes: usize,
    },
    /// An empty prefix, or one with braces, which would change the hash tag of a name.
    #[error(
        "key_prefix: `{prefix}` cannot begin the names of keys; give at least one character and no braces, or a whole \
         key_template"
    )]
    Prefix {
        /// The given text.
        prefix: String,
    },
    /// A number of connections out of range.
    #[error("connections: {connections} is out of range; give 1 to {CONNECTIONS_MAX}, 2 are enough for most")]
    Connections {
        /// The given value.
        connections: usize,
    },
    /// A deadline or timeout out of range.
    #[error("{name}: {wait:?} is out of range; give 1ms to {WAIT_MAX:?}")]
    Wait {
        /// The name of the option.
        name: &'static str,
        /// The given value.
        wait: Duration,
    },
    /// A malformed certificate or key.
    #[error("{name}: {why}; give it in PEM, as openssl writes it")]
    Certificate {
        /// The name of the option.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
}
