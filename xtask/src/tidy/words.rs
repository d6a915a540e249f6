//! Marks of unfinished work, words about the process instead of the project, and old-fashioned words.

use super::Finding;
use super::file::File;
use super::symbols::contains_word;

const FINISH: &str = "finish it, or move it to the plan";
const RUN: &str = "a test that does not run proves nothing; fix it or delete it";
const PROJECT: &str = "write about the project alone";
const PLAIN: &str = "say it in a plain word";

/// A word and its remedy. Split, so that this table does not find itself.
const BANNED: &[(&str, &str)] = &[
    (concat!("TO", "DO"), FINISH),
    (concat!("FIX", "ME"), FINISH),
    (concat!("XX", "X"), FINISH),
    (concat!("to", "do!("), FINISH),
    (concat!("unimple", "mented!("), FINISH),
    (concat!("db", "g!("), "remove the debug output"),
    (concat!("#[ig", "nore"), RUN),
    (concat!("issue", " #"), PROJECT),
    (concat!("Issue", " #"), PROJECT),
    (concat!("Cla", "ude"), PROJECT),
    (concat!("Chat", "GPT"), PROJECT),
    (concat!("AI-", "generated"), PROJECT),
    (concat!("who", "ever"), PLAIN),
    (concat!("Who", "ever"), PLAIN),
    (concat!("which", "ever"), PLAIN),
    (concat!("some", "body"), PLAIN),
    (concat!("mis", "chief"), PLAIN),
    (concat!("me", "nd"), PLAIN),
    (concat!("me", "nded"), PLAIN),
    (concat!("me", "nding"), PLAIN),
    (concat!("de", "ar"), PLAIN),
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let on_line = |(line, text)| {
        let banned = BANNED.iter().filter(move |(word, _)| contains_word(text, word));
        banned.map(move |(word, remedy)| Finding::new(line, format!("`{word}`; {remedy}")))
    };
    file.lines().flat_map(on_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_code_and_in_prose() {
        for (word, remedy) in BANNED {
            for path in ["crates/slidegate/src/rate.rs", "README.md", "deploy/Dockerfile"] {
                let found = check(&File::new(path, &format!("fine\n// {word}: more\n")));
                assert_eq!(found, [Finding::new(2, format!("`{word}`; {remedy}"))], "{path}");
            }
        }
    }

    #[test]
    fn a_longer_word_is_another_word() {
        for (word, _) in &BANNED[..3] {
            assert_eq!(check(&File::new("README.md", &format!("{word}S\n"))), []);
        }
    }
}
