//! This test program as a child process: it makes calls, prints the answers, and may be killed at any time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use slidegate::Algorithm;
use slidegate::store::Call;
use slidegate::time::{Clock, WallClock};
use slidegate_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::{ask, rule};

/// The environment variable with the orders: path, durability, rate, algorithm's number, cost, and how many calls.
const ORDERS: &str = "SLIDEGATE_TEST_CHILD";
/// The environment variable with the seconds by which a child's clock is ahead.
const AHEAD_S: &str = "SLIDEGATE_TEST_CHILD_AHEAD_S";

/// The wall clock, ahead by some seconds.
struct ClockAhead(u64);

impl Clock for ClockAhead {
    fn now_us(&self) -> u64 {
        WallClock.now_us() + self.0 * 1_000_000
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ChildOrders<'a> {
    pub path: &'a Path,
    pub durability: Durability,
    pub rate: &'a str,
    pub algorithm: usize,
    pub cost: u64,
    pub times: u64,
}

/// A line that a child prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildReport {
    /// This many units were admitted.
    Admitted(u64),
    Denied,
    Failed(String),
}

/// A running child.
pub struct RunningChild {
    pub child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl ChildOrders<'_> {
    /// Starts a child: the test `as_a_child` of this program.
    pub fn start(&self) -> RunningChild {
        self.start_by(Command::new(std::env::current_exe().unwrap()))
    }

    /// The same on a clock that is ahead.
    pub fn start_ahead(&self, ahead_s: u64) -> RunningChild {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(AHEAD_S, ahead_s.to_string());
        self.start_by(command)
    }

    pub fn start_by(&self, mut command: Command) -> RunningChild {
        let durability = self.durability.name();
        let orders = format!(
            "{}\n{durability}\n{}\n{}\n{}\n{}",
            self.path.display(),
            self.rate,
            self.algorithm,
            self.cost,
            self.times
        );
        command.args(["--exact", "as_a_child", "--nocapture", "--test-threads", "1"]).env(ORDERS, orders);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        RunningChild { child, lines }
    }
}

impl RunningChild {
    /// The next report; `None` when the child has ended.
    pub fn next(&mut self) -> Option<ChildReport> {
        for line in self.lines.by_ref() {
            // A line that a kill has cut short is no report.
            let line = line.ok()?;
            let report = match line.split_once(' ') {
                Some(("admitted", units)) => {
                    units.strip_suffix('.').map(|units| ChildReport::Admitted(units.parse().unwrap()))
                }
                Some(("denied", ".")) => Some(ChildReport::Denied),
                Some(("failed", why)) => Some(ChildReport::Failed(why.to_owned())),
                _ => None,
            };
            if report.is_some() {
                return report;
            }
        }
        None
    }

    /// All remaining reports.
    pub fn rest(&mut self) -> Vec<ChildReport> {
        let mut all = Vec::new();
        while let Some(report) = self.next() {
            all.push(report);
        }
        self.child.wait().unwrap();
        all
    }

    /// Kills the child. Returns its remaining reports.
    pub fn kill(mut self) -> Vec<ChildReport> {
        self.child.kill().unwrap();
        self.rest()
    }
}

/// Runs the orders of a child. Without orders it starts a child itself and checks its reports.
pub fn run_child() {
    let Ok(orders) = std::env::var(ORDERS) else {
        let directory = super::Directory::new();
        let (path, durability) = (&directory.file(), Durability::Normal);
        let orders = ChildOrders { path, durability, rate: "5/1h", algorithm: 0, cost: 2, times: 3 };
        let expected = [ChildReport::Admitted(2), ChildReport::Admitted(2), ChildReport::Denied];
        assert_eq!(orders.start().rest(), expected);
        return;
    };
    let [path, durability, rate, algorithm, cost, times] = &*orders.split('\n').collect::<Vec<_>>() else {
        panic!("{orders}")
    };
    let durability = if *durability == "full" { Durability::Full } else { Durability::Normal };
    let algorithm = Algorithm::ALL[algorithm.parse::<usize>().unwrap()];
    let (rule, cost): (_, u64) = (rule(algorithm.name(), &[rate], algorithm), cost.parse().unwrap());
    let options = SqliteOptions::new(path)
        .durability(durability)
        .deadline(std::time::Duration::from_secs(120))
        .unwrap();
    let print = |line: String| std::io::stdout().write_all(line.as_bytes()).unwrap();
    // The test harness has begun a line.
    print("\n".to_owned());
    match SqliteStore::open_with(&options) {
        Err(error) => print(format!("failed {error}\n")),
        Ok(store) => {
            let ahead_s = std::env::var(AHEAD_S).map_or(0, |seconds| seconds.parse().unwrap());
            let store = store.on_clock(ClockAhead(ahead_s));
            for _ in 0..times.parse::<u64>().unwrap() {
                match ask(&store, Call::now(), &rule, cost) {
                    Ok(decision) if decision.allowed() => print(format!("admitted {cost}.\n")),
                    Ok(_) => print("denied .\n".to_owned()),
                    Err(error) => print(format!("failed {error}\n")),
                }
            }
        }
    }
    std::process::exit(0);
}
