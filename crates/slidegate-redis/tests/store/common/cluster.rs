//! A Redis Cluster for tests: three primaries, and replicas on demand. Dropping it ends all its nodes.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::{Connection, Value, from_redis_value};

use super::server::{RedisServer, command};
use super::wait::{pause, wait_until};

const PRIMARIES: usize = 3;
const SLOTS: usize = 16_384;

/// A running cluster.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// The cluster that the tests of this process share: forming one takes seconds. It ends with the last test that
    /// holds it. Tests use key prefixes of their own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Self::start(false, &[]));
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    /// Starts a cluster, with a replica for every primary or without, and with more arguments of its nodes.
    pub fn start(replicas: bool, args: &[&str]) -> Self {
        let count = if replicas { 2 * PRIMARIES } else { PRIMARIES };
        let enabled = ["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"];
        let nodes = (0..count).map(|_| RedisServer::start_with(&[&enabled, args].concat()));
        let cluster = Self { nodes: nodes.collect() };
        cluster.form();
        cluster
    }

    fn form(&self) {
        let mut connections: Vec<_> = self.nodes.iter().map(RedisServer::connection).collect();
        for (index, connection) in connections.iter_mut().enumerate() {
            // Nodes with equal epochs would have to settle them first.
            command(connection, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < PRIMARIES {
                let slots =
                    (SLOTS * index / PRIMARIES..SLOTS * (index + 1) / PRIMARIES).map(|slot| slot.to_string());
                let words: Vec<String> =
                    ["CLUSTER", "ADDSLOTS"].map(String::from).into_iter().chain(slots).collect();
                command(connection, &words.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        for node in &self.nodes[1..] {
            command(&mut connections[0], &["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
        }
        let knows_all = format!("cluster_known_nodes:{}", self.nodes.len());
        wait_until("every node knows all others", || {
            connections.iter_mut().all(|node| info(node, &["CLUSTER", "INFO"]).contains(&knows_all))
        });
        let ids: Vec<_> = connections[..PRIMARIES].iter_mut().map(id).collect();
        for (replica, id) in connections[PRIMARIES..].iter_mut().zip(&ids) {
            // It may not have heard yet that the node is a primary.
            wait_until("a replica finds its primary", || {
                let mut replicate = redis::cmd("CLUSTER");
                replicate.arg("REPLICATE").arg(id).exec(replica).is_ok()
            });
        }
        wait_until("the cluster is formed", || {
            let mut nodes = connections.iter_mut().enumerate();
            nodes.all(|(index, node)| {
                info(node, &["CLUSTER", "INFO"]).contains("cluster_state:ok")
                    && (index < PRIMARIES
                        || info(node, &["INFO", "replication"]).contains("master_link_status:up"))
            })
        });
    }

    /// The URL with the primaries.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", hosts[..PRIMARIES].join(","))
    }

    /// The nodes, primaries first.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    pub fn node_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.nodes[index]
    }

    /// The slot of a key, as Redis computes it.
    pub fn slot(&self, key: &str) -> u16 {
        from_redis_value(self.nodes[0].command(&["CLUSTER", "KEYSLOT", key])).expect("the slot is a number")
    }

    /// The index of the primary that owned the slot of a key when the cluster was formed.
    pub fn primary_of(&self, key: &str) -> usize {
        let slot = usize::from(self.slot(key));
        (0..PRIMARIES).find(|index| slot < SLOTS * (index + 1) / PRIMARIES).expect("every slot has an owner")
    }

    /// Moves a slot with its keys from one node to another as `redis-cli --cluster reshard` does, with a pause after
    /// each step.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize, step: Duration) {
        let [mut source, mut target] = [from, to].map(|index| self.nodes[index].connection());
        let (source_id, target_id) = (id(&mut source), id(&mut target));
        let (slot, port) = (slot.to_string(), self.nodes[to].port().to_string());
        command(&mut target, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        command(&mut source, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        pause(step);
        loop {
            let keys = command(&mut source, &["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let keys: Vec<Vec<u8>> = from_redis_value(keys).expect("the reply is a list of keys");
            let Some(key) = keys.first() else { break };
            let mut migrate = redis::cmd("MIGRATE");
            migrate
                .arg("127.0.0.1")
                .arg(&port)
                .arg(key)
                .arg(0)
                .arg(5_000)
                .exec(&mut source)
                .expect("the key can be moved");
        }
        pause(step);
        // The new owner first: otherwise both would redirect to each other for a moment.
        for node in [&mut target, &mut source] {
            command(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
        pause(step);
    }

    /// All keys of all primaries that begin with a prefix, sorted.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let of = |node: &RedisServer| -> Vec<String> {
            from_redis_value(node.command(&["KEYS", &format!("{prefix}*")]))
                .expect("the names of keys are text")
        };
        let mut keys: Vec<String> = self.nodes[..PRIMARIES].iter().flat_map(of).collect();
        keys.sort_unstable();
        keys
    }
}

fn id(node: &mut Connection) -> String {
    from_redis_value(command(node, &["CLUSTER", "MYID"])).expect("the id is text")
}

fn info(node: &mut Connection, words: &[&str]) -> String {
    match command(node, words) {
        Value::BulkString(text) => String::from_utf8(text).expect("the reply is text"),
        Value::VerbatimString { text, .. } => text,
        other => panic!("{other:?}"),
    }
}
