//! The program `slidegate`: rate limiting that holds, from the command line.
//!
//! `cli` parses the arguments and runs a command; `http` serves, `replay` executes traces, `config` reads configuration
//! files, `reload` reads them again while the server runs. `tls` encrypts the connections of the wires, `service` answers
//! their requests, with `rules`, `stores`, `receipts`, `metrics`, `tokens` and `top` below it.

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
mod tls;
mod tokens;
mod top;

use std::process::ExitCode;
use std::{env, io};

fn main() -> ExitCode {
    // stderr is not locked: other threads log to it, and panic messages go there.
    cli::main(&env::args_os().collect::<Vec<_>>(), &mut io::stdout().lock(), &mut io::stderr())
}
