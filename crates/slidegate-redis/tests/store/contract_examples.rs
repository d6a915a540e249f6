//! The calls that the contracts of the scripts show work as they stand.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::printed::script;
use crate::common::*;
use slidegate_redis::scripts::{self, Script};

/// The calls in a contract, each on one line.
fn calls(script: &Script) -> Vec<String> {
    let contract = script.text.lines().take_while(|line| line.starts_with("--"));
    let text = contract.map(|line| line.trim_start_matches('-').trim()).collect::<Vec<_>>().join("\n");
    let text = text.replace("\\\n", "");
    text.lines().filter(|line| line.contains("redis-cli")).map(str::to_owned).collect()
}

/// Runs lines of a shell. `redis-cli` calls the server, and `slidegate redis script` prints the script.
fn shell(server: &RedisServer, script: &Script, place: &str, lines: &str) -> Vec<String> {
    let file = format!("contract-{}-{}.lua", server.port(), script.sha);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    fs::write(&file, script.text).unwrap();
    let program = format!(
        "redis-cli() {{ command redis-cli -p {} \"$@\"; }}\nslidegate() {{ cat '{}'; }}\n\
         sha=$(slidegate redis script {} | redis-cli -x script load)\nplace={place}\n{lines}\n",
        server.port(),
        file.display(),
        script.name
    );
    let output = Command::new("bash").args(["-c", &program]).output().expect("bash is there");
    fs::remove_file(&file).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{lines}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What a call of the contract replies after one `check`, which charged 5 of 60 units.
fn reply_after_a_check(verb: &str) -> (Vec<String>, Vec<String>) {
    let server = RedisServer::start();
    let charged = shell(&server, script("check"), "", &calls(script("check")).join("\n"));
    let reply = shell(&server, script(verb), &charged[4], &calls(script(verb)).join("\n"));
    (charged, reply)
}

#[test]
fn the_example_of_every_contract_works() {
    let (charged, checked) = reply_after_a_check("check");
    assert_eq!(charged[..4], ["1", "5", "0", "60000000"]);
    assert_eq!((charged[4].len(), checked[1].as_str()), (28, "10"));
    let expected: [(&str, &[(usize, &str)]); 7] = [
        ("peek", &[(0, "1"), (1, "5"), (2, "0"), (4, "")]),
        ("refund", &[(0, "1"), (3, "5")]),
        ("settle", &[(0, "1"), (3, "2")]),
        ("credit", &[(0, "1"), (3, "5")]),
        ("reset", &[(0, "1"), (3, "5")]),
        ("inspect", &[(2, "5")]),
        ("change", &[(0, "1")]),
    ];
    for (verb, items) in expected {
        let (_, reply) = reply_after_a_check(verb);
        for &(index, item) in items {
            assert_eq!(reply[index], item, "{verb}: {reply:?}");
        }
    }
}

#[test]
fn the_example_of_every_short_contract_works() {
    let server = RedisServer::start();
    for algorithm in slidegate::Algorithm::ALL {
        server.command(&["FLUSHALL"]);
        for (verb, used) in [("peek", "0"), ("check", "5"), ("peek", "5")] {
            let script = scripts::short(verb, algorithm.name()).unwrap();
            let reply = shell(&server, script, "", &calls(script).join("\n"));
            assert_eq!((reply[0].as_str(), reply[1].as_str()), ("1", used), "{verb} {algorithm}");
        }
    }
}
