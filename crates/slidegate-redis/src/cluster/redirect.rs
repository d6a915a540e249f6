//! Addresses of nodes, and the replies that redirect a call to another node.

use std::fmt;

use super::hash_slot::SLOTS;

/// The address of a node, as the nodes of the cluster announce it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NodeAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A redirection: `MOVED` names the new owner of a slot, `ASK` the node that a slot is just moving to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) slot: u16,
    pub(super) address: NodeAddress,
}

impl Redirect {
    /// Parses `MOVED SLOT HOST:PORT`, or `ASK`. A node that does not know its host leaves it out, which means the host that
    /// was asked.
    pub(super) fn parse(reply: &str, asked: &NodeAddress) -> Option<Self> {
        let mut words = reply.split_ascii_whitespace().skip(1);
        let slot: u16 = words.next()?.parse().ok()?;
        let (host, port) = words.next()?.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() || host == "?" { &asked.host } else { host };
        let address = NodeAddress { host: host.to_owned(), port: port.parse().ok()? };
        (slot < SLOTS).then_some(Self { slot, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(reply: &str) -> Option<(u16, String)> {
        let asked = NodeAddress { host: "10.0.0.7".into(), port: 7000 };
        Redirect::parse(reply, &asked).map(|to| (to.slot, to.address.to_string()))
    }

    #[test]
    fn redirections_are_parsed() {
        for (reply, slot, address) in [
            ("MOVED 3999 127.0.0.1:6381", 3_999, "127.0.0.1:6381"),
            ("ASK 16383 cache-2.internal:7002", 16_383, "cache-2.internal:7002"),
            ("MOVED 0 ::1:7001", 0, "[::1]:7001"),
            ("MOVED 0 [::1]:7001", 0, "[::1]:7001"),
            ("MOVED 7 :7001", 7, "10.0.0.7:7001"),
            ("MOVED 7 ?:7001", 7, "10.0.0.7:7001"),
        ] {
            assert_eq!(parsed(reply), Some((slot, address.to_owned())), "{reply}");
        }
    }

    #[test]
    fn malformed_redirections_are_refused() {
        for reply in
            ["MOVED", "MOVED 7", "MOVED x 127.0.0.1:1", "MOVED 16384 h:1", "ASK 7 h", "ASK 7 h:70000"]
        {
            assert_eq!(parsed(reply), None, "{reply}");
        }
    }
}
