//! The runner: one child per run, subjects taking turns.

use std::env;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::machine::Machine;
use crate::options::{Options, Run};
use crate::report;
use crate::resident::RETURN_AT_ONCE;
use crate::results::Results;
use crate::sample::Sample;
use crate::scenario::Measure;

/// Measures the chosen subjects and scenarios, writes the samples and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(!runs(options, 0).is_empty(), "none of these subjects takes part in any of these scenarios");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/core.json");
    let mut results = Results::begin(path, options.quick, Machine::here(), options.keep)?;
    let mut failures = Vec::new();
    for repetition in 0..options.reps {
        let runs = runs(options, repetition);
        for (index, run) in runs.iter().enumerate() {
            let name = format!("{}, {}", run.subject, run.scenario.title(run.effort));
            eprintln!(
                "repetition {} of {}, {}/{}: {name}",
                repetition + 1,
                options.reps,
                index + 1,
                runs.len()
            );
            match child(*run) {
                Ok(sample) => results.add(sample)?,
                Err(error) => {
                    eprintln!("  failed: {error:#}");
                    failures.push(name);
                }
            }
        }
    }
    print!("{}", report::tables(results.samples(), options.effort()));
    eprintln!("all samples: target/bench/core.json");
    ensure!(failures.is_empty(), "{} runs failed and are missing: {}", failures.len(), failures.join("; "));
    Ok(())
}

/// The runs of a repetition, scenario by scenario. Each repetition begins with another subject, so that
/// none always follows the same one.
fn runs(options: &Options, repetition: u32) -> Vec<Run> {
    let mut subjects = options.subjects();
    let shift = repetition as usize % subjects.len();
    subjects.rotate_left(shift);
    let mut runs = Vec::new();
    for scenario in options.scenarios() {
        // Memory does not vary from run to run.
        if scenario.measure() == Measure::Memory && repetition > 0 {
            continue;
        }
        let able = subjects.iter().filter(|subject| subject.takes_part(scenario));
        runs.extend(able.map(|&subject| Run { subject, scenario, effort: options.effort() }));
    }
    runs
}

/// Runs a child to its end or its timeout.
fn child(run: Run) -> Result<Sample> {
    let mut command = Command::new(env::current_exe().context("cannot find this program")?);
    command.args(run.args()).stdin(Stdio::null()).stdout(Stdio::piped());
    if matches!(run.scenario.measure(), Measure::Memory | Measure::Flood) {
        let (name, value) = RETURN_AT_ONCE;
        command.env(name, value);
    }
    let mut child = command.spawn().context("cannot start a child")?;
    let mut stdout = child.stdout.take().context("the child has no output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read: io::Result<String> = stdout.read_to_string(&mut text).map(|_| text);
        // Nothing receives it after the timeout.
        let _ = sender.send(read);
    });
    let Ok(text) = receiver.recv_timeout(run.scenario.timeout()) else {
        child.kill().context("cannot end the child")?;
        child.wait()?;
        bail!("no result after {} s; it was killed", run.scenario.timeout().as_secs());
    };
    ensure!(child.wait()?.success(), "the child failed; its output is above");
    serde_json::from_str(&text?).context("the child's line cannot be parsed")
}
