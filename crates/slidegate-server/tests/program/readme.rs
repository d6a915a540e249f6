//! The README shows what the program prints.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{file_of, fresh, output_of, run};

const README: &str = include_str!("../../../../README.md");

/// The block that begins with that fence after `heading`.
fn block(heading: &str, fence: &str) -> &'static str {
    let (_, after) = README.split_once(heading).expect("the heading is there");
    let (_, after) = after.split_once(&format!("\n```{fence}\n")).expect("the block begins");
    let (block, _) = after.split_once("```").expect("the block ends");
    block
}

#[test]
fn the_readme_shows_the_output_of_demo() {
    let shown = block("# slidegate", "text");
    let out = run(&["demo"], "").out;
    assert!(out.starts_with(shown), "README shows\n{shown}\nbut the program prints\n{out}");
}

#[test]
fn the_readme_shows_the_output_of_the_commands() {
    let typed = block("## From the command line", "console");
    let typed: Vec<&str> = typed.lines().map(|line| line.strip_prefix("$ ").expect("a prompt")).collect();
    let home = fresh("home");
    let programs = Path::new(env!("CARGO_BIN_EXE_slidegate")).parent().expect("in a directory").display();
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("HOME", &home).env("PATH", format!("{programs}:/usr/bin:/bin"));
    shell.args(["-c", &typed.join("\n")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = output_of(&mut shell);
    assert_eq!((run.out.as_str(), run.err.as_str()), (block("## From the command line", "text"), ""));
}

#[test]
fn the_readme_shows_the_output_of_replay() {
    let typed = block("`slidegate replay` asks", "console");
    let input = typed.split_once("<<'EOF'\n").expect("a here-document").1.trim_end_matches("EOF\n");
    let replayed = run(&["replay"], input);
    assert_eq!((replayed.code, replayed.out.as_str()), (0, block("`slidegate replay` asks", "json")));
}

#[test]
fn the_rules_of_the_readme_are_valid() {
    let rules = file_of("readme.yaml", block("## From the command line", "yaml"));
    let line = r#"{"at_us":1,"op":"inspect","rule":"yt-quota","key":"yt:quota:key1"}"#;
    let replayed = run(&["replay", "--config", &rules], line);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    assert_eq!(replayed.answers()[0]["limits"][0]["limit"], 9_500);
}
