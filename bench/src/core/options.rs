//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::scenario::{Effort, Scenario};
use crate::subject::Subject;

/// The samples that the README shows.
pub(crate) const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/core.json");

/// Measures the cost of one decision beside other limiters. Half an hour or more.
#[derive(Debug, Parser)]
#[command(name = "core")]
pub(crate) struct Options {
    /// A fifth of the keys and decisions, as a trial; the figures are not comparable
    #[arg(long)]
    pub(crate) quick: bool,
    /// Repetitions of every run; the tables show the median
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) reps: u32,
    /// Also the scenarios of 10 million keys: several GB of memory, and twice the time
    #[arg(long)]
    pub(crate) large: bool,
    /// Keep the samples of subjects and scenarios that this run does not measure, to measure a long benchmark in parts
    #[arg(long)]
    pub(crate) keep: bool,
    /// Measure only this subject; repeat it for more, `governor` and `floor` for the ratios
    #[arg(long, value_name = "SUBJECT")]
    only: Vec<Subject>,
    /// Measure only this scenario, large or not; repeat it for more
    #[arg(long, value_name = "SCENARIO")]
    scenario: Vec<Scenario>,
    /// Measure nothing: write the README's table from bench/results/core.json, or put the samples of
    /// FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    pub(crate) table: Option<PathBuf>,
    /// The subject of a child process
    #[arg(long, hide = true, requires = "scenario")]
    child: Option<Subject>,
}

/// One run, measured by a child process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) subject: Subject,
    pub(crate) scenario: Scenario,
    pub(crate) effort: Effort,
}

impl Run {
    /// The arguments of the child process for this run.
    pub(crate) fn args(self) -> Vec<String> {
        let mut args = vec![
            "--child".to_owned(),
            self.subject.to_string(),
            "--scenario".to_owned(),
            self.scenario.to_string(),
        ];
        if self.effort == Effort::Quick {
            args.push("--quick".to_owned());
        }
        args
    }
}

impl Options {
    /// The run to make, if this process is a child.
    pub(crate) fn child_run(&self) -> Option<Run> {
        let (subject, scenario) = (self.child?, *self.scenario.first()?);
        Some(Run { subject, scenario, effort: self.effort() })
    }

    pub(crate) fn effort(&self) -> Effort {
        if self.quick { Effort::Quick } else { Effort::Full }
    }

    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let chosen = |subject: &Subject| self.only.is_empty() || self.only.contains(subject);
        Subject::all().into_iter().filter(chosen).collect()
    }

    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let chosen = |scenario: &Scenario| match self.scenario[..] {
            [] => self.large || !scenario.large(),
            ref named => named.contains(scenario),
        };
        Scenario::all().into_iter().filter(chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_parses_the_arguments_of_its_run() {
        for (subject, scenario) in [(Subject::Floor, Scenario::Hot1), (Subject::Gcra, Scenario::Zipf2)] {
            for effort in [Effort::Full, Effort::Quick] {
                let told = Run { subject, scenario, effort }.args();
                let run = Options::parse_from([vec!["core".to_owned()], told].concat()).child_run().unwrap();
                assert_eq!((run.subject, run.scenario, run.effort), (subject, scenario, effort));
            }
        }
        assert!(Options::parse_from(["core"]).child_run().is_none());
    }
    #[test]
    fn a_named_scenario_is_measured_even_if_it_is_large() {
        let scenarios = |args: &[&str]| Options::parse_from([&["core"], args].concat()).scenarios();
        assert!(!scenarios(&[]).contains(&Scenario::Large1));
        assert!(scenarios(&["--large"]).contains(&Scenario::Large1));
        let named = scenarios(&["--scenario", "large1", "--scenario", "hot1"]);
        assert_eq!(named, [Scenario::Hot1, Scenario::Large1]);
    }
}
