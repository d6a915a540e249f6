//! `cargo xtask tidy`: the house rules that no compiler checks.
//!
//! A rule is a function from a file to its findings. To add one, write its file with a test that plants a violation,
//! and list it in [`RULES`].

mod code;
mod crates;
mod file;
mod manifest;
mod mentions;
mod modules;
mod paths;
mod symbols;
mod testing;
mod whitespace;
mod words;

use anyhow::{Result, ensure};

use crate::{files, step};
use file::File;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Counted from 1.
    line: usize,
    /// What is wrong, a semicolon, and what to do.
    message: String,
}

impl Finding {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

const RULES: &[fn(&File) -> Vec<Finding>] = &[
    crates::check,
    modules::check,
    paths::check,
    symbols::check,
    testing::check,
    whitespace::check,
    words::check,
];

/// A file should be one concept. Longer files are listed, but do not fail: some tables are long.
const LINES_NOTED: usize = 300;

pub(crate) fn run() -> Result<()> {
    step::heading("tidy");
    let mut found = 0;
    for path in files::list()? {
        let Some(file) = File::read(&path)? else { continue };
        for finding in RULES.iter().flat_map(|rule| rule(&file)) {
            println!("{path}:{}: {}", finding.line, finding.message);
            found += 1;
        }
        let lines = file.text.lines().count();
        if file.is_rust() && lines > LINES_NOTED {
            println!("note: {path} has {lines} lines; is it still one concept?");
        }
    }
    ensure!(
        found == 0,
        "tidy found {found} violations of the house rules; each line above ends with its remedy"
    );
    Ok(())
}
