//! Writes docs/accuracy.md, or checks it against the code.
#![expect(clippy::print_stderr, reason = "progress of a long run")]

mod attacks;
mod random;
mod realtime;
mod report;
mod subjects;
mod typical;
mod waits;
mod workload;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

const LONG_RUN_DECISIONS: u64 = 100_000_000;
const SHORT_RUN_DECISIONS: u64 = 1_000_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = page();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => generate(&path),
        ["--check"] => check(&path),
        _ => bail!("usage: accuracy [--check]"),
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/accuracy.md")
}

fn generate(path: &Path) -> anyhow::Result<()> {
    let progress = |line: &str| eprintln!("{line}");
    progress("attacks, waits and ordinary traffic in simulated time");
    let exact = report::exact_sections();
    let (long_run, wrong) = report::long_run(LONG_RUN_DECISIONS, progress);
    if !wrong.is_empty() {
        bail!("the page was not written, because guarantees were broken:\n{}", wrong.join("\n"));
    }
    let real_time = report::real_time(progress)?;
    let page = format!("{}{exact}{long_run}\n{real_time}", report::INTRODUCTION);
    std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
    progress("docs/accuracy.md is written");
    Ok(())
}

fn check(path: &Path) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(path)
        .context("reading docs/accuracy.md; `cargo xtask accuracy` writes it")?;
    let (short_run, wrong) = report::long_run(SHORT_RUN_DECISIONS, |_| {});
    if !wrong.is_empty() {
        bail!("guarantees were broken:\n{}", wrong.join("\n"));
    }
    let disagreements = report::disagreements(&page, &report::exact_sections(), &short_run);
    if !disagreements.is_empty() {
        bail!(
            "docs/accuracy.md does not match the code; run `cargo xtask accuracy`:\n{}",
            disagreements.join("\n")
        );
    }
    eprintln!("docs/accuracy.md agrees with the code: {} lines", page.lines().count());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_matches_the_code() {
        super::check(&super::page()).unwrap();
    }
}
