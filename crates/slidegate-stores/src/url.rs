//! Store URLs.

use std::str::FromStr;
use std::time::Duration;

use slidegate::store::{BUDGET_BYTES_DEFAULT, BoxStore, MemoryStore};
use slidegate::time::{Clock, SystemClock};
#[cfg(feature = "redis")]
use slidegate_redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
use slidegate_sqlite::{SqliteOptions, SqliteStore};

use crate::error::{OpenError, UrlError};

/// The most characters of a URL that an error repeats.
const URL_CHARS_MAX: usize = 64;

/// The schemes that `slidegate-redis` knows.
const REDIS_SCHEMES: [&str; 15] = [
    "redis",
    "rediss",
    "unix",
    "redis+unix",
    "valkey",
    "valkeys",
    "valkey+unix",
    "redis+cluster",
    "rediss+cluster",
    "valkey+cluster",
    "valkeys+cluster",
    "redis+sentinel",
    "rediss+sentinel",
    "valkey+sentinel",
    "valkeys+sentinel",
];

/// A parsed store URL. Parsing finds every error that the text alone shows.
///
/// ```
/// use slidegate_stores::StoreUrl;
///
/// let url: StoreUrl = "redis://limiter:secret@localhost:6379/2".parse()?;
/// assert_eq!(url.kind(), "redis");
/// assert!(!format!("{url:?}").contains("secret"));
/// assert!("redis://".parse::<StoreUrl>().is_err());
/// # Ok::<(), slidegate_stores::UrlError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StoreUrl {
    target: Target,
    /// The budget of a store in memory.
    budget_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default)]
enum Target {
    #[default]
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite(Box<SqliteOptions>),
    #[cfg(feature = "redis")]
    Redis(Box<RedisOptions>),
}

/// Whether opening a store waits for its server.
#[derive(Debug, Clone, Copy)]
enum Opening {
    Connected,
    Lazy,
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            _ if text == "memory" => Ok(Self::default()),
            #[cfg(feature = "sqlite")]
            "sqlite" => Ok(Self::sqlite(SqliteOptions::from_url(text)?)),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Err(UrlError::NotBuilt { scheme: "sqlite", feature: "sqlite" }),
            #[cfg(feature = "redis")]
            scheme if REDIS_SCHEMES.contains(&scheme) => {
                let target = Target::Redis(Box::new(RedisOptions::new(text)?));
                Ok(Self { target, ..Self::default() })
            }
            #[cfg(not(feature = "redis"))]
            scheme if REDIS_SCHEMES.contains(&scheme) => {
                Err(UrlError::NotBuilt { scheme: "redis", feature: "redis" })
            }
            // The text after a scheme may be a password, and so may the text before an `@`.
            _ if text.contains('@') && !text.contains("://") => {
                Err(UrlError::Unknown { text: "...@...".to_owned() })
            }
            "" => Err(UrlError::Unknown { text: shortened(text) }),
            scheme => Err(UrlError::Unknown { text: shortened(&format!("{scheme}:...")) }),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(URL_CHARS_MAX).collect()
}

