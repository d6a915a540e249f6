//! The slot map: which node owns which hash slot.

use std::collections::HashMap;
use std::sync::Arc;

use redis::Value;

use super::hash_slot::SLOTS;
use super::node::Node;
use super::redirect::{NodeAddress, Redirect};

/// The most nodes of a cluster, which is what Redis itself recommends. Every primary costs us connections.
const NODES_MAX: usize = 1_000;
/// A slot that no node owns.
const NO_OWNER: u16 = u16::MAX;

/// The reply to `CLUSTER SLOTS`.
#[derive(Debug, Default)]
pub(super) struct SlotsReply {
    ranges: Vec<SlotRange>,
    replicas: Vec<NodeAddress>,
}

#[derive(Debug)]
struct SlotRange {
    first: u16,
    last: u16,
    primary: NodeAddress,
}

impl SlotsReply {
    /// Parses the reply of the node at `asked`: per range its first and last slot, its primary and the replicas.
    pub(super) fn parse(reply: Value, asked: &NodeAddress) -> Result<Self, &'static str> {
        let Value::Array(entries) = reply else { return Err("its CLUSTER SLOTS is no list") };
        let mut parsed = Self::default();
        for entry in entries {
            parsed.push(entry, asked).ok_or("its CLUSTER SLOTS has an entry of an unknown form")?;
        }
        if parsed.ranges.is_empty() {
            return Err("it knows no owner of any slot: create the cluster first, or let the node join it");
        }
        let mut primaries: Vec<_> = parsed.ranges.iter().map(|range| range.primary.to_string()).collect();
        primaries.sort_unstable();
        primaries.dedup();
        parsed.replicas.truncate(NODES_MAX);
        if primaries.len() > NODES_MAX { Err("it names more than 1000 primaries") } else { Ok(parsed) }
    }

    fn push(&mut self, entry: Value, asked: &NodeAddress) -> Option<()> {
        let Value::Array(entry) = entry else { return None };
        let mut entry = entry.into_iter();
        let mut slot = || match entry.next()? {
            Value::Int(slot) => u16::try_from(slot).ok().filter(|&slot| slot < SLOTS),
            _ => None,
        };
        let (first, last) = (slot()?, slot()?);
        let primary = address(entry.next()?, asked)?;
        self.ranges.push(SlotRange { first, last, primary });
        // A replica whose address is unknown is of no use, and does not matter.
        self.replicas.extend(entry.filter_map(|replica| address(replica, asked)));
        (first <= last).then_some(())
    }
}

/// The address in `[host, port, id, ...]`. A node that does not know its host sends none, which means the host that was
/// asked.
fn address(node: Value, asked: &NodeAddress) -> Option<NodeAddress> {
    let Value::Array(parts) = node else { return None };
    let mut parts = parts.into_iter();
    let host = match parts.next()? {
        Value::BulkString(host) => String::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => String::new(),
        _ => return None,
    };
    let host = if host.is_empty() || host == "?" { asked.host.clone() } else { host };
    match parts.next()? {
        Value::Int(port) => Some(NodeAddress { host, port: u16::try_from(port).ok()? }),
        _ => None,
    }
}

/// The nodes, and the owner of every slot.
#[derive(Debug)]
pub(super) struct SlotMap {
    /// Primaries, and the nodes that calls were redirected to. A node is used by its index.
    nodes: Vec<Arc<Node>>,
    owners: Box<[u16]>,
    /// They are asked for the map where a primary does not answer.
    replicas: Vec<NodeAddress>,
}

impl Default for SlotMap {
    /// No owner is known.
    fn default() -> Self {
        Self { nodes: Vec::new(), owners: vec![NO_OWNER; SLOTS.into()].into(), replicas: Vec::new() }
    }
}

