//! Invisible whitespace: carriage returns, tabs, trailing blanks, a missing final line break.

use super::Finding;
use super::file::File;

pub(super) fn check(file: &File) -> Vec<Finding> {
    let strict = file.has_extension(&["rs", "md", "toml"]);
    let mut found = Vec::new();
    // `str::lines` would remove the carriage returns.
    for (index, line) in file.text.split('\n').enumerate() {
        let mut find = |broken: bool, message: &str| {
            if broken {
                found.push(Finding::new(index + 1, message));
            }
        };
        let content = line.trim_end_matches('\r');
        find(content.len() < line.len(), "a carriage return ends the line; end lines with LF");
        find(strict && content.contains('\t'), "a tab; indent with spaces");
        find(strict && content.ends_with([' ', '\t']), "trailing whitespace; remove it");
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        found.push(Finding::new(file.text.lines().count(), "no line break at the end of the file; add one"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let first_word = |message: &str| message.split(';').next().unwrap().to_owned();
        let found = check(&File::new(path, text)).into_iter();
        found.map(|finding| (finding.line, first_word(&finding.message))).collect()
    }

    #[test]
    fn each_kind_is_found() {
        for (text, line, message) in [
            ("a\nb\r\nc\n", 2, "a carriage return ends the line"),
            ("a\n\tb\n", 2, "a tab"),
            ("a \nb\n", 1, "trailing whitespace"),
            ("a\nb", 2, "no line break at the end of the file"),
        ] {
            for path in ["a.rs", "b.md", "c.toml"] {
                assert_eq!(found(path, text), [(line, message.to_owned())], "{text:?}");
            }
        }
    }

    #[test]
    fn other_files_may_have_tabs_but_end_their_lines_alike() {
        assert_eq!(found("Makefile", "all:\n\tcc \n"), []);
        assert_eq!(found("deploy/unit.service", "a\r\nb").len(), 2);
        assert_eq!(found("empty", ""), []);
    }
}
