//! The program `slidegate`: rate limiting that holds, from the command line.
//!
//! `cli` reads what was typed and runs a command; `http` serves, `replay` executes traces, `config` reads rule
//! files, `service` is what the ways in share.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod http;
mod replay;
mod service;

use std::process::ExitCode;
use std::{env, io};

fn main() -> ExitCode {
    // Not locked: other threads log to it, and whoever panics says so there.
    cli::main(&env::args_os().collect::<Vec<_>>(), &mut io::stdout().lock(), &mut io::stderr())
}
