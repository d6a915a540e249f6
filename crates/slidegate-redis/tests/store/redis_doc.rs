//! The commands in docs/redis.md work, and their replies are as documented.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::*;
use slidegate::Charge;
use slidegate::store::{Call, Store, Update};
use slidegate_redis::{LogLayout, RedisStore, scripts};

const PAGE: &str = include_str!("../../../../docs/redis.md");

/// The two lists of permissions: of every store, and of sorted sets in addition.
fn permissions() -> [Vec<&'static str>; 2] {
    let (_, paragraph) = PAGE.split_once("**Permissions.**").expect("a paragraph about permissions");
    let spans = paragraph.split('`').skip(1).step_by(2);
    let mut lists = spans.filter(|span| span.starts_with('+')).map(|list| list.split_whitespace().collect());
    [lists.next().expect("a list"), lists.next().expect("a second list")]
}

/// Every verb with every algorithm of the layout, starting without loaded scripts.
async fn every_verb(server: &RedisServer, layout: LogLayout) -> Result<(), String> {
    #[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
    fn text(error: impl ToString) -> String {
        error.to_string()
    }
    server.command(&["FLUSHALL"]);
    server.command(&["SCRIPT", "FLUSH"]);
    let url = format!("redis://limiter:sesame@127.0.0.1:{}", server.port());
    let options = options(&url).connections(1).unwrap().log_layout(layout);
    let store = RedisStore::connect_with(&options).await.map_err(text)?;
    for algorithm in algorithms_of(layout) {
        let (rule, longer) =
            (rule("api", &["900/1h"], algorithm), rule("api", &["900/1h", "900/2h"], algorithm));
        let mut receipts = Vec::new();
        for cost in [1; 80].into_iter().chain([5, 6]) {
            receipts.push(ask(&store, Call::now(), &rule, cost).await.map_err(text)?.receipt().unwrap());
        }
        ask(&store, Call::now(), &rule, 900).await.map_err(text)?;
        store.peek(Call::now(), &admission(&[(&rule, "alice", 1)])).await.map_err(text)?;
        store.update(Call::now(), Update::Refund(&receipts[80])).await.map_err(text)?;
        store.update(Call::now(), Update::Settle(&receipts[81], 1)).await.map_err(text)?;
        store.update(Call::now(), Update::Settle(&receipts[2], 3)).await.map_err(text)?;
        store.update(Call::now(), Update::Credit(Charge::new(&rule, key("alice"), 3))).await.map_err(text)?;
        store.inspect(Call::now(), &rule, key("alice")).await.map_err(text)?;
        store.change(Call::now(), &longer).await.map_err(text)?;
        store.update(Call::now(), Update::Reset(&longer, key("alice"))).await.map_err(text)?;
    }
    Ok(())
}

fn allow(server: &RedisServer, permissions: &[&str]) {
    let user = ["ACL", "SETUSER", "limiter", "reset", "on", ">sesame", "~sg:*"];
    server.command(&[&user, permissions].concat());
}

/// The permissions of the page suffice, and none of them is superfluous.
#[test]
fn permissions_are_as_documented() {
    let server = RedisServer::start();
    let [all, sorted] = permissions();
    let both = [&all[..], &sorted[..]].concat();
    run(async {
        for (layout, needed) in [(LogLayout::Packed, &all), (LogLayout::SortedSet, &both)] {
            allow(&server, needed);
            every_verb(&server, layout).await.unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        }
        for (layout, needed, each) in
            [(LogLayout::Packed, &all, &all), (LogLayout::SortedSet, &both, &sorted)]
        {
            for without in each {
                let rest: Vec<&str> = needed.iter().copied().filter(|other| other != without).collect();
                allow(&server, &rest);
                assert!(every_verb(&server, layout).await.is_err(), "{layout:?} does without {without}");
            }
        }
    });
}

/// Runs the session with redis-cli: its replies equal those of the page, except where the page abbreviates.
#[test]
fn the_session_with_redis_cli_is_as_documented() {
    let server = RedisServer::start();
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("session.lua");
    fs::write(&script, scripts::CHECK.text).unwrap();
    let (_, session) = PAGE.split_once("```console\n").expect("a session");
    let (session, _) = session.split_once("```").expect("its end");
    let mut steps = session.split("$ redis-cli ").skip(1).map(|step| step.split_once('\n').unwrap());
    let cli = |arguments: &str| -> Vec<String> {
        let arguments =
            arguments.replace("slidegate redis script check", &format!("cat {}", script.display()));
        let line = format!("redis-cli --no-raw -p {} {arguments}", server.port());
        let output = Command::new("sh").arg("-c").arg(&line).output().expect("redis-cli is installed");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };

    let (load, shown) = steps.next().unwrap();
    let sha = cli(load).remove(0);
    let shown = shown.trim_end().trim_matches('"');
    assert!(sha.trim_matches('"').len() == 40 && shown.ends_with("..."), "{sha}, shown as {shown}");

    let (evaluate, shown) = steps.next().unwrap();
    let answer = cli(&evaluate.replace(shown_sha(evaluate), sha.trim_matches('"')));
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(answer.len(), shown.len(), "{answer:#?}");
    for (line, shown) in answer.iter().zip(shown) {
        match shown.strip_suffix("...\"") {
            Some(begins) => assert!(line.starts_with(begins) && line.len() > shown.len(), "{line}"),
            None => assert_eq!(line, shown),
        }
    }
    assert!(steps.next().is_none());
}

fn shown_sha(line: &str) -> &str {
    line.split(' ').find(|word| word.ends_with("...")).expect("a shortened name of the script")
}
