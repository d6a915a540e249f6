//! Which Redis it is.

use redis::{Value, from_redis_value};

use super::error::ConnectError;

/// The oldest version whose scripts may write after they have asked for the time.
const OLDEST: u32 = 5;

/// What is wrong with the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mistake {
    TooOld(String),
    None,
}

impl Mistake {
    pub(super) fn at(self, address: String) -> ConnectError {
        match self {
            Self::TooOld(version) => ConnectError::TooOld { address, version },
            Self::None => {
                let why = "its INFO names no version; give the address of a Redis".into();
                ConnectError::Refused { address, why }
            }
        }
    }
}

/// Looks at the reply to `INFO server`. Valkey and others give the version of Redis that they are like.
pub(super) fn check(info: Value) -> Result<(), Mistake> {
    let text: String = from_redis_value(info).map_err(|_| Mistake::None)?;
    let version = text.lines().find_map(|line| line.strip_prefix("redis_version:")).map(str::trim);
    let version = version.ok_or(Mistake::None)?;
    let major = version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    match major.ok_or(Mistake::None)? {
        OLDEST.. => Ok(()),
        _ => Err(Mistake::TooOld(version.chars().take(32).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(info: &str) -> Result<(), Mistake> {
        check(Value::BulkString(info.as_bytes().to_vec()))
    }

    #[test]
    fn five_and_newer_will_do() {
        for version in ["5.0.0", "5.0.14", "7.0.15", "10.2.1", "6.2.5-rc1"] {
            assert_eq!(
                checked(&format!("# Server\r\nredis_version:{version}\r\nos:x\r\n")),
                Ok(()),
                "{version}"
            );
        }
        for version in ["4.0.14", "3.2", "2.8.4"] {
            let info = format!("# Server\r\nredis_version:{version}\r\n");
            assert_eq!(checked(&info), Err(Mistake::TooOld(version.into())));
        }
    }

    #[test]
    fn what_is_no_redis_is_found_out() {
        for info in ["", "hello", "redis_version:", "redis_version:new", "valkey_version:8.0.1"] {
            assert_eq!(checked(info), Err(Mistake::None), "{info}");
        }
        assert_eq!(check(Value::Nil), Err(Mistake::None));
        assert_eq!(check(Value::Int(7)), Err(Mistake::None));
    }
}
