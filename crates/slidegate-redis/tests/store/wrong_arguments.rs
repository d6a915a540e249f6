//! Wrong arguments of other programs are named, and nothing is charged.

use crate::common::*;
use redis::{Connection, Value};
use slidegate_redis::scripts;

/// Calls a script with keys and arguments; a space separates them, and `-` stands for an empty one.
fn call(connection: &mut Connection, verb: &str, keys: &str, args: &str) -> Result<Value, String> {
    let scripts = scripts::all();
    let script = scripts.iter().find(|script| script.name == verb).unwrap();
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace()
            .map(|word| if word == "-" { String::new() } else { word.to_owned() })
            .collect()
    };
    let (keys, args) = (words(keys), words(args));
    let mut eval = redis::cmd("EVAL");
    eval.arg(script.text).arg(keys.len()).arg(keys).arg(args);
    eval.query(connection).map_err(|error| error.to_string())
}

/// 28 hexadecimal digits.
const PLACE: &str = "0123456789abcdef0123456789AB";

/// A limit of 5 per minute.
const LOG: &str = "sliding-log 5 60000000";

/// Calls that a script refuses before it reads anything, each with a part of the error.
fn assert_refused(calls: &[(&str, &str, &str, &str)]) {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for &(verb, keys, args, text) in calls {
        let error = call(&mut connection, verb, keys, args).expect_err(args);
        assert!(error.contains("SLIDEGATE") && error.contains(" arguments: "), "{verb} {args}: {error}");
        assert!(error.contains(text) && !error.contains("user_script"), "{verb} {args}: {error}");
        assert_eq!(redis::cmd("DBSIZE").query::<u64>(&mut connection).unwrap(), 0, "{verb} {args}");
    }
}

#[test]
fn every_wrong_argument_of_a_check_is_named_with_its_remedy() {
    assert_refused(&[
        ("check", "", "- 7", "KEYS has 0 keys; give one key for every charge"),
        (
            "check",
            "k",
            "",
            "ARGV[1], the time in microseconds, is missing; give a whole number of at most 20 digits, or",
        ),
        ("check", "k", "now 7", "ARGV[1], the time in microseconds, is wrong; "),
        ("check", "k", "-", "ARGV[2], the nonce, is missing; give a whole number from 0 to 281474976710655"),
        ("check", "k", "- 281474976710656", "ARGV[2], the nonce, is wrong; "),
        ("check", "k", "- 7", "ARGV[3], the cost of a charge, is missing; "),
        ("check", "k", &format!("- 7 -5 {LOG}"), "ARGV[3], the cost of a charge, is wrong; "),
        ("check", "k", &format!("- 7 1.5 {LOG}"), "ARGV[3], the cost of a charge, is wrong; "),
        ("check", "k", &format!("- 7 0x10 {LOG}"), "ARGV[3], the cost of a charge, is wrong; "),
        ("check", "k", &format!("- 7 nan {LOG}"), "ARGV[3], the cost of a charge, is wrong; "),
        (
            "check",
            "k",
            "- 7 1 slidng-log 5 60000000",
            "ARGV[4], the form of a charge, is wrong; give the name",
        ),
        (
            "check",
            "k",
            "- 7 1 sliding-buckets 5 60000000",
            "is wrong; give a number from 1 to 4096 after the name",
        ),
        (
            "check",
            "k",
            "- 7 1 compact-log,3 5 60000000",
            "is wrong; give a number from 4 to 4096 after the name",
        ),
        ("check", "k", "- 7 1 gcra,60 5 60000000", "is wrong; this algorithm has the parameter 0"),
        (
            "check",
            "k",
            "- 7 1 sliding-buckets,60,half 5 60000000",
            "is wrong; give sliding-buckets the edge full, ",
        ),
        ("check", "k", "- 7 1 gcra,0,,17 5 60000000", "is wrong; give 1 to 16 limits, then `shadow`"),
        ("check", "k", "- 7 1 gcra,0,,1,shade 5 60000000", "is wrong; give 1 to 16 limits, then `shadow`"),
        (
            "check",
            "k",
            "- 7 1 sliding-log",
            "ARGV[5], the units of a limit, is missing; give a whole number from 1 to",
        ),
        ("check", "k", "- 7 1 sliding-log 0 60000000", "ARGV[5], the units of a limit, is wrong; "),
        (
            "check",
            "k",
            "- 7 1 sliding-log 5 1m",
            "ARGV[6], the window in microseconds, is wrong; give a whole number",
        ),
        ("check", "k", "- 7 1 sliding-log 5 34560000000001", "from 1 to 34560000000000"),
        (
            "check",
            "k",
            &format!("- 7 1 {LOG} 1 {LOG}"),
            "ARGV[7] follows the last charge; give one key for every",
        ),
        ("check", "k l", &format!("- 7 1 {LOG}"), "ARGV[7], the cost of a charge, is missing; "),
        (
            "check",
            "k",
            "- 7 1 sliding-log,0,,2 5 60000000 6",
            "ARGV[8], the window in microseconds, is missing; ",
        ),
        ("peek", "k", "- 7 1 sliding-log 5", "ARGV[6], the window in microseconds, is missing; "),
    ]);
}

