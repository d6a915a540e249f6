//! A primary, a replica and three sentinels of one test, on free ports. Dropping it ends them.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::{Client, Connection, Value, from_redis_value};

use super::server::{RedisServer, command, folder, free_port, program};
use super::wait::wait_until;

/// The name under which the sentinels watch the primary.
pub const MASTER: &str = "main";
/// How long a server may be silent before it counts as down.
const DOWN_AFTER_MS: u32 = 300;

/// A running group.
pub struct SentinelGroup {
    /// The primary at first, then its replica.
    pub servers: [RedisServer; 2],
    sentinels: Vec<Sentinel>,
}

struct Sentinel {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl SentinelGroup {
    /// Starts a group whose sentinels want this password of their clients, if any.
    pub fn start(sentinel_password: Option<&str>) -> Self {
        // A replica is served at once: the primary would wait five seconds for others.
        let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
        let of_primary = primary.port().to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &of_primary]);
        wait_until("the replica is in step", || info(&primary, "replication").contains("state=online"));
        // Known to each other from the start: they would look for each other every two seconds.
        let ids: Vec<_> = (1..=3).map(|number| (format!("{number:040}"), free_port())).collect();
        let sentinels = ids.iter().map(|(id, port)| {
            let mut lines = vec![
                format!("port {port}\nbind 127.0.0.1\nsentinel myid {id}"),
                format!("sentinel monitor {MASTER} 127.0.0.1 {of_primary} 2"),
                format!("sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}"),
                format!("sentinel failover-timeout {MASTER} 5000"),
                format!("sentinel known-replica {MASTER} 127.0.0.1 {}", replica.port()),
            ];
            if let Some(password) = sentinel_password {
                lines.push(format!("requirepass {password}\nsentinel sentinel-pass {password}"));
            }
            for (other, port) in ids.iter().filter(|(other, _)| other != id) {
                lines.push(format!("sentinel known-sentinel {MASTER} 127.0.0.1 {port} {other}"));
            }
            Sentinel::start(*port, &lines)
        });
        let sentinels = sentinels.collect();
        let group = Self { servers: [primary, replica], sentinels };
        wait_until("the sentinels know the replica", || {
            group.sentinels.iter().all(|sentinel| {
                let Some(mut connection) = sentinel.connect(sentinel_password) else { return false };
                let known = command(&mut connection, &["SENTINEL", "REPLICAS", MASTER]);
                matches!(known, Value::Array(replicas) if !replicas.is_empty())
            })
        });
        group
    }

    /// The URL of the group: all sentinels, and what follows the name of the primary.
    pub fn url(&self, parameters: &str) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/{MASTER}{parameters}", hosts.join(","))
    }

    /// The port of the primary, as the first sentinel that answers knows it.
    pub fn primary_port(&self) -> u16 {
        let mut connection = self.sentinels.iter().find_map(|sentinel| sentinel.connect(None)).unwrap();
        let asked = command(&mut connection, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]);
        let (_, port): (String, u16) = from_redis_value(asked).unwrap();
        port
    }

    /// Waits until the sentinels name the replica as the primary.
    pub fn wait_for_failover(&self) {
        wait_until("the replica is the primary", || self.primary_port() == self.servers[1].port());
    }

    /// Stops the process of a sentinel: it accepts connections, and does not answer.
    pub fn hang_sentinel(&self, index: usize) {
        signal(self.sentinels[index].child.id(), "STOP");
    }

    /// Tells a sentinel to make the replica the primary, although the primary works.
    pub fn fail_over(&self) {
        let mut connection = self.sentinels[1].connect(None).unwrap();
        wait_until("the sentinel can fail over", || {
            redis::cmd("SENTINEL").arg(&["FAILOVER", MASTER]).exec(&mut connection).is_ok()
        });
    }
}

impl Sentinel {
    fn start(port: u16, lines: &[String]) -> Self {
        let folder = folder();
        let config = folder.join("sentinel.conf");
        fs::write(&config, lines.join("\n")).unwrap();
        let mut started = Command::new(program());
        started.arg(&config).arg("--sentinel").current_dir(&folder);
        let child = started.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port, folder }
    }

    fn connect(&self, password: Option<&str>) -> Option<Connection> {
        let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
        let client = Client::open(format!("redis://{login}127.0.0.1:{}", self.port)).unwrap();
        client.get_connection_with_timeout(Duration::from_millis(200)).ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // It may have ended already, and a leftover folder is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A section of the server's `INFO`.
pub fn info(server: &RedisServer, section: &str) -> String {
    from_redis_value(server.command(&["INFO", section])).unwrap()
}

/// Sends a signal to a process of this test.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    assert!(sent.unwrap().success());
}
