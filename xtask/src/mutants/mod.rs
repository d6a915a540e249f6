//! `cargo xtask mutants`: does the suite catch the bugs that limiters really have?
//!
//! A copy of the repository gets one bug at a time, from [`table`], and the suite of its crate must fail. A bug that
//! no test notices is a hole in the suite, not in the table.

mod mutant;
mod suite;
mod table;
mod tree;

use anyhow::{Result, bail, ensure};

use crate::step;
use mutant::Mutant;
use suite::{Suite, TestResult};
use tree::{Planting, Tree};

pub(crate) fn list() {
    for Mutant { name, class, file, .. } in table::all() {
        println!("{name:NAME_WIDTH$} {class:CLASS_WIDTH$} {file}");
    }
}

const NAME_WIDTH: usize = 58;
const CLASS_WIDTH: usize = 18;

/// Plants every mutant whose name begins with `prefix`.
pub(crate) fn run(prefix: &str) -> Result<()> {
    let chosen: Vec<&Mutant> = table::all().filter(|mutant| mutant.name.starts_with(prefix)).collect();
    ensure!(!chosen.is_empty(), "no mutant is called `{prefix}...`; `cargo xtask mutants --list` shows them");
    step::heading("mutants");
    let tree = Tree::copy()?;
    // All of them before the first is planted: a stale table is reported at once.
    let plantings: Vec<Planting> = chosen.iter().map(|mutant| tree.prepare(mutant)).collect::<Result<_>>()?;
    let suites: Vec<&Suite> = chosen.iter().map(|mutant| Suite::of(mutant.file)).collect::<Result<_>>()?;
    let mut sound: Vec<&Suite> = Vec::new();
    let mut caught = 0;
    for ((Mutant { name, class, .. }, planting), suite) in chosen.iter().zip(&plantings).zip(suites) {
        if !sound.contains(&suite) {
            expect_pass(suite, &tree)?;
            sound.push(suite);
        }
        planting.plant()?;
        match suite.run(&tree)? {
            TestResult::Failed { by } => {
                println!("caught   {name:NAME_WIDTH$} {class:CLASS_WIDTH$} by {by}");
                caught += 1;
            }
            TestResult::Passed => println!("SURVIVED {name:NAME_WIDTH$} {class}"),
            TestResult::NotCompiled { errors } => {
                bail!("{name} does not compile, which proves nothing:\n{errors}")
            }
        }
        planting.restore()?;
    }
    println!("mutants: {caught} of {} caught", chosen.len());
    ensure!(caught == chosen.len(), "some bugs survive; write the test that fails for each");
    Ok(())
}

/// Without a bug a suite passes.
fn expect_pass(suite: &Suite, tree: &Tree) -> Result<()> {
    let package = suite.package();
    match suite.run(tree)? {
        TestResult::Passed => println!("the suite of {package} passes without a bug"),
        TestResult::Failed { by } => {
            bail!("the suite of {package} fails without a bug, in {by}; fix it first")
        }
        TestResult::NotCompiled { errors } => bail!("{package} does not compile without a bug:\n{errors}"),
    }
    Ok(())
}
