//! One run on one server: fills every key, then measures the subjects in turn, slice by slice.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use redis::Connection;
use slidegate_bench::machine::Machine;

use crate::drive::{self, Requests, SliceCounts};
use crate::options::Options;
use crate::results::{BenchSetting, Measurement};
use crate::sample::{RateFigures, Sample};
use crate::scenario::{Measure, Scenario};
use crate::server::RedisServer;
use crate::subject::{ConnectedSubject, Subject};
use crate::{info, memory, report};

/// Measures the chosen subjects and scenarios, writes the samples and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::here();
    let server = RedisServer::start();
    let mut connection = server.connection();
    let setting = BenchSetting {
        quick: options.quick,
        machine,
        redis: info::version(&mut connection)?,
        callers: options.callers,
        connections: options.connections,
    };
    // One thread for all callers: redis-server has the other core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let samples = runtime.block_on(measure(options, &server.url(), &mut connection))?;
    let measured = Measurement { setting, samples };
    measured.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/redis.json"))?;
    print!("{}", report::tables(&measured));
    eprintln!("all samples: target/bench/redis.json");
    Ok(())
}

async fn measure(options: &Options, url: &str, connection: &mut Connection) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut filled_subjects = Vec::new();
    for scenario in options.scenarios() {
        for subject in options.subjects() {
            eprintln!("filling {scenario}, {subject}");
            let filled = FilledSubject::new(options, url, scenario, subject).await?;
            match scenario.measure() {
                Measure::Rate => filled_subjects.push(filled),
                Measure::Memory => samples.push(filled.memory(connection)?),
            }
        }
    }
    for repetition in 0..options.reps {
        eprintln!("repetition {} of {}", repetition + 1, options.reps);
        // Each repetition begins with another subject, so that none always follows the same one.
        let shift = repetition as usize % filled_subjects.len().max(1);
        for filled in filled_subjects.iter().cycle().skip(shift).take(filled_subjects.len()) {
            samples.push(filled.slice(options, connection).await?);
        }
    }
    Ok(samples)
}

/// A subject in a scenario, with filled keys.
struct FilledSubject {
    scenario: Scenario,
    subject: Subject,
    connected: ConnectedSubject,
    requests: Arc<Requests>,
}

impl FilledSubject {
    async fn new(options: &Options, url: &str, scenario: Scenario, subject: Subject) -> Result<Self> {
        let (load, name) = (scenario.load(), subject.rule_name(scenario));
        let connected = ConnectedSubject::connect(subject, &name, url, options.connections, load).await?;
        let requests = Arc::new(Requests::new(load));
        let filled = match &connected {
            ConnectedSubject::Classical(subject) => drive::preload(subject, &requests, options.callers).await,
            ConnectedSubject::SlidegateRedis(subject) => {
                drive::preload(subject, &requests, options.callers).await
            }
        };
        filled.with_context(|| format!("cannot fill {scenario}, {subject}"))?;
        Ok(Self { scenario, subject, connected, requests })
    }

    async fn slice(&self, options: &Options, connection: &mut Connection) -> Result<Sample> {
        let before_us = info::cpu_us(connection)?;
        let callers = if self.scenario.load().single_caller { 1 } else { options.callers };
        let length = options.slice();
        let driven = match &self.connected {
            ConnectedSubject::Classical(subject) => {
                drive::slice(subject, &self.requests, callers, length).await
            }
            ConnectedSubject::SlidegateRedis(subject) => {
                drive::slice(subject, &self.requests, callers, length).await
            }
        };
        let SliceCounts { decisions, admitted, elapsed_us } =
            driven.with_context(|| format!("{}, {}", self.scenario, self.subject))?;
        let server_us = info::cpu_us(connection)? - before_us;
        ensure!(
            admitted == decisions || self.scenario.at_limit(),
            "{}, {}: only {admitted} of {decisions} were admitted, but admissions are measured",
            self.scenario,
            self.subject
        );
        Ok(Sample { rate: Some(RateFigures { decisions, admitted, elapsed_us, server_us }), ..self.sample() })
    }

    fn memory(&self, connection: &mut Connection) -> Result<Sample> {
        let bytes = memory::key_bytes(connection, &self.subject.rule_name(self.scenario))?;
        Ok(Sample { key_bytes: Some(bytes), ..self.sample() })
    }

    fn sample(&self) -> Sample {
        let (subject, scenario) = (self.subject.to_string(), self.scenario.to_string());
        Sample { subject, scenario, rate: None, key_bytes: None }
    }
}
