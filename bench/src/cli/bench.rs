//! Runs every subject in every round.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use slidegate_bench::machine::Machine;

use crate::options::{MEASURED, Options};
use crate::report;
use crate::results::{BenchSetting, Measurement, Sample};
use crate::subject::{Fixture, Subject};

/// Warm-up rounds, which load programs and files into memory.
const WARM_UP: u32 = 10;

/// Measures, writes the samples and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let parent = options.dir.clone().unwrap_or_else(|| default_dir().to_owned());
    let dir = parent.join(format!("cli-{}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let measured = measure(options, &dir);
    fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    let measured = measured?;
    measured.write(Path::new(MEASURED))?;
    println!("{}", report::table(&measured));
    println!("`cargo xtask bench cli --table target/bench/cli.json` puts it into docs/performance.md");
    Ok(())
}

fn default_dir() -> &'static Path {
    Path::new(MEASURED).parent().unwrap_or(Path::new("."))
}

fn measure(options: &Options, dir: &Path) -> Result<Measurement> {
    let setting =
        BenchSetting { rounds: options.rounds, machine: Machine::here(), sqlite3: version("sqlite3")? };
    let fixture = Fixture::new(dir)?;
    let mut samples = Subject::ALL.map(|subject| Sample { subject, us: Vec::new() });
    // A sync also writes the unwritten pages of other processes, and the next subject waits for that. So the subjects
    // that sync have rounds of their own.
    for syncs in [false, true] {
        for round in 0..WARM_UP + options.rounds {
            for sample in samples.iter_mut().filter(|sample| sample.subject.syncs() == syncs) {
                let took_us = fixture.run(sample.subject, round)?;
                if round >= WARM_UP {
                    sample.us.push(took_us);
                }
            }
        }
    }
    Ok(Measurement { setting, samples: samples.into() })
}

fn version(program: &str) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_whitespace().next().unwrap_or("?").to_owned())
}
