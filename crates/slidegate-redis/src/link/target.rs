//! What a lane connects to: one server, or the primary that the sentinels name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisConnectionInfo;
use rustls::ClientConfig;

use super::error::ConnectError;
use super::sentinel::Sentinels;
use super::wire::Wire;
use crate::endpoint::{Address, Servers};
use crate::options::RedisOptions;
use crate::tls;

/// One server, and how to log in.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: Address,
    /// Its `Debug` redacts the password.
    pub(super) login: RedisConnectionInfo,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// For connecting with the handshake.
    pub(super) timeout: Duration,
}

impl Target {
    /// The server at `address`, with the login, the TLS settings and the timeout of the options.
    pub(crate) fn new(options: &RedisOptions, address: Address) -> Result<Self, ConnectError> {
        let failed = |why| ConnectError::Tls { address: address.to_string(), why };
        let tls = match address {
            Address::Tcp { tls: true, .. } => Some(tls::config(options).map_err(failed)?),
            Address::Tcp { .. } | Address::Unix(_) => None,
        };
        let login = options.endpoint.login.clone();
        Ok(Self { address, login, tls, timeout: options.connect_timeout })
    }

    /// The server at another host, with the same settings.
    pub(crate) fn at(&self, host: &str, port: u16) -> Self {
        let tls = self.tls.is_some();
        Self { address: Address::Tcp { host: host.to_owned(), port, tls }, ..self.clone() }
    }

    pub(super) fn timed_out(&self) -> ConnectError {
        ConnectError::TimedOut { address: self.address.to_string(), after_ms: self.timeout.as_millis() }
    }

    /// Removes our password from a text of the server or the network.
    pub(super) fn redacted(&self, text: &str) -> String {
        match self.login.password() {
            Some(password) if !password.is_empty() => text.replace(password, "***"),
            _ => text.to_owned(),
        }
    }
}

/// What a lane connects to.
#[derive(Debug)]
pub(super) enum Source {
    Server(Target),
    Sentinels(Sentinels),
}

impl Source {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, ConnectError> {
        match &options.endpoint.servers {
            Servers::One(address) => Ok(Self::Server(Target::new(options, address.clone())?)),
            Servers::Sentinels(servers) => Ok(Self::Sentinels(Sentinels::new(options, servers)?)),
            Servers::Cluster(_) => unreachable!("a cluster has a link per node, by its target"),
        }
    }

    /// Whether a connection leads to a server that calls may be sent to.
    pub(super) fn is_current(&self, wire: &Wire) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Sentinels(sentinels) => sentinels.is_current(wire),
        }
    }

    /// Keeps the address of the server current, for as long as it is polled.
    pub(super) async fn watch(&self) {
        if let Self::Sentinels(sentinels) = self {
            sentinels.watch().await;
        }
    }

    /// Connects. With sentinels every connection asks them anew: after a failover it leads to the new primary.
    pub(super) async fn open(&self) -> Result<Wire, ConnectError> {
        match self {
            Self::Server(target) => Wire::open(target).await,
            Self::Sentinels(sentinels) => sentinels.open().await,
        }
    }
}

/// For errors.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(target) => write!(f, "Redis at {}", target.address),
            Self::Sentinels(sentinels) => sentinels.fmt(f),
        }
    }
}
