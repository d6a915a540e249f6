//! Servers whose store is gone, beside one in memory.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::options::Options;
use crate::request_template::{KEY, RequestTemplate};
use crate::results::{Sample, Scenario};
use crate::server::RedisServer;
use crate::slidegate_server::SlidegateServer;
use crate::wrk;

/// The servers: a name, and the outage policy of one whose Redis is killed.
pub(crate) const SUBJECTS: [(&str, Option<&str>); 3] =
    [("memory", None), ("allow", Some("allow")), ("local", Some("{ local: 0.25 }"))];

/// Units per hour and key: a quarter of them admits every request.
const LIMIT: u64 = 100_000;
const KEYS: u64 = 100_000;
const CONNECTIONS: u16 = 50;

/// Measures all servers in turn.
pub(crate) fn measure(options: &Options) -> Result<Vec<Sample>> {
    let folder = std::env::temp_dir().join(format!("slidegate-bench-outage-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut redis = RedisServer::start();
    let url = redis.url();
    let mut servers = Vec::new();
    for (name, policy) in SUBJECTS {
        let (policy, store) = policy.map_or(("deny", "memory"), |policy| (policy, url.as_str()));
        let rules =
            format!("rules:\n  api: {{ limit: {LIMIT}/1h, algorithm: gcra, on_store_error: {policy} }}\n");
        servers.push((name, SlidegateServer::start(name, &rules, store, &folder)?));
    }
    redis.kill();
    let mut samples = Vec::new();
    // The first slice finds out that the store is gone, and makes the states.
    for (name, server) in &servers {
        slice(name, server, 1)?;
    }
    for repetition in 0..options.reps {
        eprintln!("servers without their store, repetition {} of {}", repetition + 1, options.reps);
        // Each repetition begins with another server, so that none always follows the same one.
        for (name, server) in servers.iter().cycle().skip(repetition as usize % 3).take(servers.len()) {
            samples.push(slice(name, server, options.slice_seconds())?);
        }
    }
    // A leftover folder is harmless: it is among the temporary files.
    let _ = fs::remove_dir_all(&folder);
    Ok(samples)
}

fn slice(name: &str, server: &SlidegateServer, seconds: u64) -> Result<Sample> {
    let body = format!(r#"{{"rule":"api","key":"{KEY}","cost":1}}"#);
    let template = RequestTemplate::post(server.port, "/v1/check", &body);
    let driven = wrk::slice_of(server.address(), &template, CONNECTIONS, seconds, 0, KEYS)?;
    ensure!(driven.failed == 0, "{name}: {} of {} requests failed", driven.failed, driven.requests);
    let wrk::WrkSlice { requests: decisions, elapsed_us, .. } = driven;
    Ok(Sample { scenario: Scenario::Http, subject: name.into(), decisions, elapsed_us, round_trips: 0 })
}
