//! The servers of a store and the login to them, parsed from a URL.

mod authority;
mod sentinel;

use std::fmt;
use std::path::PathBuf;

use redis::{ConnectionAddr, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, parse_redis_url};

use crate::options::OptionsError;
use crate::parameters::{self, printable};
use authority::Authority;
pub(crate) use sentinel::{FORM as SENTINEL_FORM, SentinelServers};

/// The form of a URL, for remedies.
pub(crate) const FORM: &str = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";

const PORT_DEFAULT: u16 = 6379;

/// The servers of a store, and our login.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) servers: Servers,
    /// User, password and database. Its `Debug` redacts the password.
    pub(crate) login: RedisConnectionInfo,
}

/// The servers that a URL names.
#[derive(Debug, Clone)]
pub(crate) enum Servers {
    One(Address),
    Sentinels(SentinelServers),
    /// Some nodes of a cluster; at least one.
    Cluster(Vec<Address>),
}

/// The address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Parses a URL. An error never repeats it: in a malformed URL the password may stand anywhere.
    pub(crate) fn parse(url: &str) -> Result<Self, OptionsError> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or(malformed("it has no scheme; begin it with redis:// or rediss://"))?;
        let tls = scheme.starts_with("rediss") || scheme.starts_with("valkeys");
        match scheme {
            "redis" | "valkey" => Self::parse_one(url, tls, &["protocol"]),
            // We do TLS ourselves: the redis crate parses the URL without its TLS features.
            "rediss" | "valkeys" => Self::parse_one(&format!("redis://{rest}"), tls, &["protocol"]),
            "unix" | "redis+unix" | "valkey+unix" => {
                Self::parse_one(url, tls, &["db", "user", "pass", "protocol"])
            }
            "redis+sentinel" | "rediss+sentinel" | "valkey+sentinel" | "valkeys+sentinel" => {
                sentinel::parse(rest, tls)
            }
            "redis+cluster" | "rediss+cluster" | "valkey+cluster" | "valkeys+cluster" => {
                let authority = Authority::split(rest);
                let addresses = authority.addresses(PORT_DEFAULT, tls).map_err(malformed)?;
                let one = Self::parse_one(&authority.with_database(authority.path), tls, &["protocol"])?;
                if one.login.db() != 0 {
                    return Err(malformed(
                        "a cluster has only database 0; remove the number after its nodes",
                    ));
                }
                Ok(Self { servers: Servers::Cluster(addresses), ..one })
            }
            _ => Err(OptionsError::Scheme { scheme: printable(scheme) }),
        }
    }

    /// Parses the URL of one server, which may have these parameters.
    fn parse_one(url: &str, tls: bool, known: &[&'static str]) -> Result<Self, OptionsError> {
        let parsed = parse_redis_url(url)
            .ok_or(malformed("it cannot be read; percent-encode what is special in its user and password"))?;
        if parsed.fragment().is_some() {
            return Err(malformed("it has a `#`; write %23 if that belongs to the password"));
        }
        let path = parsed.path().trim_matches('/');
        if !parsed.scheme().ends_with("unix") && !path.is_empty() && path.parse::<u32>().is_err() {
            return Err(malformed("the part after the host is not the number of a database"));
        }
        let unknown = parsed.query_pairs().find(|(name, _)| !known.contains(&&**name));
        if let Some((name, _)) = unknown {
            return Err(parameters::unknown(&name, known));
        }
        let has_protocol = parsed.query_pairs().any(|(name, _)| name == "protocol");
        let info = parsed
            .into_connection_info()
            .map_err(|_| malformed("its host, user, password, database or protocol is invalid"))?;
        let address = match info.addr().clone() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp { host, port, tls },
            ConnectionAddr::Unix(path) => Address::Unix(path),
            _ => return Err(malformed("it names no TCP or Unix socket")),
        };
        let login = info.redis_settings().clone();
        if login.username().is_some() && login.password().is_none() {
            // Redis does not log in by name alone: we would silently be the default user.
            return Err(malformed("it has a user and no password; for a user without a password give any"));
        }
        let login = if has_protocol { login } else { login.set_protocol(ProtocolVersion::RESP3) };
        let login = login.set_lib_name("slidegate", env!("CARGO_PKG_VERSION"));
        Ok(Self { servers: Servers::One(address), login })
    }
}

