//! The settings of `slidegate serve`, merged from flags, environment, file and defaults.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use slidegate::store::BUDGET_BYTES_DEFAULT;

use slidegate_stores::{StoreUrl, UrlError};

use crate::tokens::{Token, Tokens};

/// The beginning of the names of settings that are parameters of the URL of a Redis too.
pub(crate) const STORE_FIELD: &str = "store.";

/// All settings except the rules. Only the tokens change while the server runs.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Where HTTP is served.
    pub(crate) http: SocketAddr,
    /// Threads that serve HTTP.
    pub(crate) threads: usize,
    /// Where states live.
    pub(crate) store: StoreUrl,
    /// Parameters of the URL of a Redis by name, for those that the URL does not give.
    pub(crate) store_parameters: BTreeMap<&'static str, String>,
    /// How long a store may take before `on_store_error` answers in its place.
    pub(crate) deadline: Duration,
    /// Bytes that states in this process may take.
    pub(crate) memory_budget: u64,
    /// The token of `token_file`, if any, which has all scopes.
    pub(crate) token: Option<Token>,
    /// The tokens that callers may send as `Authorization: Bearer ...`, by name.
    pub(crate) tokens: Vec<(String, Token)>,
    /// The secret under which keys are hashed before they reach the store; `None` to store them as they are.
    pub(crate) hash_keys_secret: Option<Secret>,
    /// Names besides the loopback ones by which callers may address a server on loopback.
    pub(crate) hosts: Vec<String>,
    /// Which sets of headers go with a decision.
    pub(crate) headers: Vec<HeaderSet>,
    pub(crate) bounds: Bounds,
    pub(crate) tls: TlsFiles,
}

/// The PEM files of TLS; without a certificate and a key, connections are not encrypted.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsFiles {
    /// The certificate of the server, followed by those that issued it.
    pub(crate) certificate: Option<PathBuf>,
    /// The private key of the certificate.
    pub(crate) key: Option<PathBuf>,
    /// The authorities whose clients are served; without them, any client is.
    pub(crate) client_ca: Option<PathBuf>,
}

impl Settings {
    /// The store, with all settings that its URL does not give.
    pub(crate) fn store_url(&self) -> Result<StoreUrl, UrlError> {
        let url = self.completed(self.store.clone())?.deadline(self.deadline)?;
        Ok(url.memory_budget(self.memory_budget))
    }

    /// Another URL with the settings of a Redis that it does not give.
    pub(crate) fn completed(&self, url: StoreUrl) -> Result<StoreUrl, UrlError> {
        let mut parameters = self.store_parameters.iter();
        parameters.try_fold(url, |url, (name, text)| url.parameter_unless_given(name, text))
    }

    /// All tokens that callers may send.
    pub(crate) fn tokens(&self) -> Tokens {
        let named = self.tokens.iter().map(|(_, token)| token);
        Tokens(self.token.iter().chain(named).cloned().collect())
    }
}

/// Bounds on requests and connections.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) body_bytes: usize,
    pub(crate) header_bytes: usize,
    pub(crate) connections: usize,
    /// Bytes that all connections may buffer of requests that are still arriving.
    pub(crate) buffer_bytes: usize,
    /// How long a request may take to arrive.
    pub(crate) request_time: Duration,
    /// How long a connection may be idle.
    pub(crate) idle_time: Duration,
    /// How long requests in flight may take after the server is told to stop.
    pub(crate) drain_time: Duration,
    /// Most different inline rules in use.
    pub(crate) inline_rules: usize,
    /// Longest window of an inline rule.
    pub(crate) inline_window: Duration,
}

/// A set of rate limit headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderSet {
    /// `RateLimit-Policy` and `RateLimit`, as in draft 11.
    Draft11,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from now.
    XRateLimit,
    /// `x-ratelimit-limit`, `-remaining`, `-used` and `-reset`, the last in seconds since 1970, as GitHub sends them.
    GitHub,
}

/// A text that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("...")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            http: (Ipv4Addr::LOCALHOST, 8080).into(),
            threads: threads(),
            store: StoreUrl::default(),
            store_parameters: BTreeMap::new(),
            deadline: Duration::from_millis(50),
            memory_budget: BUDGET_BYTES_DEFAULT,
            token: None,
            tokens: Vec::new(),
            hash_keys_secret: None,
            hosts: Vec::new(),
            headers: vec![HeaderSet::Draft11],
            bounds: Bounds::default(),
            tls: TlsFiles::default(),
        }
    }
}

/// All cores but one, which the kernel needs: it does more than half of the work of a request.
fn threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    (cores - 1).max(1)
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 10,
            header_bytes: 16 << 10,
            connections: 16_384,
            buffer_bytes: 64 << 20,
            request_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            drain_time: Duration::from_secs(10),
            inline_rules: 1_000,
            // The longest month.
            inline_window: Duration::from_secs(31 * 86_400),
        }
    }
}
