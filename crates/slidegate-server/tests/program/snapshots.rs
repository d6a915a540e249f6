//! Snapshots of every help text and every error, checked in under `tests/texts`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Run, command, fresh, output_of, scratch};

/// All commands and subcommands.
const COMMANDS: [&str; 19] = [
    "",
    "check",
    "peek",
    "reset",
    "run",
    "serve",
    "demo",
    "replay",
    "validate",
    "schema",
    "config",
    "config example",
    "redis",
    "redis script",
    "token",
    "completions",
    "man",
    "help",
    "help algorithms",
];

/// Runs a command line in an empty home directory, without environment and terminal.
fn run_line(line: &str) -> Run {
    let home = scratch("home");
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = command(&words);
    command.env_clear().env("HOME", &home).env("COLUMNS", "100").current_dir(&home);
    let mut run = output_of(&mut command);
    for text in [&mut run.out, &mut run.err] {
        *text = text.replace(&home.display().to_string(), "$HOME");
    }
    run
}

/// Splits a line into words as a shell does; understands single quotes only.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(ToOwned::to_owned));
        }
    }
    words
}

/// Compares a text with its snapshot.
fn assert_checked_in(name: &str, right: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts").join(name);
    if std::env::var_os("SLIDEGATE_WRITE_DOCS").is_some() {
        fs::create_dir_all(path.parent().expect("in a folder")).expect("the folder");
        fs::write(&path, right).expect("the text is written");
    }
    let snapshot = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        snapshot == right,
        "tests/texts/{name} is\n{snapshot}\nand should be\n{right}\n\
         `SLIDEGATE_WRITE_DOCS=1 cargo test -p slidegate-server snapshots` writes it"
    );
}

#[test]
fn help_texts_match_their_snapshots() {
    for name in COMMANDS {
        let file = if name.is_empty() { "slidegate".to_owned() } else { name.replace(' ', "-") };
        let topic = name.strip_prefix("help ").is_some();
        let mut text = String::new();
        for line in
            if topic { vec![name.to_owned()] } else { vec![format!("{name} -h"), format!("{name} --help")] }
        {
            let Run { code, out, err } = run_line(&line);
            assert_eq!((code, err.as_str()), (0, ""), "{line}");
            write!(text, "$ slidegate {}\n{out}", line.trim_start()).expect("memory");
        }
        assert_checked_in(&format!("help/{file}.txt"), &text);
    }
    for topic in ["keys", "exit-status"] {
        let Run { code, out, .. } = run_line(&format!("help {topic}"));
        assert_eq!(code, 0);
        assert_checked_in(&format!("help/help-{topic}.txt"), &format!("$ slidegate help {topic}\n{out}"));
    }
}

#[test]
fn every_command_is_listed_and_its_help_has_an_example() {
    let listed = run_line("--help").out;
    let listed = listed.split_once("Commands:\n").expect("a list").1.split_once("\n\n").expect("it ends").0;
    // Continuation lines are indented further.
    for line in listed.lines().filter(|line| !line.starts_with("   ")) {
        let name = line.split_whitespace().next().expect("a name");
        assert!(COMMANDS.contains(&name), "{name} has no checked-in help");
        let help = run_line(&format!("{name} --help")).out;
        assert!(help.contains(&format!("slidegate {name}")), "{name}: {help}");
        assert!(help.contains("Example"), "{name} has no example: {help}");
        assert_eq!(run_line(&format!("help {name}")).out, help, "{name}");
    }
}

#[test]
fn every_error_is_one_sentence_with_a_remedy_and_creates_no_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts/errors.txt");
    let snapshot = fs::read_to_string(&path).expect("the errors are checked in");
    let lines = snapshot.lines().filter_map(|line| line.strip_prefix("$ slidegate"));
    let mut right = String::new();
    for line in lines {
        let home = fresh("home");
        let Run { code, out, err } = run_line(line);
        writeln!(right, "$ slidegate{line}\n{out}{err}-> {code}\n").expect("memory");
        let json = line.split_whitespace().any(|word| word == "--json");
        let error = if json { &out } else { &err };
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
        let start = if json { "{\"error\":\"" } else { "error: " };
        assert!(error.starts_with(start) && (error.contains("; ") || error.contains('?')), "{line}: {error}");
        assert_eq!(if json { &err } else { &out }, "", "{line}");
        assert_eq!(code, if line.starts_with(" run") { 125 } else { 2 }, "{line}");
        let left: Vec<PathBuf> =
            fs::read_dir(&home).expect("it is there").map(|file| file.expect("a name").path()).collect();
        assert!(left.is_empty(), "{line} left {left:?}");
    }
    assert_checked_in("errors.txt", &right);
}
