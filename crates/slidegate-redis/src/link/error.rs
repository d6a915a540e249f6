//! Why there is no connection.

use redis::{ErrorKind, RedisError};
use thiserror::Error;

use crate::endpoint::Endpoint;
use crate::options::OptionsError;

/// Why there is no store: its URL or its options, or the Redis that they name. No password is ever repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL, or an option.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// Why a Redis cannot be used. No password is ever repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody is there.
    #[error(
        "store: no connection to Redis at {address}: {why}; see whether it runs, and whether the address is right"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What the network says.
        why: String,
    },
    /// A server may be there, but does not answer.
    #[error(
        "store: Redis at {address} was not ready within {after_ms} ms; see whether it runs, or raise connect_timeout"
    )]
    TimedOut {
        /// Where it was looked for.
        address: String,
        /// How long was waited.
        after_ms: u128,
    },
    /// The other side is not who it should be, or does not believe us.
    #[error("store: no TLS with Redis at {address}: {why}")]
    Tls {
        /// Where it is.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The user or the password is wrong or missing.
    #[error(
        "store: Redis at {address} does not let us in: {why}; correct the user and the password in the URL"
    )]
    Login {
        /// Where it is.
        address: String,
        /// What it says.
        why: String,
    },
    /// A version that lacks what the scripts need.
    #[error("store: Redis at {address} has version {version}; use version 5 or newer")]
    TooOld {
        /// Where it is.
        address: String,
        /// The version that it gives.
        version: String,
    },
    /// It answers, and the answer is no.
    #[error("store: Redis at {address} cannot be used: {why}")]
    Refused {
        /// Where it is.
        address: String,
        /// What it says, and what to do about it.
        why: String,
    },
}

impl ConnectError {
    /// What went wrong between the first byte and the last of the greeting.
    pub(super) fn of_greeting(endpoint: &Endpoint, error: &RedisError) -> Self {
        let address = endpoint.address.to_string();
        let why = match (error.code(), error.detail()) {
            (Some(code), detail) => format!("{code} {}", detail.unwrap_or_default()),
            (None, _) => error.to_string(),
        };
        let why = endpoint.redacted(why.trim_end());
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
                Self::Login { address, why }
            }
            (ErrorKind::Io, _) => Self::Unreachable { address, why },
            _ => Self::Refused { address, why },
        }
    }
}
