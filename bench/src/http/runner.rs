//! One run: starts all servers, fills them, asks them in turn, then at fixed rates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use slidegate_bench::machine::Machine;

use crate::client::{self, Schedule};
use crate::options::Options;
use crate::question::Question;
use crate::results::{Measured, Setting};
use crate::sample::{self, Closed, Memory, Open, Sample};
use crate::server::Server;
use crate::subject::Subject;
use crate::{report, wrk};

/// Shares of the most at which latency is measured.
pub(crate) const PERCENTS: [u64; 3] = [25, 50, 75];

/// Measures everything that was asked for, keeps the samples and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let setting = Setting {
        quick: options.quick,
        machine: Machine::here(),
        wrk: wrk::version()?,
        connections: options.connections,
        keys: options.keys(),
        slice_seconds: options.slice_seconds(),
    };
    let folder = Folder::new()?;
    let mut samples = Vec::new();
    let mut stages = Vec::new();
    for subject in options.subjects() {
        eprintln!("filling {subject}");
        let mut stage = Stage::new(subject, &folder.0)?;
        samples.push(stage.fill(options)?);
        stages.push(stage);
    }
    for repetition in 0..options.reps {
        eprintln!("repetition {} of {}", repetition + 1, options.reps);
        in_turn(&mut stages, repetition, |stage| {
            samples.push(stage.slice(options)?);
            Ok(())
        })?;
    }
    for percent in PERCENTS {
        for repetition in 0..options.reps.min(3) {
            eprintln!("at {percent} % of the most, repetition {}", repetition + 1);
            in_turn(&mut stages, repetition, |stage| {
                let most = sample::closed(&samples, stage.server.subject, Closed::per_second);
                let most = most.context("every subject has slices")?.median;
                samples.push(stage.on_schedule(options, percent, most * percent / 100)?);
                Ok(())
            })?;
        }
    }
    let measured = Measured { setting, samples };
    measured.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/http.json"))?;
    print!("{}", report::tables(&measured));
    eprintln!("all samples: target/bench/http.json");
    Ok(())
}

/// Each repetition begins with another stage, so that none always follows the same one.
fn in_turn(
    stages: &mut [Stage],
    repetition: u32,
    mut each: impl FnMut(&mut Stage) -> Result<()>,
) -> Result<()> {
    let count = stages.len();
    for place in 0..count {
        each(&mut stages[(place + repetition as usize) % count])?;
    }
    Ok(())
}

/// A server and how far its keys have asked.
struct Stage {
    server: Server,
    question: Question,
    next: u64,
}

impl Stage {
    fn new(subject: Subject, folder: &Path) -> Result<Self> {
        let server = Server::start(subject, folder)?;
        let question = subject.question(server.port);
        Ok(Self { server, question, next: 0 })
    }

    /// Lets every key ask once.
    fn fill(&mut self, options: &Options) -> Result<Sample> {
        let keys = options.keys();
        let empty_bytes = self.server.resident_bytes()?;
        self.ask(options, Schedule::AtOnce, keys)?;
        let bytes = self.server.resident_bytes()?;
        Ok(Sample { memory: Some(Memory { keys, empty_bytes, bytes }), ..Sample::of(self.server.subject) })
    }

    fn slice(&mut self, options: &Options) -> Result<Sample> {
        let (seconds, keys) = (options.slice_seconds(), options.keys());
        let before_us = self.server.cpu_us()?;
        let driven =
            wrk::slice(&self.server, &self.question, options.connections, seconds, self.next % keys, keys)?;
        let server_us = self.server.cpu_us()? - before_us;
        let wrk::Driven { requests, elapsed_us, failed, p50_us, p99_us } = driven;
        ensure!(failed == 0, "{}: {failed} of {requests} requests failed", self.server.subject);
        self.next += requests;
        let closed = Closed { requests, elapsed_us, server_us, p50_us, p99_us };
        Ok(Sample { closed: Some(closed), ..Sample::of(self.server.subject) })
    }

    fn on_schedule(&mut self, options: &Options, percent: u64, per_second: u64) -> Result<Sample> {
        let requests = per_second * options.slice_seconds();
        let answered = self.ask(options, Schedule::PerSecond(per_second), requests)?;
        let open = Open {
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

    fn ask(&mut self, options: &Options, schedule: Schedule, requests: u64) -> Result<client::Answered> {
        let range = (self.next % options.keys(), options.keys(), requests);
        let answered =
            client::ask(self.server.address(), &self.question, schedule, options.connections, range)
                .with_context(|| format!("{} was asked", self.server.subject))?;
        self.next += requests;
        Ok(answered)
    }
}

/// A folder of this run alone, gone after it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("slidegate-bench-http-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
