//! The connections of a store: to one Redis, or to the nodes of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant as StdInstant;

use redis::Value;
use slidegate::store::{Call, StoreError};

use crate::cluster::{Cluster, Node, hash_slot};
use crate::endpoint::Servers;
use crate::link::{ConnectError, Link, ScriptCall};
use crate::options::RedisOptions;

/// Connections to what a URL names.
#[derive(Debug)]
pub(crate) enum Connections {
    /// To one Redis, or to the primary that sentinels name.
    One(Link),
    Cluster(Cluster),
}

impl Connections {
    /// Opens them.
    pub(crate) async fn connect(options: &RedisOptions) -> Result<Self, ConnectError> {
        Ok(match &options.endpoint.servers {
            Servers::Cluster(seeds) => Self::Cluster(Cluster::connect(options, seeds).await?),
            Servers::One(_) | Servers::Sentinels(_) => Self::One(Link::connect(options).await?),
        })
    }

    /// Opens them in the background. Fails only for what needs no server.
    pub(crate) fn lazy(options: &RedisOptions) -> Result<Self, ConnectError> {
        Ok(match &options.endpoint.servers {
            Servers::Cluster(seeds) => Self::Cluster(Cluster::lazy(options, seeds)?),
            Servers::One(_) | Servers::Sentinels(_) => Self::One(Link::lazy(options)?),
        })
    }

    /// Calls a script. Without `until` the deadline of the options counts, from now.
    pub(crate) async fn call(
        &self,
        until: Option<StdInstant>,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        match self {
            Self::One(link) => link.call(until, call).await,
            Self::Cluster(cluster) => cluster.call(until, call).await,
        }
    }

    /// Calls scripts, with one deadline and in as few round trips as possible. Returns one result per call, in order.
    pub(crate) async fn call_all(
        &self,
        until: Option<StdInstant>,
        calls: Vec<ScriptCall>,
    ) -> Vec<Result<Value, StoreError>> {
        match self {
            Self::One(link) => link.call_all(until, calls).await,
            Self::Cluster(cluster) => cluster.call_all(until, calls).await,
        }
    }

    /// The numbers of the keys in every hash slot, in the order of the slots; `None` if one script call can have them all.
    pub(crate) fn slots(&self, names: &[Vec<u8>]) -> Option<Vec<Vec<usize>>> {
        match self {
            Self::One(_) => None,
            Self::Cluster(_) => by_slot(names),
        }
    }

    /// The call with its deadline as an instant, if it may take several calls of a cluster.
    pub(crate) fn with_deadline(&self, call: Call) -> Call {
        match self {
            Self::One(_) => call,
            Self::Cluster(cluster) => call.with_deadline(Some(cluster.deadline(call.deadline()).into_std())),
        }
    }

    /// The call with its deadline as an instant, for several calls in a row.
    pub(crate) fn with_one_deadline(&self, call: Call) -> Call {
        match self {
            Self::One(link) => call.with_deadline(Some(link.deadline_at(call.deadline()))),
            Self::Cluster(_) => self.with_deadline(call),
        }
    }

    /// The servers whose keys are all keys: the only one, or every primary of the cluster.
    pub(crate) async fn primaries(&self, until: Option<StdInstant>) -> Result<Vec<Primary<'_>>, StoreError> {
        Ok(match self {
            Self::One(link) => vec![Primary::One(link)],
            Self::Cluster(cluster) => {
                let nodes = cluster.primaries(until).await?.into_iter();
                nodes.map(|node| Primary::Node(cluster, node)).collect()
            }
        })
    }
}

/// A server that has keys of its own.
#[derive(Debug)]
pub(crate) enum Primary<'c> {
    One(&'c Link),
    Node(&'c Cluster, Arc<Node>),
}

impl Primary<'_> {
    pub(crate) fn link(&self) -> &Link {
        match self {
            Self::One(link) => link,
            Self::Node(cluster, node) => cluster.link_to(node),
        }
    }
}

fn by_slot(names: &[Vec<u8>]) -> Option<Vec<Vec<usize>>> {
    if names.len() < 2 {
        return None;
    }
    let mut slots = BTreeMap::<u16, Vec<usize>>::new();
    for (number, name) in names.iter().enumerate() {
        slots.entry(hash_slot(name)).or_default().push(number);
    }
    (slots.len() > 1).then(|| slots.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(names: &[&str]) -> Option<Vec<Vec<usize>>> {
        by_slot(&names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn keys_are_grouped_by_slot_in_slot_order() {
        assert_eq!(slots(&["{alice}:api"]), None);
        assert_eq!(slots(&["{alice}:api", "{alice}:search"]), None);
        // Slots 12,182 and 5,061.
        assert_eq!(slots(&["{foo}:a", "{bar}:a", "{foo}:b"]), Some(vec![vec![1], vec![0, 2]]));
    }
}