impl StoreUrl {
    /// The SQLite file of these options.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite(options: SqliteOptions) -> Self {
        Self { target: Target::Sqlite(Box::new(options)), ..Self::default() }
    }

    /// The kind of the store: `memory`, `sqlite` or `redis`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.target {
            Target::Memory => "memory",
            #[cfg(feature = "sqlite")]
            Target::Sqlite(_) => "sqlite",
            #[cfg(feature = "redis")]
            Target::Redis(_) => "redis",
        }
    }

    /// Limits a store in memory to `bytes`; no effect on other stores.
    #[must_use]
    pub fn memory_budget(self, bytes: u64) -> Self {
        Self { budget_bytes: Some(bytes), ..self }
    }

    /// Sets the deadline of a call, unless the URL has one; no effect in memory. Out of the store's range it is an error.
    pub fn deadline(self, deadline: Duration) -> Result<Self, UrlError> {
        let _ = deadline;
        let target = match self.target {
            Target::Memory => Target::Memory,
            #[cfg(feature = "sqlite")]
            Target::Sqlite(options) => Target::Sqlite(Box::new(options.deadline_unless_given(deadline)?)),
            #[cfg(feature = "redis")]
            Target::Redis(options) => Target::Redis(Box::new(options.deadline_unless_given(deadline)?)),
        };
        Ok(Self { target, ..self })
    }

    /// Sets a parameter of the URL of a Redis by its name, unless the URL has it; no effect on other stores.
    ///
    /// ```
    /// use slidegate_stores::StoreUrl;
    ///
    /// let url: StoreUrl = "redis://localhost?key_prefix=app".parse()?;
    /// let url = url.parameter_unless_given("key_prefix", "sg")?.parameter_unless_given("connections", "4")?;
    /// assert!(url.clone().parameter_unless_given("conections", "4").is_err());
    /// # Ok::<(), slidegate_stores::UrlError>(())
    /// ```
    pub fn parameter_unless_given(self, name: &str, text: &str) -> Result<Self, UrlError> {
        #[cfg(feature = "redis")]
        if let Target::Redis(options) = self.target {
            let target = Target::Redis(Box::new(options.parameter_unless_given(name, text)?));
            return Ok(Self { target, ..self });
        }
        let _ = (name, text);
        Ok(self)
    }

    /// Whether the URL of a Redis has a parameter, or another one that sets the same option.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        #[cfg(feature = "redis")]
        if let Target::Redis(options) = &self.target {
            return options.is_given(name);
        }
        let _ = name;
        false
    }

    /// The template of key names of a Redis, if it has no `{rule}`: only one rule may use the store then.
    #[must_use]
    pub fn template_without_rule(&self) -> Option<String> {
        #[cfg(feature = "redis")]
        if let Target::Redis(options) = &self.target {
            return options.template_without_rule();
        }
        None
    }

    /// Whether it is a Redis that keeps `sliding-log` as sorted sets.
    #[must_use]
    pub fn keeps_sorted_sets(&self) -> bool {
        #[cfg(feature = "redis")]
        if let Target::Redis(options) = &self.target {
            return options.keeps_sorted_sets();
        }
        false
    }

    /// Opens the store; see [`open`](crate::open).
    pub async fn open(&self) -> Result<BoxStore, OpenError> {
        self.open_on_clock(SystemClock::new()).await
    }

    /// The same with a clock for a store in memory; files and servers have a shared clock.
    pub async fn open_on_clock(&self, clock: impl Clock + 'static) -> Result<BoxStore, OpenError> {
        self.open_as(clock, Opening::Connected).await
    }

    /// The same without waiting for a server, which is connected in the background: until then calls fail as
    /// [unavailable](slidegate::StoreError::Unavailable), and so the outage policy answers them. An error is one that no
    /// server can make good.
    pub async fn open_lazily_on_clock(&self, clock: impl Clock + 'static) -> Result<BoxStore, OpenError> {
        self.open_as(clock, Opening::Lazy).await
    }

    async fn open_as(&self, clock: impl Clock + 'static, opening: Opening) -> Result<BoxStore, OpenError> {
        let _ = opening;
        Ok(match &self.target {
            Target::Memory => {
                let store = MemoryStore::with_budget(self.budget_bytes.unwrap_or(BUDGET_BYTES_DEFAULT))?;
                BoxStore::new(store.on_clock(clock))
            }
            #[cfg(feature = "sqlite")]
            Target::Sqlite(options) => BoxStore::new(SqliteStore::open_with(options)?),
            #[cfg(feature = "redis")]
            Target::Redis(options) => match opening {
                Opening::Connected => BoxStore::new(RedisStore::connect_with(options).await?),
                Opening::Lazy => BoxStore::new(RedisStore::lazy(options)?),
            },
        })
    }
}

#[cfg(feature = "redis")]
#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn every_scheme_of_redis_is_given_to_its_store() {
        for scheme in REDIS_SCHEMES {
            let rest = match scheme {
                scheme if scheme.ends_with("unix") => "/run/redis.sock",
                scheme if scheme.ends_with("sentinel") => "one:26379,other:26379/main",
                _ => "cache:6379",
            };
            let url = format!("{scheme}://{rest}");
            let parsed: StoreUrl = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(parsed.kind(), "redis", "{url}");
        }
        // What its store does not know is unknown here too.
        for scheme in ["redis+tls", "http"] {
            let url = format!("{scheme}://cache:6379");
            assert!(
                matches!(RedisOptions::new(&url), Err(slidegate_redis::OptionsError::Scheme { .. })),
                "{url}"
            );
            assert!(matches!(url.parse::<StoreUrl>(), Err(UrlError::Unknown { .. })), "{url}");
        }
    }

    #[test]
    fn parameters_of_a_redis_have_precedence_over_settings() {
        let url: StoreUrl = "redis://localhost?key_template=rlaas:{key}&deadline=20ms".parse().unwrap();
        let url = url.deadline(Duration::from_secs(1)).unwrap();
        let url = url.parameter_unless_given("key_prefix", "app").unwrap();
        assert_eq!(url.template_without_rule().as_deref(), Some("rlaas:{key}"));
        assert!(url.has_parameter("deadline") && url.has_parameter("key_prefix"));
        assert!(!url.has_parameter("connections"));
        let shown = format!("{url:?}");
        assert!(shown.contains("deadline: 20ms"), "{shown}");

        let memory = StoreUrl::default().parameter_unless_given("key_prefix", "app").unwrap();
        assert_eq!((memory.kind(), memory.template_without_rule()), ("memory", None));
        assert!(error("redis://localhost?dedline=1s").contains("did you mean `deadline`?"));
        assert!(
            error("redis://localhost?deadline=soon").starts_with("store: deadline: `soon` is not a duration")
        );
    }

    #[test]
    fn an_unknown_store_is_named_without_its_secrets() {
        let remedy = "write `memory`, `sqlite:PATH` or `redis://HOST:PORT`";
        assert_eq!(error("disk"), format!("store: `disk` is not available; {remedy}"));
        assert!(error("mysql://root:hunter2@db").starts_with("store: `mysql:...` is not available"));
        for url in [
            "redis+cluster://bob:hunter2@db/1",
            "redis://bob:hunter2@db:port",
            ":hunter2@db:6379",
            "hunter2@db:99",
            "bob:hunter2@db",
        ] {
            assert!(!error(url).contains("hunter2"), "{url}");
        }
    }
}