#[test]
fn every_wrong_argument_of_the_other_verbs_is_named_with_its_remedy() {
    assert_refused(&[
        ("credit", "k l", &format!("- 7 1 {LOG}"), "KEYS has 2 keys; give one key and one charge"),
        ("credit", "k", &format!("- 7 -3 {LOG}"), "ARGV[3], the cost of a charge, is wrong; "),
        ("reset", "k", "- 7 0", "ARGV[4], the form of a charge, is missing; "),
        ("inspect", "k", "- 7 0 sliding-log 5", "ARGV[6], the window in microseconds, is missing; "),
        ("change", "", &format!("- 7 0 {LOG}"), "KEYS has 0 keys; give the keys of one rule"),
        ("change", "k l", &format!("- 7 0 {LOG} 1"), "ARGV[7] follows the last charge; "),
        ("refund", "k", "- 7", "KEYS has 1 keys; give one key for every charge, then the record"),
        ("refund", "k r", "- 7 soon", "ARGV[3], the seconds at which the receipt expires, is wrong; "),
        (
            "refund",
            "k r",
            &format!("- 7 1 0 1 0 1 {LOG} short"),
            "ARGV[11], the place of a charge, is wrong; ",
        ),
        (
            "refund",
            "k r",
            &format!("- 7 1 0 1 0 1 gcra 5 60000000 {PLACE}"),
            "ARGV[11], the place of a charge, is wrong",
        ),
        (
            "refund",
            "k r",
            &format!("- 7 1 0 1 0 1 {LOG} 0123456789abcdef0123456789ag"),
            "ARGV[11], the place of a charge, is wrong; give the 28 hexadecimal digits",
        ),
        ("refund", "k r", "- 7 - 1", "ARGV[4], the microseconds of that second, is wrong; give nothing"),
        ("refund", "k r", "- 7 1 -", "ARGV[4], the microseconds of that second, is wrong; give a whole"),
        ("refund", "k r", "- 7 1 1000000", "is wrong; give a whole number from 0 to 999999"),
        ("refund", "k r", "- 7 - - 1", "ARGV[6], the microseconds of that second, is missing; "),
        ("settle", "k r", "- 7 1 0 1 0 -1", "ARGV[7], the units really spent, is wrong; "),
        (
            "settle",
            "k r",
            &format!("- 7 1 0 1 0 83 2 {LOG} {PLACE}"),
            "ARGV[7], the units really spent, is wrong; give at most 82, the cost and 16 times the limit",
        ),
        (
            "settle",
            "k l r",
            &format!("- 7 1 0 1 0 3 2 {LOG} {PLACE} 1 {LOG} {PLACE}"),
            "ARGV[13], the cost of a charge, is wrong; settle charges of one cost",
        ),
        ("settle", "k r", &format!("- 7 1 0 1 0 - 1 {LOG}"), "ARGV[12], the place of a charge, is missing; "),
    ]);
}

#[test]
fn documented_arguments_are_accepted() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for form in [
        "sliding-log",
        "sliding-log,0",
        "sliding-log,0,,1,shadow",
        "sliding-log/sorted-set",
        "compact-log,64",
        "sliding-buckets,60",
        "sliding-buckets,60,dropped",
        "sliding-counter",
        "fixed-window",
        "gcra,0,,1",
    ] {
        let charge = format!("- 281474976710655 2 {form} 5 60000000");
        for (verb, key) in [
            ("check", "k"),
            ("peek", "k"),
            ("credit", "k"),
            ("inspect", "k"),
            ("change", "k"),
            ("reset", "k"),
        ] {
            call(&mut connection, verb, key, &charge)
                .unwrap_or_else(|error| panic!("{verb} {form}: {error}"));
        }
        if !form.starts_with("gcra") {
            for (verb, actual) in [("refund", ""), ("settle", "- "), ("settle", "3 ")] {
                let receipt = format!("- 7 1 0 1 0 {actual}2 {form} 5 60000000 {PLACE}");
                call(&mut connection, verb, "k r", &receipt)
                    .unwrap_or_else(|error| panic!("{verb} {form}: {error}"));
            }
        }
    }
}
