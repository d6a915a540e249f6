//! One attack: how it is run, and what became of it.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use slidegate::time::{Clock, SystemClock};

/// An attack on the program.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// What its assertions say.
    pub(crate) holds: &'static str,
    /// Attacks; panics where something does not hold, and returns what was tried.
    pub(crate) carry_out: fn(&Plan) -> String,
}

/// The size and the random choices of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    pub(crate) full: bool,
    pub(crate) seed: u64,
}

impl Plan {
    /// A number for the short form, and one for the full form.
    pub(crate) fn size<T>(&self, short: T, full: T) -> T {
        if self.full { full } else { short }
    }
}

/// An attack that has ended.
pub(crate) struct Outcome {
    pub(crate) attack: Attack,
    /// What was tried; `None` if it did not hold.
    pub(crate) tried: Option<String>,
    pub(crate) seconds: u64,
}

/// Runs the attacks, as many at a time as there are processors: most of them wait.
pub(crate) fn run_all(attacks: &[Attack], plan: &Plan) -> Vec<Outcome> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(attacks.len());
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = attack.run(plan);
                    outcomes.lock().expect("no attack runs under this lock").push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no attack runs under this lock");
    outcomes.sort_by_key(|outcome| attacks.iter().position(|attack| attack.name == outcome.attack.name));
    outcomes
}

impl Attack {
    /// Runs it on a thread of its name, after which its temporary files are named.
    fn run(&self, plan: &Plan) -> Outcome {
        let (clock, carry_out, plan) = (SystemClock::new(), self.carry_out, *plan);
        let begin_us = clock.now_us();
        let name = format!("hostile-{}", self.name.replace(' ', "-"));
        let running = thread::Builder::new().name(name).spawn(move || carry_out(&plan)).expect("a thread");
        let tried = running.join().ok();
        let seconds = (clock.now_us() - begin_us).div_ceil(1_000_000);
        match &tried {
            Some(tried) => println!("{} held: {tried} ({seconds} s)", self.name),
            None => println!(
                "{} DID NOT HOLD ({seconds} s); `cargo xtask hostile --only '{}' --seed {}` repeats it",
                self.name, self.name, plan.seed
            ),
        }
        Outcome { attack: *self, tried, seconds }
    }
}
