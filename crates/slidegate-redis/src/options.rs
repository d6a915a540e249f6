//! Options of a shared store.

mod error;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use slidegate::ruleset::nearest;

use crate::endpoint::{Endpoint, Servers};
use crate::keys::KeyTemplate;
use crate::parameters::{self, shortened};
use crate::tls::{self, Identity};
pub use error::OptionsError;

/// The most connections of one store. Calls share connections, so a few suffice.
pub const CONNECTIONS_MAX: usize = 64;
/// Longest deadline of a call, longest time to connect, and longest hold of a denial.
pub const WAIT_MAX: Duration = Duration::from_secs(600);

/// The address of a Redis, and how the store uses it.
///
/// ```
/// use slidegate_redis::{LogLayout, RedisOptions};
/// use std::time::Duration;
///
/// let options = RedisOptions::new("redis://limiter:secret@localhost/2")?
///     .deadline(Duration::from_millis(20))?
///     .key_template("rlaas:rate_limit:{key}")?
///     .log_layout(LogLayout::SortedSet);
/// assert!(!format!("{options:?}").contains("secret"));
///
/// // The same, as parameters of the URL:
/// let url = "redis://limiter:secret@localhost/2?deadline=20ms&key_template=rlaas:rate_limit:{key}&log_layout=sorted-set";
/// let options = RedisOptions::new(url)?;
///
/// let cluster = RedisOptions::new("redis+cluster://10.0.0.1:7000,10.0.0.2:7000")?;
/// let error = cluster.key_template("rlaas:{key}").unwrap_err();
/// assert!(error.to_string().contains("write braces around it"));
/// # Ok::<(), slidegate_redis::OptionsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RedisOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) connections: usize,
    pub(crate) deadline: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) keys: KeyTemplate,
    pub(crate) log_layout: LogLayout,
    /// How long a limiter answers denials from its deny cache; `None` for its default.
    pub(crate) deny_cache: Option<Duration>,
    /// The parameters of [`parameters::PARAMETERS`] that were given, by the URL or by name.
    pub(crate) given: Vec<&'static str>,
    /// Trusted roots of the server's certificate; `None` for those that the system trusts.
    pub(crate) roots: Option<Arc<RootCertStore>>,
    pub(crate) identity: Option<Identity>,
}

/// How `sliding-log` keeps its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLayout {
    /// In one string per key, 8 or 16 bytes per request.
    #[default]
    Packed,
    /// In a sorted set with a member per unit: larger and slower, readable with `ZRANGE`, and the migration path from
    /// limiters that keep such sets.
    SortedSet,
}

impl LogLayout {
    /// The names of both.
    pub const NAMES: [&str; 2] = ["packed", "sorted-set"];

    /// The name: `packed` or `sorted-set`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::SortedSet => "sorted-set",
        }
    }
}

impl FromStr for LogLayout {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let found = [Self::Packed, Self::SortedSet].into_iter().find(|layout| layout.name() == text);
        found.ok_or_else(|| OptionsError::Layout {
            text: shortened(text),
            remedy: match nearest(text, Self::NAMES.into_iter()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("choose from: {}", Self::NAMES.join(", ")),
            },
        })
    }
}

impl RedisOptions {
    /// The options for the Redis at a URL: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://` for TLS,
    /// `unix:///PATH[?db=N&user=U&pass=P]` for a socket in the file system. `valkey://` and `valkeys://` are the same as
    /// `redis://` and `rediss://`.
    ///
    /// `redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]/MASTER[/DATABASE]` (`rediss+sentinel://` for TLS)
    /// connects to the primary `MASTER` of those sentinels. The login is that of the primary; the sentinels' own follows as
    /// `?sentinel_username=U&sentinel_password=P`, or in a file: `?sentinel_password_file=PATH`.
    ///
    /// `redis+cluster://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]` (`rediss+cluster://` for TLS) connects to a cluster. A few
    /// of its nodes suffice: they name the others.
    ///
    /// Every option can be a parameter of the URL, named as its method: `?deadline=20ms&connections=4`. What is special in
    /// a URL (`%`, `&`, `#`) is percent-encoded; other options have their defaults.
    ///
    /// | parameter | example |
    /// |---|---|
    /// | `key_prefix` or `key_template` | `key_prefix=app`, `key_template=rlaas:rate_limit:{key}` |
    /// | `log_layout` | `packed`, `sorted-set` |
    /// | `deadline`, `connect_timeout` | `20ms`, `2s` |
    /// | `connections` | `4` |
    /// | `deny_cache` | `200ms`; `0` or `off` for none |
    pub fn new(url: &str) -> Result<Self, OptionsError> {
        let (address, given) = parameters::split(url)?;
        let endpoint = Endpoint::parse(&address)?;
        let options = Self {
            endpoint,
            connections: 2,
            deadline: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            keys: KeyTemplate::default(),
            log_layout: LogLayout::default(),
            deny_cache: None,
            given: Vec::new(),
            roots: None,
            identity: None,
        };
        given.into_iter().try_fold(options, |options, (name, text)| options.parameter(name, &text))
    }

    /// Sets the option of a parameter of URLs, by its name.
    pub fn parameter(self, name: &str, text: &str) -> Result<Self, OptionsError> {
        parameters::set(self, name, text)
    }

    /// The same, unless the URL or [`RedisOptions::parameter`] has given it: for programs with settings beside the URL.
    pub fn parameter_unless_given(self, name: &str, text: &str) -> Result<Self, OptionsError> {
        if self.is_given(name) { Ok(self) } else { self.parameter(name, text) }
    }

