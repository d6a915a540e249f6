//! Faults of the store under the real program: `cargo xtask faults`.
//!
//! Redis stands behind a proxy of our own, which delays, swallows, spoils and counts. A trial is one function, which
//! brings a fault about, asserts how requests are answered meanwhile and that the end is noticed, and returns what it
//! measured. Without `--full` trials are short, for `cargo xtask test`, and assert counts instead of times: a busy machine
//! keeps no deadline.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "this program is a test")]

#[path = "../../src/http/tests/client.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod client;
mod conservation;
mod faults;
mod flapping;
mod late_store;
mod matrix;
#[path = "../hostile/observe.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod observe;
mod options;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod program;
mod proxy;
#[path = "../../../slidegate-redis/tests/store/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
mod server;
#[path = "../program/server_process.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod server_process;
mod shared_denials;
mod table;
mod timings;
mod trial;

use std::process::ExitCode;

use options::Options;
use trial::Trial;

/// All trials, one after the other: some measure times.
fn trials() -> Vec<Trial> {
    let faults = faults::FAULTS.iter().map(Trial::of_fault);
    let others = [
        Trial::of("store that comes late", late_store::TRIAL),
        Trial::of("reset in another process", shared_denials::TRIAL),
        Trial::of("flapping", flapping::TRIAL),
        Trial::of("conservation", conservation::TRIAL),
    ];
    faults.chain(others).collect()
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<Trial> = trials().into_iter().filter(|trial| options.includes(trial.name)).collect();
    if options.list {
        for trial in chosen {
            println!("{}: test", trial.name);
        }
        return ExitCode::SUCCESS;
    }
    let outcomes: Vec<_> = chosen.iter().map(|trial| trial.run(&options.plan)).collect();
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_none()).count();
    if !outcomes.is_empty() {
        println!("\n{}", table::markdown(&outcomes));
    }
    println!("{} passed, {failed} failed", outcomes.len() - failed);
    if failed > 0 {
        return ExitCode::FAILURE;
    }
    if options.table {
        table::publish(&outcomes);
    }
    ExitCode::SUCCESS
}
