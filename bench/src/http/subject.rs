//! The servers that are measured: how to start each, and its request.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::request_template::{KEY, RequestTemplate};
use crate::sample::Sample;

/// Units per hour and key: enough to admit every request, few enough that no server drops a key during the measurement.
const LIMIT: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Subject {
    Throttlecrab,
    SlidingLog,
    SlidingCounter,
    Gcra,
}

impl Subject {
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The subjects with a sample of this kind.
    pub(crate) fn with_samples(samples: &[Sample], is_kind: impl Fn(&Sample) -> bool) -> Vec<Self> {
        let has = |subject: &Self| {
            let name = subject.to_string();
            samples.iter().any(|sample| sample.subject == name && is_kind(sample))
        };
        Self::all().into_iter().filter(has).collect()
    }

    /// The name in the tables.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Throttlecrab => "throttlecrab-server 0.4.40".to_owned(),
            ours => format!("slidegate {ours}"),
        }
    }

    /// The command that starts it on a port of the loopback address; its files go to the folder.
    pub(crate) fn command(self, port: u16, folder: &Path) -> Result<Command> {
        let program = self.program()?;
        let hint = "`cargo xtask bench http` builds and installs the servers";
        ensure!(program.exists(), "{} is not there; {hint}", program.display());
        let mut command = Command::new(program);
        if self == Self::Throttlecrab {
            command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &port.to_string()]);
            command.args(["--log-level", "error"]);
            return Ok(command);
        }
        let rules = folder.join(format!("{self}.yaml"));
        let text = format!("rules:\n  api: {{ limit: {LIMIT}/1h, algorithm: {self} }}\n");
        fs::write(&rules, text).with_context(|| format!("cannot write {}", rules.display()))?;
        command.args(["serve", "--http", &format!("127.0.0.1:{port}"), "--config"]).arg(rules);
        Ok(command)
    }

    /// slidegate is built beside this program; throttlecrab-server is installed from crates.io.
    fn program(self) -> Result<PathBuf> {
        if self == Self::Throttlecrab {
            let installed = "../target/rivals/bin/throttlecrab-server";
            return Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join(installed));
        }
        let here = std::env::current_exe().context("this program does not know where it is")?;
        Ok(here.with_file_name("slidegate"))
    }

    /// The request for a key.
    pub(crate) fn template(self, port: u16) -> RequestTemplate {
        match self {
            Self::Throttlecrab => {
                let rate = format!(r#""max_burst":{LIMIT},"count_per_period":{LIMIT},"period":3600"#);
                RequestTemplate::post(port, "/throttle", &format!(r#"{{"key":"{KEY}",{rate},"quantity":1}}"#))
            }
            _ => RequestTemplate::post(
                port,
                "/v1/check",
                &format!(r#"{{"rule":"api","key":"{KEY}","cost":1}}"#),
            ),
        }
    }
}

/// The name on the command line.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no subject is hidden").get_name())
    }
}
