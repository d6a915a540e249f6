//! The program `slidegate`: rate limiting that holds, from the command line.
//!
//! `cli` reads what was typed and runs a command; `replay` executes traces, `config` reads rule files,
//! `service` is what the ways in share.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod replay;
mod service;

use std::io;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::run(&cli::Cli::parse(), &mut io::stdout().lock(), &mut io::stderr().lock())
}
