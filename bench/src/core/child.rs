//! One run: one subject in one scenario, in its own process.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(feature = "rivals"))]
use anyhow::bail;
use anyhow::{Result, ensure};
use slidegate::Algorithm;
use slidegate::rule::AtBudget;

use crate::flood::flood;
use crate::growth::grow;
use crate::options::Run;
use crate::requests::{Requests, every_key};
use crate::resident;
use crate::sample::Sample;
use crate::saturated;
use crate::scenario::{Measure, Scenario};
use crate::subject::{
    EmptyLoop, Floor, Governor, SharedLimiter, SlidegateBatches, SlidegateMemory, Subject, Trypema, Worker,
    algorithm,
};
#[cfg(feature = "rivals")]
use crate::subject::{Pingora, Throttlecrab};
use crate::threads::{Cores, run_in_parallel};

pub(crate) fn run(run: Run) -> Result<Sample> {
    let bench = Bench::new(run)?;
    if run.scenario == Scenario::Saturated {
        return Ok(bench.memory(saturated::resident_bytes_max(bench.keys())?));
    }
    if run.scenario.measure() == Measure::Flood {
        return bench.flood();
    }
    match run.subject {
        Subject::Governor => bench.shared(&Governor::new()?),
        #[cfg(feature = "rivals")]
        Subject::Throttlecrab => bench.single_threaded(Throttlecrab::new()),
        #[cfg(feature = "rivals")]
        Subject::PingoraLimits => bench.shared(&Pingora::new()),
        #[cfg(not(feature = "rivals"))]
        Subject::Throttlecrab | Subject::PingoraLimits => bail!("build with `--features rivals`"),
        Subject::Trypema => bench.shared(&Trypema::new()?),
        Subject::Floor => bench.single_threaded(Floor::default()),
        Subject::EmptyLoop => bench.single_threaded(EmptyLoop),
        Subject::SlidingCounterBatch => {
            let ours = SlidegateMemory::new(Algorithm::SlidingCounter, run.scenario.traffic())?;
            bench.shared(&SlidegateBatches(ours))
        }
        ours => {
            let algorithm = algorithm(ours).expect("all others are listed above");
            if run.scenario == Scenario::HotManualClock {
                return bench.shared(&SlidegateMemory::on_manual_clock(algorithm, "100000000/1h")?);
            }
            bench.shared(&SlidegateMemory::new(algorithm, run.scenario.traffic())?)
        }
    }
}

/// Everything but the subject. It is created first, so that all memory that becomes resident later is the subject's.
struct Bench {
    run: Run,
    cores: Cores,
    requests: Vec<Requests>,
    resident_before: u64,
}

impl Bench {
    fn new(run: Run) -> Result<Self> {
        ensure!(
            run.subject.takes_part(run.scenario),
            "{} does not take part in {}",
            run.subject,
            run.scenario
        );
        let cores = Cores::of_process();
        let (have, want) = (cores.len(), run.scenario.threads());
        ensure!(have >= want, "{want} threads need {want} cores, and this process may use {have}");
        ensure!(cores.pin(0), "cannot pin a thread to a core, so figures would be noise");
        let threads = 0..run.scenario.threads() as u64;
        let timed = run.scenario.measure() == Measure::Time;
        let requests =
            threads.filter(|_| timed).map(|thread| Requests::new(run.scenario, run.effort, thread));
        Ok(Self { run, cores, requests: requests.collect(), resident_before: resident::bytes()? })
    }

    fn keys(&self) -> u64 {
        self.run.scenario.keys(self.run.effort)
    }

    /// Only slidegate has a memory budget.
    fn flood(&self) -> Result<Sample> {
        let algorithm = algorithm(self.run.subject).expect("no other takes part");
        let evicting = self.run.scenario == Scenario::FloodEvicting;
        let at_budget = if evicting { AtBudget::EvictOldest } else { AtBudget::Refuse };
        let flooded = flood(algorithm, at_budget, self.keys(), self.run.effort)?;
        Ok(Sample { flooded: Some(flooded), ..Sample::of(self.run) })
    }

    fn single_threaded<W: Worker + Send>(&self, mut worker: W) -> Result<Sample> {
        if self.run.scenario.measure() != Measure::Time {
            return self.untimed(&mut worker);
        }
        self.preload(&mut worker)?;
        self.time(vec![|requests: &Requests| ask(worker, requests)])
    }

    fn shared<S: SharedLimiter>(&self, subject: &S) -> Result<Sample> {
        if self.run.scenario.measure() != Measure::Time {
            return self.untimed(&mut subject.worker());
        }
        self.preload(&mut subject.worker())?;
        // A worker is made by the thread that uses it.
        let asks = |requests: &Requests| ask(subject.worker(), requests);
        self.time(vec![asks; self.requests.len()])
    }

    /// Measures memory or growth on this thread.
    fn untimed<W: Worker>(&self, worker: &mut W) -> Result<Sample> {
        if self.run.scenario.measure() == Measure::Growth {
            let hits = self.run.subject.hits(self.run.scenario, self.run.effort);
            let calls = grow(worker, self.keys(), hits)?;
            return Ok(Sample { calls: Some(calls), ..Sample::of(self.run) });
        }
        self.preload(worker)?;
        Ok(self.memory(resident::bytes()?))
    }

    /// Charges every key. The hits of one key are far apart, as in real traffic.
    fn preload<W: Worker>(&self, worker: &mut W) -> Result<()> {
        let mut refused = 0_u64;
        for _ in 0..self.run.subject.hits(self.run.scenario, self.run.effort) {
            every_key(self.keys(), |key| refused += u64::from(!worker.decide(key)));
        }
        ensure!(refused == 0, "{refused} hits were refused before the run; its limit is too low");
        Ok(())
    }

    fn memory(&self, resident_bytes: u64) -> Sample {
        let grown = resident_bytes.saturating_sub(self.resident_before);
        Sample { resident_bytes: Some(grown), key_bytes: Some(grown / self.keys()), ..Sample::of(self.run) }
    }

    fn time<A: FnOnce(&Requests) -> u64 + Send>(&self, asks: Vec<A>) -> Result<Sample> {
        let mut sample = Sample::of(self.run);
        let allowed = AtomicU64::new(0);
        let work = asks.into_iter().zip(&self.requests).map(|(ask, requests)| {
            let allowed = &allowed;
            move || {
                allowed.fetch_add(ask(requests), Ordering::Relaxed);
            }
        });
        let elapsed_us = run_in_parallel(&self.cores, work.collect());
        let asked: u64 = self.requests.iter().map(Requests::len).sum();
        let allowed = allowed.into_inner();
        ensure!(allowed == asked, "{allowed} of {asked} decisions were allowed; the limit is too low");
        sample.decisions = self.requests[0].len();
        sample.decision_ps = Some(elapsed_us * 1_000_000 / sample.decisions);
        Ok(sample)
    }
}

/// Makes the requests and returns how many were allowed.
fn ask<W: Worker>(mut worker: W, requests: &Requests) -> u64 {
    let mut allowed = 0;
    if W::BATCHES {
        requests.for_each_batch(|keys| allowed += worker.decide_many(keys));
    } else {
        requests.for_each(|key| allowed += u64::from(worker.decide(key)));
    }
    allowed
}
