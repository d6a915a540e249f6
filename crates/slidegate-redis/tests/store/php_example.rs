//! The PHP example runs our script: eight regions, one credential.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::*;
use slidegate_redis::scripts;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/php");

/// Runs the job once: its exit status and what it printed.
fn job(server: &RedisServer, script: &Path) -> (i32, Vec<String>) {
    let mut php = Command::new("php");
    php.arg(format!("{EXAMPLE}/regions.php"));
    php.env("REDIS_HOST", "127.0.0.1").env("REDIS_PORT", server.port().to_string());
    php.env("SLIDEGATE_CHECK_SCRIPT", script);
    let output = php.output().expect("php is installed (Debian: `apt-get install php-cli php-redis`)");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let printed = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), printed.lines().map(str::to_owned).collect())
}

/// The script as `slidegate redis script check` prints it.
fn script() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check.lua");
    fs::write(&path, scripts::CHECK.text).unwrap();
    path
}

#[test]
fn eight_regions_stop_at_the_first_refusal() {
    let (server, script) = (RedisServer::start(), script());
    let (code, lines) = job(&server, &script);
    assert_eq!(code, 1, "{lines:#?}");
    assert_eq!(lines[0], "US videos.list 1: allowed, 9499 of 9500 units left of yt-quota");
    assert_eq!(lines[2], "US search.list 100: allowed, 400 of 500 units left of yt-search");
    assert_eq!(lines[14], "IN search.list 100: allowed, 0 of 500 units left of yt-search");
    // Five regions of 102 units, and the two cheap calls of the sixth.
    assert_eq!(lines[16], "BR channels.list 1: allowed, 8988 of 9500 units left of yt-quota");
    assert_eq!(lines.len(), 18, "the refusal is the last line: {lines:#?}");
    assert_denied(&lines[17], "BR search.list 100");

    // The next run finds the units that the first run spent, and not those of its refusal.
    let (code, lines) = job(&server, &script);
    assert_eq!(code, 1);
    assert_eq!(lines[0], "US videos.list 1: allowed, 8987 of 9500 units left of yt-quota");
    assert_denied(&lines[2], "US search.list 100");
}

/// The wait is that of the oldest search: ten minutes, less what has passed.
fn assert_denied(line: &str, call: &str) {
    let wait = line.strip_prefix(&format!("{call}: denied, 0 of 500 units left of yt-search, retry in "));
    let (minutes, seconds) = wait.and_then(|wait| wait.strip_suffix('s')?.split_once('m')).expect(line);
    let wait_s = minutes.parse::<u64>().unwrap() * 60 + seconds.parse::<u64>().unwrap();
    assert!((1..=600).contains(&wait_s), "{line}");
}

/// The example sends a flushed script again in the same call.
#[test]
fn the_example_goes_on_after_a_script_flush() {
    let (server, script) = (RedisServer::start(), script());
    job(&server, &script);
    server.command(&["SCRIPT", "FLUSH"]);
    let (code, lines) = job(&server, &script);
    assert_eq!((code, lines.len()), (1, 3), "{lines:#?}");
}

#[test]
fn the_readme_of_the_example_shows_its_output() {
    let (server, script) = (RedisServer::start(), script());
    let (_, lines) = job(&server, &script);
    let readme = fs::read_to_string(format!("{EXAMPLE}/README.md")).unwrap();
    for line in &lines[..3] {
        assert!(readme.contains(line), "{line}");
    }
    let (refusal, _) = lines[17].split_once(", retry in ").unwrap();
    assert!(readme.contains(refusal), "{refusal}");
}
