//! This test program once more, as another process: it asks, says what it was told, and may be killed at any time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use slidegate::Algorithm;
use slidegate::store::Call;
use slidegate_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::{ask, rule};

/// What a child is to do: path, durability, rate, algorithm's number, cost, and how many times at most.
const ORDERS: &str = "SLIDEGATE_TEST_CHILD";

#[derive(Debug, Clone, Copy)]
pub struct Orders<'a> {
    pub path: &'a Path,
    pub durability: Durability,
    pub rate: &'a str,
    pub algorithm: usize,
    pub cost: u64,
    pub times: u64,
}

/// A line of a child's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// So many units were admitted.
    Admitted(u64),
    Denied,
    Failed(String),
}

/// A child at work.
pub struct Working {
    pub child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Orders<'_> {
    /// Starts a child by way of the test `as_a_child` of the program that calls this.
    pub fn start(&self) -> Working {
        self.start_by(Command::new(std::env::current_exe().unwrap()))
    }

    pub fn start_by(&self, mut command: Command) -> Working {
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
        Working { child, lines }
    }
}

impl Working {
    /// The next thing that it says; `None` when it has ended.
    pub fn next(&mut self) -> Option<Said> {
        for line in self.lines.by_ref() {
            // A line that a kill has cut short was not said.
            let line = line.ok()?;
            let said = match line.split_once(' ') {
                Some(("admitted", units)) => {
                    units.strip_suffix('.').map(|units| Said::Admitted(units.parse().unwrap()))
                }
                Some(("denied", ".")) => Some(Said::Denied),
                Some(("failed", why)) => Some(Said::Failed(why.to_owned())),
                _ => None,
            };
            if said.is_some() {
                return said;
            }
        }
        None
    }

    /// All that it still says.
    pub fn rest(&mut self) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next() {
            all.push(said);
        }
        self.child.wait().unwrap();
        all
    }

    /// Kills it where it stands; what it had said until then.
    pub fn kill(mut self) -> Vec<Said> {
        self.child.kill().unwrap();
        self.rest()
    }
}

/// Does what a child is told to. Without orders it gives some to a child of its own, and sees that they are followed.
pub fn obey() {
    let Ok(orders) = std::env::var(ORDERS) else {
        let directory = super::Directory::new();
        let (path, durability) = (&directory.file(), Durability::Normal);
        let orders = Orders { path, durability, rate: "5/1h", algorithm: 0, cost: 2, times: 3 };
        let expected = [Said::Admitted(2), Said::Admitted(2), Said::Denied];
        assert_eq!(orders.start().rest(), expected);
        return;
    };
    let [path, durability, rate, algorithm, cost, times] = &*orders.split('\n').collect::<Vec<_>>() else {
        panic!("{orders}")
    };
    let durability = if *durability == "full" { Durability::Full } else { Durability::Normal };
    let algorithm = Algorithm::ALL[algorithm.parse::<usize>().unwrap()];
    let (rule, cost): (_, u64) = (rule(algorithm.name(), &[rate], algorithm), cost.parse().unwrap());
    let options =
        SqliteOptions::new(path).durability(durability).deadline(std::time::Duration::from_secs(120));
    let say = |line: String| std::io::stdout().write_all(line.as_bytes()).unwrap();
    // What runs tests has begun a line.
    say("\n".to_owned());
    match SqliteStore::open_with(&options) {
        Err(error) => say(format!("failed {error}\n")),
        Ok(store) => {
            for _ in 0..times.parse::<u64>().unwrap() {
                match ask(&store, Call::now(), &rule, cost) {
                    Ok(outcome) if outcome.allowed() => say(format!("admitted {cost}.\n")),
                    Ok(_) => say("denied .\n".to_owned()),
                    Err(error) => say(format!("failed {error}\n")),
                }
            }
        }
    }
    std::process::exit(0);
}
