//! The cost of one decision on a cluster of three nodes, beside one Redis.
//!
//! Both run during the whole measurement, on this machine. Subjects take turns in slices of the same length, with the
//! same callers, so that a noisy second affects all of them. The figure is the processor time of this process per
//! decision: the client's. The servers share the cores with it, so the throughput says how the machine divides them,
//! not what three nodes can do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

#[path = "../../../crates/slidegate-redis/tests/store/common/cluster.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with tests, which also move slots and kill nodes")]
mod cluster;
mod drive;
mod report;
#[path = "../../../crates/slidegate-redis/tests/store/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with tests, which also restart it")]
mod server;
#[path = "../../../crates/slidegate-redis/tests/store/common/wait.rs"]
#[expect(unreachable_pub, reason = "shared with tests")]
mod wait;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use slidegate_bench::machine::Machine;

use cluster::RedisCluster;
use drive::ConnectedSubject;
use report::{BenchSetting, Measurement, PUBLISHED};
use server::RedisServer;

/// The samples that the page shows.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/cluster.json");

/// Keys, a third of them on each node.
const KEYS: u64 = 1_024;

/// Measures decisions on a Redis Cluster of three nodes, beside one Redis. A minute.
#[derive(Debug, Parser)]
#[command(name = "cluster")]
struct Options {
    /// Slices of a fifth of the length, as a trial; the figures are not comparable
    #[arg(long)]
    quick: bool,
    /// Slices of every subject; the table shows the median
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=100))]
    reps: u32,
    /// Measure nothing: write docs/redis.md from bench/results/cluster.json, or put the samples of FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    table: Option<PathBuf>,
}

/// Where decisions are made, by how many concurrent callers, each waiting for its answer before the next call.
///
/// A cluster that is asked for the keys of one node works as one Redis does: the difference is the client's path to it.
/// With the keys of all nodes the machine has three servers to run, and calls spread over more round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Subject {
    name: &'static str,
    place: Place,
    /// To one Redis, or to each node.
    connections: usize,
    callers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    OneRedis,
    OneNode,
    AllNodes,
}

const SUBJECTS: [Subject; 6] = [
    Subject { name: "1 caller: one Redis", place: Place::OneRedis, connections: 1, callers: 1 },
    Subject { name: "1 caller: keys of one node", place: Place::OneNode, connections: 1, callers: 1 },
    Subject { name: "1 caller: keys of three nodes", place: Place::AllNodes, connections: 1, callers: 1 },
    Subject { name: "32 callers: one Redis", place: Place::OneRedis, connections: 2, callers: 32 },
    Subject { name: "32 callers: keys of one node", place: Place::OneNode, connections: 2, callers: 32 },
    Subject { name: "32 callers: keys of three nodes", place: Place::AllNodes, connections: 2, callers: 32 },
];

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(samples) = &options.table {
        PUBLISHED.publish(samples)?;
        return Ok(());
    }
    let machine = Machine::here();
    let (alone, cluster) = (RedisServer::start(), RedisCluster::start(false, &[]));
    // One thread for all callers, as in the benchmark of one Redis.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let samples = runtime.block_on(measure(&options, &alone, &cluster))?;
    let setting = BenchSetting { quick: options.quick, machine };
    let measured = Measurement { setting, samples };
    measured.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/cluster.json"))?;
    print!("{}", report::table(&measured));
    eprintln!("all samples: target/bench/cluster.json");
    Ok(())
}

async fn measure(
    options: &Options,
    alone: &RedisServer,
    cluster: &RedisCluster,
) -> Result<Vec<report::Sample>> {
    let length = Duration::from_secs(1) / if options.quick { 5 } else { 1 };
    let names = (0..KEYS).map(|key| format!("user:{key}"));
    let (of_one_node, others): (Vec<_>, Vec<_>) = names.partition(|name| cluster.primary_of(name) == 0);
    let of_all = [&of_one_node[..], &others].concat();
    let mut connected = Vec::new();
    for subject in SUBJECTS {
        let (url, keys) = match subject.place {
            Place::OneRedis => (alone.url(), &of_one_node),
            Place::OneNode => (cluster.url(), &of_one_node),
            Place::AllNodes => (cluster.url(), &of_all),
        };
        connected.push(ConnectedSubject::connect(subject, &url, keys.clone()).await?);
    }
    let mut samples = Vec::new();
    // The first round opens connections and loads scripts.
    for repetition in 0..=options.reps {
        // Each repetition begins with another subject, so that none always follows the same one.
        let shift = repetition as usize % connected.len();
        for subject in connected.iter().cycle().skip(shift).take(connected.len()) {
            let sample = subject.slice(length).await?;
            samples.extend((repetition > 0).then_some(sample));
        }
    }
    Ok(samples)
}
