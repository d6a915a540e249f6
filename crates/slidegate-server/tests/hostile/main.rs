//! Attacks on the real program, over real sockets, files and Redis servers: `cargo xtask hostile`.
//!
//! An attack is a file with one function, which attacks, asserts what must hold, and returns what it tried. All
//! attacks are bounded in count and time, and random choices come from a seed. Without `--full` they are small enough
//! for `cargo xtask test`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "this program is a test")]

mod attack;
mod authority;
#[path = "../../src/http/tests/client.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod client;
mod clock_jumps;
mod descriptors;
#[path = "../../src/http/tests/fuzzed_bodies.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod fuzzed_bodies;
mod fuzzed_requests;
mod kill_loop;
mod memory_budget;
mod observe;
mod options;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod program;
mod refund_flood;
#[path = "../../../slidegate-redis/tests/store/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
mod server;
#[path = "../program/server_process.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod server_process;
mod slow_peers;
mod stalled_log;
mod store_faults;
mod table;
mod wire;

use std::process::ExitCode;

use attack::Attack;
use options::Options;

const ATTACKS: &[Attack] = &[
    fuzzed_requests::ATTACK,
    slow_peers::ATTACK,
    descriptors::ATTACK,
    memory_budget::ATTACK,
    refund_flood::ATTACK,
    store_faults::ATTACK,
    kill_loop::ATTACK,
    clock_jumps::ATTACK,
    stalled_log::ATTACK,
    authority::ATTACK,
];

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<Attack> =
        ATTACKS.iter().filter(|attack| options.includes(attack.name)).copied().collect();
    if options.list {
        for attack in chosen {
            println!("{}: test", attack.name);
        }
        return ExitCode::SUCCESS;
    }
    let outcomes = attack::run_all(&chosen, &options.plan);
    let failed = outcomes.iter().filter(|outcome| outcome.tried.is_none()).count();
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
