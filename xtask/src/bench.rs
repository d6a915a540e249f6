//! `cargo xtask bench`: what a decision costs beside other limiters.

use anyhow::{Result, bail};

use crate::step::{self, cargo};

/// Passes the arguments on to the program that measures.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let ["core", rest @ ..] = args else {
        bail!("`cargo xtask bench` needs to know which: `cargo xtask bench core`");
    };
    step::run(
        "bench core",
        cargo("run --release --package slidegate-bench --bin core --").args(rest),
        "what was measured is in target/bench/core.json; `cargo xtask bench core --help` lists the options",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_is_not_there_is_answered_with_the_one_that_is() {
        for args in [&[][..], &["cores"], &["--quick"]] {
            assert!(run(args).unwrap_err().to_string().contains("`cargo xtask bench core`"), "{args:?}");
        }
    }
}
