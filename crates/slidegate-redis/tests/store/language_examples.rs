//! The examples in PHP, Python and Node run our script, and print the same lines: eight regions, one credential.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::common::server::free_port;
use crate::common::swallowing_proxy::SwallowingProxy;
use crate::common::*;
use slidegate_redis::scripts;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Of each of the two files of an example.
const LINES_MAX: usize = 120;
const REGIONS: [&str; 8] = ["US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"];

/// A language of an example.
#[derive(Debug, Clone, Copy)]
struct Language {
    name: &'static str,
    files: [&'static str; 2],
    program: fn() -> PathBuf,
    /// The start of the command, and the same without the client of Redis.
    command: fn() -> Vec<String>,
    bare_command: fn() -> Vec<String>,
    /// The reason for a refused connection.
    refused: &'static str,
    missing: &'static str,
}

const PHP: Language = Language {
    name: "php",
    files: ["Slidegate.php", "regions.php"],
    program: || example("php", "regions.php"),
    command: || vec!["php".into()],
    bare_command: || vec!["php".into(), "-n".into()],
    refused: "Connection refused",
    missing: "the extension redis is missing; on Debian `apt-get install php-redis` installs it",
};

const PYTHON: Language = Language {
    name: "python",
    files: ["slidegate.py", "regions.py"],
    program: || example("python", "regions.py"),
    command: || vec![python()],
    // Without the packages of its virtual environment.
    bare_command: || vec![python(), "-S".into()],
    refused: "Connection refused",
    missing: "the package redis is missing; `pip install redis` installs it",
};

const NODE: Language = Language {
    name: "node",
    files: ["slidegate.js", "regions.js"],
    program: || NODE_COPY.join("regions.js"),
    command: || vec!["node".into()],
    bare_command: || vec!["node".into()],
    refused: "connect ECONNREFUSED",
    missing: "the package ioredis is missing; `npm install` installs it",
};

fn example(language: &str, file: &str) -> PathBuf {
    Path::new(ROOT).join("examples").join(language).join(file)
}

/// The Python of the virtual environment that `cargo xtask test` fills.
fn python() -> String {
    let python = Path::new(ROOT).join("target/python/bin/python3");
    assert!(python.exists(), "{} is missing; `cargo xtask test` installs it", python.display());
    python.display().to_string()
}

/// A copy of the example of Node beside the packages that `cargo xtask test` installs: modules are searched upwards.
static NODE_COPY: LazyLock<PathBuf> = LazyLock::new(|| {
    let packages = Path::new(ROOT).join("target/node/node_modules");
    assert!(packages.join("ioredis").exists(), "ioredis is not installed; `cargo xtask test` installs it");
    copy_of_node(&packages.with_file_name("example"))
});

fn copy_of_node(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    for file in ["package.json", "slidegate.js", "regions.js"] {
        fs::copy(example("node", file), folder.join(file)).unwrap();
    }
    folder.to_owned()
}

/// The script as `slidegate redis script check` prints it.
static SCRIPT: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check.lua");
    fs::write(&path, scripts::CHECK.text).unwrap();
    path
});

/// The exit status of a job, the lines that it printed, and its error.
struct Job {
    code: i32,
    lines: Vec<String>,
    error: String,
}

