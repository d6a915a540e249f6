//! Errors of connecting.

use redis::{ErrorKind, RedisError};
use thiserror::Error;

use crate::endpoint::Endpoint;
use crate::options::OptionsError;

/// A store that cannot be opened. The error never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL or an option is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Connecting failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// A failed connection. The error never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server cannot be reached.
    #[error(
        "store: no connection to Redis at {address}: {why}; check that it is running and that the address is right"
    )]
    Unreachable {
        /// The address of the server.
        address: String,
        /// The error of the network.
        why: String,
    },
    /// The server does not answer in time.
    #[error(
        "store: Redis at {address} was not ready within {after_ms} ms; check that it is running, or raise connect_timeout"
    )]
    TimedOut {
        /// The address of the server.
        address: String,
        /// The timeout.
        after_ms: u128,
    },
    /// The TLS handshake failed.
    #[error("store: no TLS with Redis at {address}: {why}")]
    Tls {
        /// The address of the server.
        address: String,
        /// The error of TLS.
        why: String,
    },
    /// The user or the password is wrong or missing.
    #[error(
        "store: Redis at {address} refused the login: {why}; correct the user and the password in the URL"
    )]
    Login {
        /// The address of the server.
        address: String,
        /// The server's error.
        why: String,
    },
    /// A version that lacks what the scripts need.
    #[error("store: Redis at {address} has version {version}; use version 5 or newer")]
    TooOld {
        /// The address of the server.
        address: String,
        /// The version of the server.
        version: String,
    },
    /// The server refused the handshake.
    #[error("store: Redis at {address} cannot be used: {why}")]
    Refused {
        /// The address of the server.
        address: String,
        /// The server's error, and the remedy.
        why: String,
    },
}

impl ConnectError {
    /// The text for an error of a call, which names the store itself.
    pub(super) fn cause(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("store: ").unwrap_or(&text).to_owned()
    }

    /// Classifies an error of the handshake.
    pub(super) fn from_handshake(endpoint: &Endpoint, error: &RedisError) -> Self {
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