fn malformed(why: &'static str) -> OptionsError {
    OptionsError::Url { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Endpoint {
        Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    fn tcp(host: &str, port: u16, tls: bool) -> Address {
        Address::Tcp { host: host.into(), port, tls }
    }

    #[test]
    fn addresses_are_parsed() {
        for (url, address, displayed) in [
            ("redis://localhost", tcp("localhost", 6379, false), "localhost:6379"),
            ("redis://127.0.0.1:7000/3", tcp("127.0.0.1", 7000, false), "127.0.0.1:7000"),
            ("redis://[::1]:7000", tcp("::1", 7000, false), "[::1]:7000"),
            ("valkey://cache/", tcp("cache", 6379, false), "cache:6379"),
            ("rediss://cache:6380", tcp("cache", 6380, true), "cache:6380"),
            ("valkeys://cache", tcp("cache", 6379, true), "cache:6379"),
            ("unix:///run/redis.sock", Address::Unix("/run/redis.sock".into()), "/run/redis.sock"),
            ("redis+unix:///run/redis.sock?db=2", Address::Unix("/run/redis.sock".into()), "/run/redis.sock"),
        ] {
            match parsed(url).servers {
                Servers::One(parsed) => {
                    assert_eq!((&*parsed.to_string(), &parsed), (displayed, &address), "{url}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }

    #[test]
    fn logins_are_parsed_and_percent_decoded() {
        for (url, user, password, db) in [
            ("redis://localhost", None, None, 0),
            ("redis://:s%40cret@localhost/2", None, Some("s@cret"), 2),
            ("rediss://b%C3%B6b:s%23@localhost", Some("b\u{f6}b"), Some("s#"), 0),
            ("unix:///run/redis.sock?db=7&user=bob&pass=secret", Some("bob"), Some("secret"), 7),
        ] {
            let login = parsed(url).login;
            assert_eq!((login.username(), login.password(), login.db()), (user, password, db), "{url}");
            assert!(login.protocol().supports_resp3(), "{url}");
        }
        assert!(!parsed("redis://localhost/?protocol=resp2").login.protocol().supports_resp3());
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in ["redis://bob:hunter2@localhost", "unix:///run/redis.sock?user=bob&pass=hunter2"] {
            let endpoint = parsed(url);
            assert!(!format!("{endpoint:?} {endpoint:#?}").contains("hunter2"), "{url}");
        }
        for url in [
            "hunter2",
            "redis:hunter2",
            "hunter2@localhost://",
            "redis://bob:hunter2@",
            "redis://bob:hunter2@localhost:port",
            "redis://bob:hunter2@localhost:99999",
            "redis://bob:hunter2@localhost/one",
            "redis://bob:hunter2@localhost/-1",
            "redis://bob:hunter2@localhost/#insecure",
            "redis://bob:hunter2#@localhost",
            "redis://bob:hunter2@0.0.0.0",
            "redis://hunter2@localhost",
            "unix:///run/redis.sock?user=hunter2",
            "redis://bob:hunter2@localhost?timeout=1",
            "redis://bob:hunter2@localhost?protocol=4",
            "redis://localhost?bob:hunter2@localhost",
            "bob:hunter2://localhost",
            "redis+cluster://bob:hunter2@localhost,",
            "redis+cluster://bob:hunter2@localhost:port",
            "redis+cluster://bob:hunter2@localhost/one",
            "redis+sentinel://bob:hunter2@localhost",
            "http://bob:hunter2@localhost",
            "",
        ] {
            let error = Endpoint::parse(url).expect_err(url);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error:?}");
        }
    }

    #[test]
    fn the_nodes_of_a_cluster_are_parsed() {
        for (scheme, encrypted) in
            [("redis+cluster", false), ("valkey+cluster", false), ("rediss+cluster", true)]
        {
            let endpoint = parsed(&format!("{scheme}://bob:s%40cret@h1:7000,[::1],h3"));
            let nodes = [tcp("h1", 7000, encrypted), tcp("::1", 6379, encrypted), tcp("h3", 6379, encrypted)];
            assert!(
                matches!(&endpoint.servers, Servers::Cluster(parsed) if *parsed == nodes),
                "{endpoint:?}"
            );
            assert_eq!((endpoint.login.username(), endpoint.login.password()), (Some("bob"), Some("s@cret")));
        }
        parsed("redis+cluster://h1,h2/0");
        let error = Endpoint::parse("redis+cluster://h1,h2/1").unwrap_err();
        assert!(error.to_string().contains("only database 0"), "{error}");
    }

    #[test]
    fn unsupported_schemes_and_parameters_are_named() {
        let error = Endpoint::parse("http://localhost").unwrap_err();
        assert_eq!(error, OptionsError::Scheme { scheme: "http".into() });
        let error = Endpoint::parse("redis://localhost?timeout=1").unwrap_err().to_string();
        assert!(error.contains("`timeout`, which is unknown") && error.contains("deadline, "), "{error}");
    }
}