impl SlotMap {
    pub(super) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        // A slot without an owner has an index that no node has.
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// The owners of slots, each once.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        let mut owns = vec![false; self.nodes.len()];
        for &owner in &self.owners {
            if let Some(owns) = owns.get_mut(usize::from(owner)) {
                *owns = true;
            }
        }
        self.nodes.iter().zip(owns).filter(|(_, owns)| *owns).map(|(node, _)| Arc::clone(node)).collect()
    }

    /// The addresses of all known nodes, primaries first.
    pub(super) fn addresses(&self) -> Vec<NodeAddress> {
        let nodes = self.nodes.iter().map(|node| node.address().clone());
        nodes.chain(self.replicas.iter().cloned()).collect()
    }

    /// The node at an address, which is added if it is not known yet; `None` if there are too many.
    pub(super) fn node(&mut self, address: &NodeAddress) -> Option<Arc<Node>> {
        let index = self.index_of(address)?;
        Some(Arc::clone(&self.nodes[usize::from(index)]))
    }

    fn index_of(&mut self, address: &NodeAddress) -> Option<u16> {
        let known = self.nodes.iter().position(|node| node.address() == address);
        let index = match known {
            Some(index) => index,
            None if self.nodes.len() >= 2 * NODES_MAX => return None,
            None => {
                self.nodes.push(Arc::new(Node::new(address.clone())));
                self.nodes.len() - 1
            }
        };
        u16::try_from(index).ok()
    }

    /// A slot has moved.
    pub(super) fn moved(&mut self, redirect: &Redirect) {
        if let (Some(index), Some(owner)) =
            (self.index_of(&redirect.address), self.owners.get_mut(usize::from(redirect.slot)))
        {
            *owner = index;
        }
    }

    /// Takes over a new map. Nodes keep their connections. Nodes that own nothing any more are dropped, but for those
    /// that calls were redirected to since the last map: a slot is moving there.
    pub(super) fn replace(&mut self, reply: SlotsReply) {
        let old = std::mem::take(self);
        self.replicas = reply.replicas;
        let mut known: HashMap<NodeAddress, Arc<Node>> =
            old.nodes.into_iter().map(|node| (node.address().clone(), node)).collect();
        let mut indices = HashMap::new();
        for SlotRange { first, last, primary } in reply.ranges {
            let index = *indices.entry(primary).or_insert_with_key(|address| {
                let node = known.remove(address).unwrap_or_else(|| Arc::new(Node::new(address.clone())));
                self.nodes.push(node);
                // There are at most a thousand.
                u16::try_from(self.nodes.len() - 1).unwrap_or(NO_OWNER)
            });
            self.owners[usize::from(first)..=usize::from(last)].fill(index);
        }
        self.nodes.extend(known.into_values().filter(|node| node.take_redirected()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(Vec::new())])
    }

    fn range(first: i64, last: i64, nodes: impl IntoIterator<Item = Value>) -> Value {
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    fn asked() -> NodeAddress {
        NodeAddress { host: "seed".into(), port: 7000 }
    }

    fn parsed(ranges: Vec<Value>) -> Result<SlotsReply, &'static str> {
        SlotsReply::parse(Value::Array(ranges), &asked())
    }

    fn owner(map: &SlotMap, slot: u16) -> Option<String> {
        map.owner(slot).map(|node| node.address().to_string())
    }

    fn at(host: &str, port: u16) -> NodeAddress {
        NodeAddress { host: host.into(), port }
    }

    #[test]
    fn owners_and_replicas_are_read_from_the_reply() {
        let mut map = SlotMap::default();
        assert_eq!((owner(&map, 0), map.primaries().len()), (None, 0));
        map.replace(
            parsed(vec![
                range(0, 5_460, [node(text("10.0.0.1"), 1), node(text("10.0.0.4"), 4)]),
                range(5_462, 16_383, [node(Value::Nil, 2), node(text(""), 3)]),
            ])
            .unwrap(),
        );
        assert_eq!(owner(&map, 5_460).as_deref(), Some("10.0.0.1:1"));
        assert_eq!(owner(&map, 5_461), None, "an uncovered slot has no owner");
        assert_eq!(
            owner(&map, 16_383).as_deref(),
            Some("seed:2"),
            "a node without a host is at the asked one"
        );
        let addresses: Vec<_> = map.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1:1", "seed:2", "10.0.0.4:4", "seed:3"]);
    }

    #[test]
    fn a_new_map_keeps_nodes_that_still_own_slots_or_are_about_to() {
        let mut map = SlotMap::default();
        let both = || {
            parsed(vec![
                range(0, 1, [node(text("a"), 1)]),
                range(2, 2, [node(text("b"), 2)]),
                range(3, 3, [node(text("a"), 1)]),
            ])
        };
        map.replace(both().unwrap());
        let first = Arc::clone(map.owner(0).unwrap());
        let asked = map.node(&at("c", 3)).unwrap();
        asked.set_redirected();
        map.node(&at("d", 4)).unwrap();
        map.moved(&Redirect { slot: 1, address: at("b", 2) });
        assert_eq!(owner(&map, 1).as_deref(), Some("b:2"));
        assert_eq!(map.primaries().len(), 2);

        map.replace(both().unwrap());
        assert!(Arc::ptr_eq(map.owner(3).unwrap(), &first), "its connections stay");
        assert!(Arc::ptr_eq(&map.node(&at("c", 3)).unwrap(), &asked));
        assert_eq!(map.addresses().len(), 3, "the node at d:4 is dropped");
        map.replace(both().unwrap());
        assert_eq!(map.addresses().len(), 2, "nothing was redirected to c:3 since");
    }

    #[test]
    fn malformed_replies_are_refused() {
        for wrong in [
            vec![],
            vec![Value::Nil],
            vec![range(0, 16_384, [node(text("a"), 1)])],
            vec![range(5, 4, [node(text("a"), 1)])],
            vec![range(0, 1, [])],
            vec![range(0, 1, [node(text("a"), 70_000)])],
            vec![range(0, 1, [node(Value::Int(1), 1)])],
        ] {
            assert!(parsed(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert!(SlotsReply::parse(Value::Okay, &asked()).is_err());
        let many = (0..1_001).map(|slot| range(slot, slot, [node(text("a"), slot + 1)])).collect();
        assert_eq!(parsed(many).unwrap_err(), "it names more than 1000 primaries");
    }
}
