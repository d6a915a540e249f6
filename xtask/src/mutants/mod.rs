//! `cargo xtask mutants`: does the suite catch the bugs that limiters really have?
//!
//! A copy of the library gets one bug at a time, from [`table`], and the suite must fail. A bug that no
//! test notices is a hole in the suite, not in the table.

mod mutant;
mod suite;
mod table;
mod tree;

use anyhow::{Result, bail, ensure};

use crate::step;
use mutant::Mutant;
use suite::Outcome;
use table::MUTANTS;
use tree::{Planting, Tree};

pub(crate) fn list() {
    for Mutant { name, class, file, .. } in MUTANTS {
        println!("{name:NAME_WIDTH$} {class:CLASS_WIDTH$} {file}");
    }
}

const NAME_WIDTH: usize = 42;
const CLASS_WIDTH: usize = 18;

/// Plants every mutant whose name begins with `prefix`.
pub(crate) fn run(prefix: &str) -> Result<()> {
    let chosen: Vec<&Mutant> = MUTANTS.iter().filter(|mutant| mutant.name.starts_with(prefix)).collect();
    ensure!(!chosen.is_empty(), "no mutant is called `{prefix}...`; `cargo xtask mutants --list` shows them");
    step::heading("mutants");
    let tree = Tree::copy()?;
    // All of them before the first is planted: a table that is stale should say so at once.
    let plantings: Vec<Planting> = chosen.iter().map(|mutant| tree.prepare(mutant)).collect::<Result<_>>()?;
    match suite::run(&tree)? {
        Outcome::Passed => println!("the suite passes without a bug"),
        Outcome::Failed { by } => bail!("the suite fails without a bug, in {by}; mend it first"),
        Outcome::NotCompiled { errors } => bail!("the library does not compile without a bug:\n{errors}"),
    }
    let mut caught = 0;
    for (Mutant { name, class, .. }, planting) in chosen.iter().zip(&plantings) {
        planting.plant()?;
        match suite::run(&tree)? {
            Outcome::Failed { by } => {
                println!("caught   {name:NAME_WIDTH$} {class:CLASS_WIDTH$} by {by}");
                caught += 1;
            }
            Outcome::Passed => println!("SURVIVED {name:NAME_WIDTH$} {class}"),
            Outcome::NotCompiled { errors } => {
                bail!("{name} does not compile, which proves nothing:\n{errors}")
            }
        }
        planting.restore()?;
    }
    println!("mutants: {caught} of {} caught", chosen.len());
    ensure!(caught == chosen.len(), "some bugs survive; write the test that fails for each");
    Ok(())
}
