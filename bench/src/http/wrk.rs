//! A slice of `wrk`, a closed loop: one thread, many connections, each waiting for its answer before the next request.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::request_template::RequestTemplate;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/wrk.lua");

/// The result of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrkSlice {
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    /// Errors, timeouts and unsuccessful answers.
    pub(crate) failed: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

/// Runs on the server at an address for `seconds`, beginning with the key `first`.
pub(crate) fn slice_of(
    address: SocketAddr,
    template: &RequestTemplate,
    connections: u16,
    seconds: u64,
    first: u64,
    keys: u64,
) -> Result<WrkSlice> {
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "--latency", "-s", SCRIPT])
        .arg(format!("http://{address}/"))
        .args(["--", &first.to_string(), &keys.to_string(), &template.before, &template.after])
        .output()
        .context("cannot start wrk; `cargo xtask bench http` installs it")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk: {text}{}", String::from_utf8_lossy(&output.stderr));
    driven(&text).with_context(|| format!("wrk printed no result of the slice: {text}"))
}

/// What the script wrote at the end.
fn driven(text: &str) -> Option<WrkSlice> {
    let line = text.lines().find_map(|line| line.strip_prefix("slice "))?;
    let figures: Vec<u64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
    let [requests, elapsed_us, failed, p50_us, p99_us] = figures[..] else { return None };
    Some(WrkSlice { requests, elapsed_us, failed, p50_us, p99_us })
}

/// Its version.
pub(crate) fn version() -> Result<String> {
    let output = Command::new("wrk").arg("--version").output().context("cannot start wrk")?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Ok(text.split_whitespace().nth(1).unwrap_or("of an unknown version").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_script_is_parsed() {
        let text = "Running 1s test\n  1 threads and 50 connections\nslice 61000 1000345 2 560 1470\n";
        let found =
            WrkSlice { requests: 61_000, elapsed_us: 1_000_345, failed: 2, p50_us: 560, p99_us: 1_470 };
        assert_eq!(driven(text), Some(found));
        assert_eq!(driven("slice 1 2 3 4\n"), None);
    }
}
