//! One trial: how it is run, and what became of it.

use std::thread;

use slidegate::time::{Clock, SystemClock};

use crate::faults::Fault;
use crate::matrix::{self, Measured};
use crate::options::Plan;

/// A trial of the program.
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    carry_out: CarryOut,
}

#[derive(Clone, Copy)]
enum CarryOut {
    Fault(&'static Fault),
    Other(Text),
}

/// A trial whose result is a sentence. It panics where something does not hold.
pub(crate) type Text = fn(&Plan) -> String;

/// A trial that has ended.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// `None` if something did not hold.
    pub(crate) result: Option<Result>,
}

pub(crate) enum Result {
    Measured(Measured),
    Text(String),
}

impl Trial {
    pub(crate) fn of_fault(fault: &'static Fault) -> Self {
        Self { name: fault.name, carry_out: CarryOut::Fault(fault) }
    }

    pub(crate) fn of(name: &'static str, trial: Text) -> Self {
        Self { name, carry_out: CarryOut::Other(trial) }
    }

    /// Runs it on a thread of its name, after which its temporary files are named.
    pub(crate) fn run(&self, plan: &Plan) -> Outcome {
        let (clock, carry_out, plan) = (SystemClock::new(), self.carry_out, *plan);
        let begin_us = clock.now_us();
        let running = thread::Builder::new().name(format!("faults-{}", self.name.replace(' ', "-")));
        let running = running.spawn(move || match carry_out {
            CarryOut::Fault(fault) => Result::Measured(matrix::measure(fault, &plan)),
            CarryOut::Other(trial) => Result::Text(trial(&plan)),
        });
        let result = running.expect("a thread").join().ok();
        let seconds = (clock.now_us() - begin_us).div_ceil(1_000_000);
        match &result {
            Some(_) => println!("{} held ({seconds} s)", self.name),
            None => println!(
                "{} DID NOT HOLD ({seconds} s); `cargo xtask faults --only '{}' --seed {}` repeats it",
                self.name, self.name, plan.seed
            ),
        }
        Outcome { name: self.name, result }
    }
}
