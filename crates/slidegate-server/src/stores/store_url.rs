//! Where states live, as users write it.

use std::str::FromStr;

use slidegate_redis::{OptionsError, RedisOptions};
use slidegate_sqlite::SqliteOptions;
use thiserror::Error;

use crate::text::shown;

/// A store that this version can open.
#[derive(Debug, Clone, Default)]
pub(crate) enum StoreUrl {
    /// In this process.
    #[default]
    Memory,
    /// In a file of this machine.
    Sqlite(Box<SqliteOptions>),
    /// In a Redis.
    Redis(Box<RedisOptions>),
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            _ if text == "memory" => Ok(Self::Memory),
            "sqlite" => Ok(Self::Sqlite(Box::new(SqliteOptions::from_url(text)?))),
            "redis" | "rediss" | "unix" | "redis+cluster" | "redis+sentinel" => {
                Ok(Self::Redis(Box::new(RedisOptions::new(text)?)))
            }
            // What follows a scheme may be a password, and so may what stands before the sign of a host.
            _ if text.contains('@') && !text.contains("://") => {
                Err(StoreUrlError::Unknown { text: "...@...".to_owned() })
            }
            "" => Err(StoreUrlError::Unknown { text: shown(text) }),
            scheme => Err(StoreUrlError::Unknown { text: shown(&format!("{scheme}:...")) }),
        }
    }
}

impl StoreUrl {
    /// What it is, without where and with which password.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite(_) => "sqlite",
            Self::Redis(_) => "redis",
        }
    }
}

/// Why a store cannot be opened as written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum StoreUrlError {
    /// No store that this version has.
    #[error("store: `{text}` is not available; write `memory`, `sqlite:PATH` or `redis://HOST:PORT`")]
    Unknown {
        /// What was written.
        text: String,
    },
    /// A file that cannot be used as asked.
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OptionsError),
    /// A Redis that cannot be used as asked.
    #[error(transparent)]
    Redis(#[from] OptionsError),
    /// A server that cannot be asked, where servers are.
    #[error("{0}")]
    Server(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_available_is_named_without_its_secrets() {
        let remedy = "write `memory`, `sqlite:PATH` or `redis://HOST:PORT`";
        assert_eq!(error("disk"), format!("store: `disk` is not available; {remedy}"));
        assert!(error("mysql://root:hunter2@db").starts_with("store: `mysql:...` is not available"));
        assert!(error("redis+cluster://bob:hunter2@db").contains("not supported yet"));
        for url in ["redis://bob:hunter2@db:port", ":hunter2@db:6379", "hunter2@db:99", "bob:hunter2@db"] {
            assert!(!error(url).contains("hunter2"), "{url}");
        }
    }

    #[test]
    fn a_redis_is_read_and_keeps_its_password_to_itself() {
        let url: StoreUrl = "redis://bob:hunter2@localhost:6380/1".parse().unwrap();
        let StoreUrl::Redis(_) = &url else { panic!("{url:?}") };
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}
