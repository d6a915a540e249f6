//! What the deny cache saves, and how fast a server answers without its store.
//!
//! *Denials*: a limiter over a real Redis, with the deny cache and without it, gets the same requests: at 100 a second
//! per key, which counts the round trips, and from 50 callers as fast as they can ask. *Outages*: three servers, one in
//! memory and two whose Redis was killed, with the policies `allow` and `local`, driven by `wrk` in turn.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod denials;
mod options;
mod outages;
mod published;
mod report;
#[path = "../http/request_template.rs"]
#[allow(dead_code, reason = "shared with another benchmark, which uses the rest")]
mod request_template;
mod results;
#[path = "../../../crates/slidegate-redis/tests/store/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with tests, which also restart it")]
mod server;
mod slidegate_server;
#[path = "../http/wrk.rs"]
mod wrk;

use std::path::Path;

use clap::Parser;
use slidegate_bench::machine::Machine;

use options::Options;
use results::{BenchSetting, Measurement};

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(samples) = &options.table {
        published::PUBLISHED.publish(samples)?;
        return Ok(());
    }
    let mut samples = denials::measure(&options)?;
    samples.extend(outages::measure(&options)?);
    let setting = BenchSetting { quick: options.quick, machine: Machine::here(), wrk: wrk::version()? };
    let measured = Measurement { setting, samples };
    measured.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/outage.json"))?;
    print!("{}", report::tables(&measured));
    eprintln!("all samples: target/bench/outage.json");
    Ok(())
}
