//! A node of the cluster, and how its connections are opened.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;

use super::redirect::NodeAddress;
use crate::endpoint::Address;
use crate::link::{ConnectError, Link, Target};
use crate::options::RedisOptions;

/// A primary, or the target of a redirection. Its connections are opened when it is first called.
#[derive(Debug)]
pub(crate) struct Node {
    address: NodeAddress,
    link: OnceLock<Link>,
    redirected: AtomicBool,
}

impl Node {
    pub(super) fn new(address: NodeAddress) -> Self {
        Self { address, link: OnceLock::new(), redirected: AtomicBool::new(false) }
    }

    pub(super) fn address(&self) -> &NodeAddress {
        &self.address
    }

    pub(super) fn link(&self, opener: &LinkOpener) -> &Link {
        self.link.get_or_init(|| opener.open(&self.address, opener.options.connections))
    }

    /// A call was redirected to this node.
    pub(super) fn set_redirected(&self) {
        self.redirected.store(true, Ordering::Relaxed);
    }

    /// Whether one was, since this was last asked.
    pub(super) fn take_redirected(&self) -> bool {
        self.redirected.swap(false, Ordering::Relaxed)
    }
}

/// Opens connections to nodes. All nodes have the same login and the same TLS settings.
#[derive(Debug)]
pub(super) struct LinkOpener {
    target: Target,
    options: RedisOptions,
    /// The connections of a node must outlive the runtime of the call that happens to open them.
    runtime: OnceLock<Handle>,
}

impl LinkOpener {
    /// Fails only for what needs no server. Connections belong to the present runtime; if there is none, to that of the
    /// first call.
    pub(super) fn new(options: &RedisOptions, seed: &Address) -> Result<Self, ConnectError> {
        let target = Target::new(options, seed.clone())?;
        let runtime = Handle::try_current().map_or_else(|_| OnceLock::new(), OnceLock::from);
        Ok(Self { target, options: options.clone(), runtime })
    }

    pub(super) fn options(&self) -> &RedisOptions {
        &self.options
    }

    pub(super) fn runtime(&self) -> &Handle {
        self.runtime.get_or_init(Handle::current)
    }

    /// Opens connections in the background.
    pub(super) fn open(&self, address: &NodeAddress, connections: usize) -> Link {
        let _entered = self.runtime().enter();
        Link::lazy_to(self.target_at(address), &self.with_connections(connections))
    }

    /// Opens one connection.
    pub(super) async fn connect(&self, address: &NodeAddress) -> Result<Link, ConnectError> {
        Link::connect_to(self.target_at(address), &self.with_connections(1)).await
    }

    fn target_at(&self, address: &NodeAddress) -> Target {
        self.target.at(&address.host, address.port)
    }

    fn with_connections(&self, connections: usize) -> RedisOptions {
        RedisOptions { connections, ..self.options.clone() }
    }
}
