//! The part of a URL between its scheme and its parameters, with several hosts.

use redis::{ConnectionAddr, IntoConnectionInfo, parse_redis_url};

use super::Address;

/// The most hosts of one URL.
pub(super) const HOSTS_MAX: usize = 64;

/// `[USER:PASSWORD@]HOST[:PORT],HOST[:PORT][/PATH][?PARAMETERS]`, split.
#[derive(Debug)]
pub(super) struct Authority<'a> {
    /// With its `@`, or empty.
    login: &'a str,
    hosts: Vec<&'a str>,
    /// Without slashes around it.
    pub(super) path: &'a str,
    /// From the `?` or `#` on.
    tail: &'a str,
}

impl<'a> Authority<'a> {
    pub(super) fn split(text: &'a str) -> Self {
        let (before, tail) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
        let (authority, path) = before.split_once('/').unwrap_or((before, ""));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let hosts = hosts.split(',').collect();
        Self { login, hosts, path: path.trim_matches('/'), tail }
    }

    /// The addresses of all hosts; what is wrong with them otherwise.
    pub(super) fn addresses(&self, port_default: u16, tls: bool) -> Result<Vec<Address>, &'static str> {
        if self.hosts.len() > HOSTS_MAX {
            return Err("it has more than 64 hosts; a few suffice, the others are found");
        }
        self.hosts.iter().map(|host| address(host, port_default, tls)).collect()
    }

    /// The URL of one server with this login, these parameters and that database.
    pub(super) fn with_database(&self, database: &str) -> String {
        format!("redis://{}{}/{database}{}", self.login, self.hosts[0], self.tail)
    }
}

fn address(host: &str, port_default: u16, tls: bool) -> Result<Address, &'static str> {
    if host.is_empty() {
        return Err("it has an empty host; name at least one HOST:PORT, and separate several by commas");
    }
    let malformed = "a host or port is invalid; write HOST:PORT, an IPv6 address in brackets";
    let parsed = parse_redis_url(&format!("redis://{host}")).ok_or(malformed)?;
    let port = parsed.port().unwrap_or(port_default);
    match parsed.into_connection_info().map_err(|_| malformed)?.addr().clone() {
        ConnectionAddr::Tcp(host, _) => Ok(Address::Tcp { host, port, tls }),
        _ => Err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_split_after_the_login() {
        let authority = Authority::split("bob:s,e%40c@a:1,[::1]:2,c/main/3?x=a@b,c#d");
        assert_eq!((authority.login, authority.path), ("bob:s,e%40c@", "main/3"));
        let addresses = authority.addresses(9, true).unwrap();
        let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a:1", "[::1]:2", "c:9"]);
        assert_eq!(authority.with_database("3"), "redis://bob:s,e%40c@a:1/3?x=a@b,c#d");
    }

    #[test]
    fn bad_hosts_are_refused() {
        for hosts in ["", ",", "a,", ",a", "a,,b", "a:port", "a:99999", "0.0.0.0", "a b", "::1"] {
            assert!(Authority::split(hosts).addresses(1, false).is_err(), "{hosts}");
        }
        let many = vec!["a"; HOSTS_MAX + 1].join(",");
        assert!(Authority::split(&many).addresses(1, false).is_err());
    }
}
