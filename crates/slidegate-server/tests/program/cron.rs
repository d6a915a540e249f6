//! `examples/cron`: all eight lines of the crontab at once, with a fake upstream that records the calls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{command, fresh, output_of, run};

const REGIONS: [&str; 8] = ["US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"];

/// A fake upstream that records its calls; a search finds more videos than there are units.
const UPSTREAM: &str = r#"#!/bin/sh
echo "$1 $2" >> "$NOTES"
if [ "$1" = search ]; then
    number=0
    while [ $number -lt 400 ]; do
        echo "$2-$number"
        number=$((number + 1))
    done
fi
"#;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cron")
}

/// The variables and the commands of the crontab.
fn crontab() -> (BTreeMap<String, String>, Vec<String>) {
    let text = fs::read_to_string(example().join("crontab")).expect("the crontab");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut variables, mut commands) = (BTreeMap::new(), Vec::new());
    for line in lines {
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            let mut rest = line;
            for _ in 0..5 {
                rest = rest.split_once(' ').expect("five fields of time").1.trim_start();
            }
            commands.push(rest.to_owned());
        } else {
            let (name, value) = line.split_once('=').expect("a variable");
            variables.insert(name.to_owned(), value.to_owned());
        }
    }
    (variables, commands)
}

#[test]
fn the_crontab_has_one_line_per_region_and_the_documented_limits() {
    let (variables, commands) = crontab();
    assert_eq!((variables["KEY"].as_str(), variables["QUOTA"].as_str()), ("yt:quota:key1", "9500/24h"));
    let regions: Vec<&str> = commands.iter().map(|line| line.rsplit(' ').next().expect("a word")).collect();
    assert_eq!(regions, REGIONS);
    for line in &commands {
        assert!(line.contains("--cost 100 --also $SEARCHES"), "{line}");
    }
}

#[test]
fn eight_concurrent_jobs_spend_exactly_the_quota() {
    let home = fresh("home");
    let (upstream, notes) = (home.join("fetch-youtube"), home.join("notes"));
    fs::write(&upstream, UPSTREAM).expect("an upstream");
    fs::set_permissions(&upstream, fs::Permissions::from_mode(0o755)).expect("it may be executed");
    let programs = Path::new(env!("CARGO_BIN_EXE_slidegate")).parent().expect("in a directory").display();
    let path = format!("{programs}:{}:/usr/bin:/bin", example().display());
    let (mut variables, commands) = crontab();
    // Long enough for a busy disk.
    let store = format!("sqlite:{}?deadline=2m", home.join("state.db").display());
    // Fewer units than in the crontab, so that the test takes seconds.
    for (name, value) in [
        ("SLIDEGATE_STORE", store.as_str()),
        ("PATH", path.as_str()),
        ("QUOTA", "320/24h"),
        ("SEARCHES", "yt:search:key1=200/10m"),
        ("FETCH", upstream.to_str().expect("text")),
        ("HOME", home.to_str().expect("text")),
        ("NOTES", notes.to_str().expect("text")),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    let start = |line: &String| {
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().envs(&variables).args(["-c", line]);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
    };
    let jobs: Vec<Child> = commands.iter().map(start).collect();
    let mut ran = 0;
    for job in jobs {
        let output = job.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => ran += 1,
            Some(75) => {}
            other => panic!("{other:?}: {stderr}"),
        }
        assert_eq!((stderr.as_str(), output.stdout.len()), ("", 0), "cron would send a mail");
    }
    let calls = fs::read_to_string(&notes).expect("notes");
    let count = |what: &str| calls.lines().filter(|line| line.starts_with(what)).count();
    let (searches, videos) = (count("search "), count("video "));
    assert_eq!(searches, ran, "refused jobs do not run");
    assert!(
        (1..=2).contains(&searches),
        "the narrower limit admits two, and the quota may be spent before the second"
    );
    assert_eq!(100 * searches + videos, 320, "{searches} searches, {videos} videos");
    let variables = variables.iter().filter(|(name, _)| *name == "SLIDEGATE_STORE");
    let peek = ["peek", "yt:quota:key1", "--limit", "320/24h", "--json"];
    let peeked = output_of(command(&peek).env_clear().envs(variables));
    assert!(peeked.out.contains(r#""used":320,"remaining":0,"#), "{}", peeked.out);
    assert_eq!(peeked.code, 1);
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    let readme = fs::read_to_string(example().join("README.md")).expect("the page");
    let (_, console) = readme.split_once("```console\n").expect("a console");
    let (console, _) = console.split_once("```").expect("it ends");
    let typed: Vec<&str> = console.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let home = fresh("home");
    let programs = Path::new(env!("CARGO_BIN_EXE_slidegate")).parent().expect("in a directory").display();
    let mut shell = Command::new("/bin/sh");
    shell
        .env_clear()
        .env("HOME", &home)
        .env("PATH", format!("{programs}:/usr/bin:/bin"))
        .current_dir(example());
    let output =
        output_of(shell.args(["-c", &typed.join("\n")]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let shown: Vec<&str> = console.lines().filter(|line| !line.starts_with("$ ")).collect();
    assert_eq!(output.out.lines().last(), shown.last().copied(), "{}", output.err);
    assert_eq!(run(&["--version"], "").code, 0);
}
