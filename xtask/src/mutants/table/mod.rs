//! The bugs that are planted, one table per crate.

// First: it defines the macro `mutants!` that the others use.
#[macro_use]
mod library;
mod redis;
mod sqlite;

use super::mutant::Mutant;

/// The mutants of all crates.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    [library::MUTANTS, redis::MUTANTS, sqlite::MUTANTS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::super::tree::planted;
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = BTreeSet::new();
        for mutant in all() {
            assert!(names.insert(mutant.name), "{}", mutant.name);
        }
    }

    #[test]
    fn every_mutant_fits_its_file() {
        for mutant in all() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(mutant.file);
            let text = fs::read_to_string(path).expect(mutant.file);
            assert_ne!(planted(mutant, &text).unwrap(), text, "{}", mutant.name);
        }
    }
}
