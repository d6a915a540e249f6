//! Where states live, as users write it.

use std::str::FromStr;

use slidegate_redis::{OptionsError, RedisOptions};
use thiserror::Error;

use super::shown;

/// A store that this version can open.
#[derive(Debug, Clone, Default)]
pub(crate) enum StoreUrl {
    /// In this process.
    #[default]
    Memory,
    /// In a Redis.
    Redis(Box<RedisOptions>),
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            _ if text == "memory" => Ok(Self::Memory),
            "redis" | "rediss" | "unix" | "redis+cluster" | "redis+sentinel" => {
                Ok(Self::Redis(Box::new(RedisOptions::new(text)?)))
            }
            // What follows a scheme may be a password.
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
            Self::Redis(_) => "redis",
        }
    }
}

/// Why a store cannot be opened as written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum StoreUrlError {
    /// No store that this version has.
    #[error("store: `{text}` is not available; write `memory` or `redis://HOST:PORT`")]
    Unknown {
        /// What was written.
        text: String,
    },
    /// A Redis that cannot be used as asked.
    #[error(transparent)]
    Redis(#[from] OptionsError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_available_is_named_without_its_secrets() {
        assert_eq!(error("disk"), "store: `disk` is not available; write `memory` or `redis://HOST:PORT`");
        assert!(error("mysql://root:hunter2@db").starts_with("store: `mysql:...` is not available"));
        assert!(error("redis+cluster://bob:hunter2@db").contains("not supported yet"));
        assert!(!error("redis://bob:hunter2@db:port").contains("hunter2"));
    }

    #[test]
    fn a_redis_is_read_and_keeps_its_password_to_itself() {
        let url: StoreUrl = "redis://bob:hunter2@localhost:6380/1".parse().unwrap();
        let StoreUrl::Redis(_) = &url else { panic!("{url:?}") };
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}
