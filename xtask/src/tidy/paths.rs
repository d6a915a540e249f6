//! Finds absolute paths of one machine.

use super::Finding;
use super::code::is_word;
use super::file::File;

/// Directories of users and machines. Split, so that this table does not find itself.
const ROOTS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tm", "p/")];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let on_line = |(line, text): (usize, &str)| {
        let root = ROOTS.iter().find(|root| begins_path(text, root))?;
        let remedy = "name it from the root of the repository, or take it as an argument";
        Some(Finding::new(line, format!("a path on one machine, `{root}...`; {remedy}")))
    };
    file.lines().filter_map(on_line).collect()
}

/// Whether a path begins with `root`; after a name or a variable it is the middle of another path.
fn begins_path(text: &str, root: &str) -> bool {
    let middle = |c: char| is_word(c) || "-.~*})".contains(c);
    text.match_indices(root).any(|(at, _)| !text[..at].ends_with(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_root_is_found_at_the_beginning_of_a_path() {
        for root in ROOTS {
            for before in ["", "cd ", "\"", "sqlite:", "file://", "PATH=", "("] {
                let found = check(&File::new("docs/guide.md", &format!("\n{before}{root}x\n")));
                assert_eq!(found.len(), 1, "{before}{root}");
                assert_eq!(found[0].line, 2);
            }
        }
    }

    #[test]
    fn the_middle_of_a_path_is_allowed() {
        for root in ROOTS {
            for before in ["https://example.org", ".", "~", "${DIR}", "target"] {
                assert_eq!(check(&File::new("docs/guide.md", &format!("{before}{root}x\n"))), []);
            }
        }
    }
}
