//! `slidegate token`: a random token, and its line for the configuration.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use ring::rand::{SecureRandom, SystemRandom};

use super::output::write_data;
use crate::tokens::hash_of;

/// Bytes of randomness.
const RANDOM_BYTES: usize = 32;

/// Print a random token, and its line for the configuration
///
/// The configuration gets the hash and the caller the token, which is stored nowhere.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {}

const HELP: &str = "Example:

  slidegate token
  curl -H 'authorization: Bearer TOKEN' http://127.0.0.1:8080/v1/rules

The first line is the token. The last line belongs below `tokens:` in the configuration;
give the token another name, and the scopes that it needs: check, read, admin.";

/// Prints a new token.
pub(super) fn run(out: &mut impl Write) -> Result<ExitCode> {
    let mut random = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| anyhow!("the system gives no random numbers; see getrandom(2)"))?;
    let token = hexadecimal(&random);
    let hash = hexadecimal(&hash_of(token.as_bytes()));
    // Quoted: YAML would read a hash of decimal digits as a number.
    let line = format!("  web: {{ sha256: \"{hash}\", scopes: [check] }}");
    write_data(format!("{token}\n\ntokens:\n{line}\n").as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).expect("it is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