    /// Whether the URL or [`RedisOptions::parameter`] has given a parameter, or another one that sets the same option.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        parameters::is_given(self, name)
    }

    /// How many connections are open; 2 by default, at most [`CONNECTIONS_MAX`].
    pub fn connections(mut self, connections: usize) -> Result<Self, OptionsError> {
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            return Err(OptionsError::Connections { connections });
        }
        self.connections = connections;
        Ok(self)
    }

    /// How long a call may take, until its answer; 50 ms by default, at most [`WAIT_MAX`].
    pub fn deadline(mut self, deadline: Duration) -> Result<Self, OptionsError> {
        self.deadline = checked("deadline", deadline)?;
        Ok(self)
    }

    /// The same, unless a deadline was given before, by the URL or by [`RedisOptions::parameter`].
    pub fn deadline_unless_given(self, deadline: Duration) -> Result<Self, OptionsError> {
        if self.is_given("deadline") { Ok(self) } else { self.deadline(deadline) }
    }

    /// How long connecting may take, with the handshake; 1 s by default, at most [`WAIT_MAX`].
    pub fn connect_timeout(mut self, timeout: Duration) -> Result<Self, OptionsError> {
        self.connect_timeout = checked("connect_timeout", timeout)?;
        Ok(self)
    }

    /// The template of key names; `sg:{{key}}:{rule}` by default. `{key}` and `{rule}` are replaced wherever they
    /// stand. A template without `{rule}` is for a store that one rule uses: others would share its states. In a cluster
    /// the key must stand in a hash tag, as it does in the default: all names of one state must lie in one slot.
    pub fn key_template(mut self, template: &str) -> Result<Self, OptionsError> {
        let keys = KeyTemplate::new(template)?;
        if matches!(self.endpoint.servers, Servers::Cluster(_)) && !keys.has_hash_tag() {
            return Err(OptionsError::HashTag { template: template.into() });
        }
        self.keys = keys;
        Ok(self)
    }

    /// The prefix of key names, instead of `sg`.
    pub fn key_prefix(mut self, prefix: &str) -> Result<Self, OptionsError> {
        self.keys = KeyTemplate::with_prefix(prefix)?;
        Ok(self)
    }

    /// How `sliding-log` keeps its entries.
    #[must_use]
    pub fn log_layout(mut self, layout: LogLayout) -> Self {
        self.log_layout = layout;
        self
    }

    /// How long a limiter over the store answers denials from its deny cache; zero for no cache, at most [`WAIT_MAX`].
    /// [`GuardOptions`](slidegate::guard::GuardOptions) of the limiter take precedence.
    pub fn deny_cache(mut self, hold: Duration) -> Result<Self, OptionsError> {
        self.deny_cache = Some(if hold.is_zero() { hold } else { checked("deny_cache", hold)? });
        Ok(self)
    }

    /// The template of key names, if it has no `{rule}`: only one rule may use the store then.
    #[must_use]
    pub fn template_without_rule(&self) -> Option<String> {
        (!self.keys.has_rule()).then(|| self.keys.to_string())
    }

    /// Whether the store keeps `sliding-log` as sorted sets.
    #[must_use]
    pub fn keeps_sorted_sets(&self) -> bool {
        self.log_layout == LogLayout::SortedSet
    }

    /// Trusted root certificates in PEM, instead of those that the system trusts. For `rediss://`.
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, OptionsError> {
        self.roots = Some(tls::roots(pem)?);
        Ok(self)
    }

    /// The client certificate and its key, both in PEM, for a server that demands one. For `rediss://`.
    pub fn client_certificate(mut self, certificates: &[u8], key: &[u8]) -> Result<Self, OptionsError> {
        self.identity = Some(Identity::new(certificates, key)?);
        Ok(self)
    }
}

fn checked(name: &'static str, wait: Duration) -> Result<Duration, OptionsError> {
    if wait < Duration::from_millis(1) || wait > WAIT_MAX {
        return Err(OptionsError::Wait { name, wait });
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> RedisOptions {
        RedisOptions::new("redis://bob:hunter2@localhost").unwrap()
    }

    #[test]
    fn defaults_are_as_documented() {
        let options = options();
        assert!(!format!("{options:?}").contains("hunter2"), "a password is not shown");
        assert_eq!(options.connections, 2);
        assert_eq!(
            (options.deadline, options.connect_timeout),
            (Duration::from_millis(50), Duration::from_secs(1))
        );
        assert_eq!(options.keys, KeyTemplate::new("sg:{{key}}:{rule}").unwrap());
        assert_eq!(options.log_layout, LogLayout::Packed);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for connections in [0, 65] {
            let error = options().connections(connections).unwrap_err();
            assert_eq!(error, OptionsError::Connections { connections });
        }
        for wait in [Duration::ZERO, Duration::from_micros(999), Duration::from_secs(601)] {
            let error = options().deadline(wait).unwrap_err();
            assert_eq!(error, OptionsError::Wait { name: "deadline", wait });
            let error = options().connect_timeout(wait).unwrap_err();
            assert_eq!(error, OptionsError::Wait { name: "connect_timeout", wait });
        }
        assert_eq!(options().connections(64).unwrap().connections, 64);
    }

    #[test]
    fn a_template_without_a_key_is_refused() {
        let error = options().key_template("sg:{rule}").unwrap_err();
        assert!(matches!(error, OptionsError::Template { .. }), "{error}");
        assert!(options().key_prefix("{").is_err());
        let renamed = options().key_prefix("eu").unwrap();
        assert_eq!(renamed.keys.state("api", slidegate::Key::new("alice").unwrap()), b"eu:{alice}:api");
    }
}