fn run_job(words: &[String], program: &Path, port: u16) -> Job {
    let mut job = Command::new(&words[0]);
    job.args(&words[1..]).arg(program).env("REDIS_HOST", "127.0.0.1").env("REDIS_PORT", port.to_string());
    job.env("SLIDEGATE_CHECK_SCRIPT", &*SCRIPT).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = job.output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask test` installs it", words[0]));
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    Job { code: output.status.code().unwrap(), lines, error: String::from_utf8(output.stderr).unwrap() }
}

fn job(language: Language, port: u16) -> Job {
    run_job(&(language.command)(), &(language.program)(), port)
}

fn a_round_passes_and_the_next_stops_at_its_refusal(language: Language) {
    let server = RedisServer::start();
    let first = job(language, server.port());
    assert_eq!((first.code, first.error.as_str()), (0, ""), "{:#?}", first.lines);
    let expected = (1..).zip(REGIONS).flat_map(|(number, region)| {
        let (quota, search) = (9_500 - 101 * number + 100, 1_000 - 100 * number);
        [
            format!("{region} videos.list 1: allowed, {quota} of 9500 units left of yt-quota"),
            format!("{region} search.list 100: allowed, {search} of 1000 units left of yt-search"),
        ]
    });
    assert_eq!(first.lines, expected.collect::<Vec<_>>());

    // The next run finds the units that the first one spent, also without the script.
    server.command(&["SCRIPT", "FLUSH"]);
    let second = job(language, server.port());
    assert_eq!((second.code, second.error.as_str(), second.lines.len()), (1, "", 6), "{:#?}", second.lines);
    assert_eq!(second.lines[0], "US videos.list 1: allowed, 8691 of 9500 units left of yt-quota");
    assert_denied(&second.lines[5], "DE search.list 100");

    // Of the refused call the quota was not charged either: 808 + 203 units are used.
    let third = job(language, server.port());
    assert_eq!((third.code, third.lines.len()), (1, 2), "{:#?}", third.lines);
    assert_eq!(third.lines[0], "US videos.list 1: allowed, 8488 of 9500 units left of yt-quota");
}

/// The wait is that of the oldest search: ten minutes, less what has passed.
fn assert_denied(line: &str, call: &str) {
    let wait = line.strip_prefix(&format!("{call}: denied, 0 of 1000 units left of yt-search, retry in "));
    let (minutes, seconds) = wait.and_then(|wait| wait.strip_suffix('s')?.split_once('m')).expect(line);
    let wait_s = minutes.parse::<u64>().unwrap() * 60 + seconds.parse::<u64>().unwrap();
    assert!((1..=600).contains(&wait_s), "{line}");
}

/// Calls of one unit are made without Redis, calls of 100 units are not.
fn assert_made_by_the_outage_policy(job: &Job) {
    let expected = REGIONS.iter().flat_map(|region| {
        [
            format!("{region} videos.list 1: allowed without Redis"),
            format!("{region} search.list 100: not made without Redis"),
        ]
    });
    assert_eq!(job.lines, expected.collect::<Vec<_>>(), "{}", job.error);
    assert_eq!((job.code, job.error.lines().count()), (2, 1), "{}", job.error);
    assert!(job.error.starts_with("error: 8 calls were not made; Redis: "), "{}", job.error);
}

fn an_unreachable_redis_is_answered_by_the_policy_of_the_call(language: Language) {
    let refused = job(language, free_port());
    assert_made_by_the_outage_policy(&refused);
    assert!(refused.error.contains(language.refused), "{}", refused.error);
}

/// A call without a reply may have been charged, so no client sends it again.
fn a_redis_that_does_not_answer_is_answered_by_the_policy_of_the_call(language: Language) {
    let server = RedisServer::start();
    let proxy = SwallowingProxy::start(server.port());
    let job = job(language, proxy.port);
    assert_made_by_the_outage_policy(&job);
    // Each has its nonce: two equal calls are one that was sent again.
    let calls = proxy.swallowed.lock().unwrap();
    let distinct: BTreeSet<&Vec<u8>> = calls.iter().collect();
    assert!(!calls.is_empty() && distinct.len() == calls.len(), "{calls:?}: {}", job.error);
}

/// An error of Redis that is no mistake of the caller, and leaves nothing charged.
fn a_redis_that_refuses_to_write_is_answered_by_the_policy_of_the_call(language: Language) {
    let server = RedisServer::start_with(&["--replicaof", "127.0.0.1", "1"]);
    assert_made_by_the_outage_policy(&job(language, server.port()));
}

fn a_missing_client_is_one_sentence(language: Language) {
    let program = match language.name {
        "node" => copy_of_node(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-node")).join("regions.js"),
        _ => (language.program)(),
    };
    let bare = run_job(&(language.bare_command)(), &program, 1);
    assert_eq!((bare.code, bare.lines.len()), (2, 0), "{}", bare.error);
    assert_eq!(bare.error, format!("error: {}\n", language.missing));
}

fn the_readme_shows_the_output(language: Language) {
    let server = RedisServer::start();
    let (first, second) = (job(language, server.port()), job(language, server.port()));
    let readme = fs::read_to_string(example(language.name, "README.md")).unwrap();
    for line in &first.lines[..2] {
        assert!(readme.contains(line), "{line}");
    }
    let (refusal, _) = second.lines[5].split_once(", retry in ").unwrap();
    assert!(readme.contains(refusal), "{refusal}");
    for file in language.files {
        let lines = fs::read_to_string(example(language.name, file)).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{file}: {lines} lines");
    }
}

macro_rules! examples {
    ($($name:ident $language:ident,)+) => {
        $(mod $name {
            use super::$language;

            #[test]
            fn a_round_passes_and_the_next_stops_at_its_refusal() {
                super::a_round_passes_and_the_next_stops_at_its_refusal($language);
            }

            #[test]
            fn an_unreachable_redis_is_answered_by_the_policy_of_the_call() {
                super::an_unreachable_redis_is_answered_by_the_policy_of_the_call($language);
            }

            #[test]
            fn a_redis_that_does_not_answer_is_answered_by_the_policy_of_the_call() {
                super::a_redis_that_does_not_answer_is_answered_by_the_policy_of_the_call($language);
            }

            #[test]
            fn a_redis_that_refuses_to_write_is_answered_by_the_policy_of_the_call() {
                super::a_redis_that_refuses_to_write_is_answered_by_the_policy_of_the_call($language);
            }

            #[test]
            fn a_missing_client_is_one_sentence() {
                super::a_missing_client_is_one_sentence($language);
            }

            #[test]
            fn the_readme_shows_the_output() {
                super::the_readme_shows_the_output($language);
            }
        })+
    };
}

examples! {
    php PHP,
    python PYTHON,
    node NODE,
}
