//! The program `slidegate`: rate limiting that holds, from the command line.
//!
//! `cli` reads what was typed and runs a command; `http` serves, `replay` executes traces, `config` reads rule
//! files, `reload` reads them again while the server runs. `service` answers what the wires ask, with `rules`, `stores`,
//! `receipts`, `metrics` and `top` below it.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod http;
mod metrics;
mod receipts;
mod reload;
mod replay;
mod rules;
mod service;
mod stores;
mod stripe;
mod text;
mod top;

use std::process::ExitCode;
use std::{env, io};

fn main() -> ExitCode {
    // Not locked: other threads log to it, and whoever panics says so there.
    cli::main(&env::args_os().collect::<Vec<_>>(), &mut io::stdout().lock(), &mut io::stderr())
}
