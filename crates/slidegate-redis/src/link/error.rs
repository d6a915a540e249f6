//! Errors of connecting.

use redis::{ErrorKind, RedisError};
use slidegate::store::RefusalCause;
use thiserror::Error;

use super::target::Target;
use crate::call_error::{CallError, ErrorClass, known_cause};
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
    /// The server, or a proxy before it, closed the connection during the handshake.
    #[error(
        "store: Redis at {address} closed the connection: {why}; check proxies before it, its maxclients, and whether it \
         wants TLS (rediss://) or a client certificate"
    )]
    Broken {
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
        /// What it refused the handshake for.
        cause: RefusalCause,
    },
    /// A sentinel refused its login.
    #[error(
        "store: the sentinel at {address} refused the login: {why}; give the sentinels' own login as \
         sentinel_username and sentinel_password (or sentinel_password_file)"
    )]
    SentinelLogin {
        /// The address of the sentinel.
        address: String,
        /// The sentinel's error.
        why: String,
    },
    /// No sentinel knows the primary.
    #[error(
        "store: no sentinel names the primary `{master}`: {why}; check that sentinels run, and the name in the URL"
    )]
    NoPrimary {
        /// The name under which sentinels watch the primary.
        master: String,
        /// What each of them answered.
        why: String,
    },
    /// The server that the sentinels name is a replica.
    #[error(
        "store: Redis at {address}, which a sentinel names as the primary, is a replica; wait until the failover is over"
    )]
    NotPrimary {
        /// The address of the server.
        address: String,
    },
}

impl ConnectError {
    /// The text for an error of a call, which names the store itself.
    pub(super) fn cause(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("store: ").unwrap_or(&text).to_owned()
    }

    /// The error of calls that were not sent because of it. A refused login is a refusal, because only an operator can
    /// end it.
    pub(super) fn call_error(&self) -> CallError {
        let forbidden = matches!(
            self,
            Self::Login { .. }
                | Self::SentinelLogin { .. }
                | Self::Refused { cause: RefusalCause::Forbidden, .. }
        );
        let why: Box<str> = self.cause().into();
        if forbidden {
            return CallError {
                class: ErrorClass::Refused,
                cause: RefusalCause::Forbidden,
                why,
                redirect: None,
            };
        }
        CallError::not_sent(why)
    }

    /// Classifies an error of the handshake.
    pub(super) fn from_handshake(target: &Target, error: &RedisError) -> Self {
        let address = target.address.to_string();
        let why = match (error.code(), error.detail()) {
            (Some(code), detail) => format!("{code} {}", detail.unwrap_or_default()),
            (None, _) => error.to_string(),
        };
        let why = target.redacted(why.trim_end());
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
                Self::Login { address, why }
            }
            (ErrorKind::Io, _) => Self::Broken { address, why },
            (_, None) => {
                // Not a reply of Redis. Only the first line says what is wrong with it.
                let why = why.lines().next().unwrap_or_default();
                let why = format!("{why}; check that a Redis answers there");
                Self::Refused { address, why, cause: RefusalCause::Other }
            }
            (_, code) => Self::Refused { address, why, cause: known_cause(code.unwrap_or_default()) },
        }
    }
}
