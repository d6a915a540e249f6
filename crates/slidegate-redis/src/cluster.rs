//! Redis Cluster: every call goes to the node that owns the hash slot of its keys.
//!
//! ```text
//! call -- hash slot -- slot map -- link to the owner -- Redis
//!                         ^              |
//!                         |     MOVED, unreachable, ...
//!                         +-- refresh ---+
//! ```
//!
//! A call that was certainly not executed is sent again, within its deadline:
//!
//! - `MOVED` names the new owner: the map is corrected, and refreshed in the background.
//! - `ASK`: the slot is moving, and the keys are at the other node already. That node executes this call, after `ASKING`.
//! - `TRYAGAIN`, `CLUSTERDOWN`: again after a pause.
//! - The owner cannot be reached or was demoted: the map is read again from any node. If another node owns the slot
//!   now, the call goes there; otherwise it fails at once, because a failover takes longer than a call may.
//!
//! A call that may have been executed is never sent again, whatever the map says.
//!
//! Rejected: the cluster client of the `redis` crate, which sends a call again after a lost connection without knowing
//! whether the first one was executed.

mod hash_slot;
mod join_all;
mod node;
mod redirect;
mod refresh;
mod reply;
mod route;
mod slot_map;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant as StdInstant;

use slidegate::store::StoreError;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::endpoint::Address;
use crate::link::{ConnectError, Link};
use crate::options::RedisOptions;
use node::LinkOpener;
use redirect::NodeAddress;
use refresh::Refreshes;
use slot_map::SlotMap;

pub(crate) use hash_slot::hash_slot;
pub(crate) use node::Node;

/// The connections to a cluster. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Cluster(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    opener: LinkOpener,
    /// The nodes of the URL.
    seeds: Vec<NodeAddress>,
    map: RwLock<SlotMap>,
    refreshes: Refreshes,
}

impl Shared {
    fn map(&self) -> RwLockReadGuard<'_, SlotMap> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn map_mut(&self) -> RwLockWriteGuard<'_, SlotMap> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// Reads the slot map from the first of these nodes that gives one.
    pub(crate) async fn connect(options: &RedisOptions, seeds: &[Address]) -> Result<Self, ConnectError> {
        let cluster = Self::unconnected(options, seeds)?;
        cluster.0.load_first().await?;
        Ok(cluster)
    }

    /// Reads the slot map in the background. Fails only for what needs no server.
    pub(crate) fn lazy(options: &RedisOptions, seeds: &[Address]) -> Result<Self, ConnectError> {
        let cluster = Self::unconnected(options, seeds)?;
        if Handle::try_current().is_ok() {
            cluster.0.refresh();
        }
        Ok(cluster)
    }

    fn unconnected(options: &RedisOptions, seeds: &[Address]) -> Result<Self, ConnectError> {
        let opener = LinkOpener::new(options, &seeds[0])?;
        let seeds = seeds.iter().filter_map(|seed| match seed {
            Address::Tcp { host, port, .. } => Some(NodeAddress { host: host.clone(), port: *port }),
            // The nodes of a cluster call each other over the network.
            Address::Unix(_) => None,
        });
        let (map, refreshes) = (RwLock::default(), Refreshes::default());
        Ok(Self(Arc::new(Shared { opener, seeds: seeds.collect(), map, refreshes })))
    }

    /// The runtime of the connections.
    pub(crate) fn runtime(&self) -> &Handle {
        self.0.opener.runtime()
    }

    /// The deadline `until`, else that of the options, from now.
    pub(crate) fn deadline(&self, until: Option<StdInstant>) -> Instant {
        until.map_or_else(|| Instant::now() + self.0.opener.options().deadline, Instant::from_std)
    }

    /// The nodes that own slots.
    pub(crate) async fn primaries(&self, until: Option<StdInstant>) -> Result<Vec<Arc<Node>>, StoreError> {
        self.0.fresh_map(self.deadline(until)).await?;
        Ok(self.0.map().primaries())
    }

    /// The connections to a node.
    pub(crate) fn link_to<'n>(&self, node: &'n Node) -> &'n Link {
        node.link(&self.0.opener)
    }
}
