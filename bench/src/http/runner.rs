//! One run: starts all servers, fills them, and measures them in turn, first at the maximum rate, then at fixed rates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use slidegate_bench::machine::Machine;

use crate::client::{self, Schedule};
use crate::options::Options;
use crate::request_template::RequestTemplate;
use crate::results::{BenchSetting, Measurement};
use crate::sample::{self, ClosedLoop, MemoryFigures, OpenLoop, Sample};
use crate::server::Server;
use crate::subject::Subject;
use crate::{report, wrk};

/// Percentages of the maximum rate at which latency is measured.
pub(crate) const PERCENTS: [u64; 3] = [25, 50, 75];

/// Measures the chosen subjects, writes the samples and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let setting = BenchSetting {
        quick: options.quick,
        machine: Machine::here(),
        wrk: wrk::version()?,
        connections: options.connections,
        keys: options.keys(),
        slice_seconds: options.slice_seconds(),
    };
    let folder = TempDir::new()?;
    let mut samples = Vec::new();
    let mut servers = Vec::new();
    for subject in options.subjects() {
        eprintln!("filling {subject}");
        let mut filled = FilledServer::new(subject, &folder.0)?;
        samples.push(filled.fill(options)?);
        servers.push(filled);
    }
    for repetition in 0..options.reps {
        eprintln!("repetition {} of {}", repetition + 1, options.reps);
        in_turn(&mut servers, repetition, |filled| {
            samples.push(filled.slice(options)?);
            Ok(())
        })?;
    }
    for percent in PERCENTS {
        for repetition in 0..options.reps.min(3) {
            eprintln!("at {percent} % of the maximum, repetition {}", repetition + 1);
            in_turn(&mut servers, repetition, |filled| {
                let maximum = sample::closed(&samples, filled.server.subject, ClosedLoop::per_second);
                let maximum = maximum.context("every subject has slices")?.median;
                samples.push(filled.on_schedule(options, percent, maximum * percent / 100)?);
                Ok(())
            })?;
        }
    }
    let measured = Measurement { setting, samples };
    measured.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/http.json"))?;
    print!("{}", report::tables(&measured));
    eprintln!("all samples: target/bench/http.json");
    Ok(())
}

/// Each repetition begins with another server, so that none always follows the same one.
fn in_turn(
    servers: &mut [FilledServer],
    repetition: u32,
    mut each: impl FnMut(&mut FilledServer) -> Result<()>,
) -> Result<()> {
    let count = servers.len();
    for offset in 0..count {
        each(&mut servers[(offset + repetition as usize) % count])?;
    }
    Ok(())
}

/// A server filled with keys, and the next key.
struct FilledServer {
    server: Server,
    template: RequestTemplate,
    next: u64,
}

impl FilledServer {
    fn new(subject: Subject, folder: &Path) -> Result<Self> {
        let server = Server::start(subject, folder)?;
        let template = subject.template(server.port);
        Ok(Self { server, template, next: 0 })
    }

    /// Sends one request for every key.
    fn fill(&mut self, options: &Options) -> Result<Sample> {
        let keys = options.keys();
        let empty_bytes = self.server.resident_bytes()?;
        self.ask(options, Schedule::AtOnce, keys)?;
        let bytes = self.server.resident_bytes()?;
        Ok(Sample {
            memory: Some(MemoryFigures { keys, empty_bytes, bytes }),
            ..Sample::of(self.server.subject)
        })
    }

    fn slice(&mut self, options: &Options) -> Result<Sample> {
        let (seconds, keys) = (options.slice_seconds(), options.keys());
        let before_us = self.server.cpu_us()?;
        let driven = wrk::slice_of(
            self.server.address(),
            &self.template,
            options.connections,
            seconds,
            self.next % keys,
            keys,
        )?;
        let server_us = self.server.cpu_us()? - before_us;
        let wrk::WrkSlice { requests, elapsed_us, failed, p50_us, p99_us } = driven;
        ensure!(failed == 0, "{}: {failed} of {requests} requests failed", self.server.subject);
        self.next += requests;
        let closed = ClosedLoop { requests, elapsed_us, server_us, p50_us, p99_us };
        Ok(Sample { closed: Some(closed), ..Sample::of(self.server.subject) })
    }

    fn on_schedule(&mut self, options: &Options, percent: u64, per_second: u64) -> Result<Sample> {
        let requests = per_second * options.slice_seconds();
        let answered = self.ask(options, Schedule::PerSecond(per_second), requests)?;
        let open = OpenLoop {
            percent,
            per_second,
            requests,
            elapsed_us: answered.elapsed_us,
            p50_us: answered.permille_us(500),
            p90_us: answered.permille_us(900),
            p99_us: answered.permille_us(990),
            p999_us: answered.permille_us(999),
        };
        Ok(Sample { open: Some(open), ..Sample::of(self.server.subject) })
    }

    fn ask(&mut self, options: &Options, schedule: Schedule, requests: u64) -> Result<client::ScheduleRun> {
        let range = (self.next % options.keys(), options.keys(), requests);
        let answered =
            client::ask(self.server.address(), &self.template, schedule, options.connections, range)
                .with_context(|| format!("{} was asked", self.server.subject))?;
        self.next += requests;
        Ok(answered)
    }
}

/// A temporary directory, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("slidegate-bench-http-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
