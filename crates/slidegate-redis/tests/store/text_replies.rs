//! The replies of the scripts for other languages are text-safe, and their places go back into `refund` and `settle`.

use crate::common::printed::{call, form, script, texts};
use crate::common::*;
use redis::Connection;
use slidegate::Algorithm;

const KEYS: [&str; 2] = ["sg:{alice}:api", "sg:{alice}:narrow"];
const SPENT: [&str; 3] = ["sg:{alice}:api", "sg:{alice}:narrow", "sg:{alice}:api%spent:00c0ffee00c0ffee"];
const MINUTE_US: u64 = 60 * SECOND_US;
/// [`BOUNDARY_US`], at which nothing drains.
const NOW: &str = "1728000000000000";

/// Two charges of 5 units: the limits of the first, and one limit.
fn limits() -> [Vec<(u64, u64)>; 2] {
    [vec![(60, MINUTE_US), (600, 60 * MINUTE_US)], vec![(20, MINUTE_US)]]
}

/// The arguments of the two charges, after `first`; with the places of a reply to `check`, if given.
fn charges(algorithm: Algorithm, first: &[&str], cost: u64, reply: Option<&[String]>) -> Vec<String> {
    let mut args: Vec<String> = first.iter().map(|&text| text.to_owned()).collect();
    let mut places = reply.into_iter().flat_map(|reply| reply[4..].iter().step_by(4));
    for limits in limits() {
        args.extend([cost.to_string(), form(algorithm, limits.len())]);
        for (units, window_us) in limits {
            args.extend([units.to_string(), window_us.to_string()]);
            args.extend(places.next().cloned());
        }
    }
    args
}

/// The use of the first limit of each charge.
fn used(connection: &mut Connection, algorithm: Algorithm) -> [String; 2] {
    let reply = call(connection, script("peek"), &KEYS, &charges(algorithm, &[NOW, "7"], 0, None)).unwrap();
    let reply = texts(&reply);
    [reply[1].clone(), reply[9].clone()]
}

#[test]
fn a_refund_and_a_settlement_take_the_places_of_a_check() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for algorithm in every_algorithm() {
        for (verb, actual, rest) in
            [("refund", None, "0"), ("settle", Some("2"), "2"), ("settle", Some("9"), "9")]
        {
            server.command(&["FLUSHALL"]);
            let args = charges(algorithm, &[NOW, "4711"], 5, None);
            let checked = texts(&call(&mut connection, script("check"), &KEYS, &args).unwrap());
            assert_eq!((checked.len(), checked[0].as_str()), (13, "1"), "{algorithm}");
            for place in checked[4..].iter().step_by(4) {
                assert_eq!(
                    place.len(),
                    if algorithm == Algorithm::Gcra { 76 } else { 28 },
                    "{algorithm}: {place}"
                );
            }
            let mut first = vec![NOW, "4712", "", "", "", ""];
            first.extend(actual);
            let receipt = charges(algorithm, &first, 5, Some(&checked));
            let query = |connection: &mut Connection| {
                let first = [NOW, "4712", "", "", "", "", ""];
                let query = charges(algorithm, &first, 5, Some(&checked));
                texts(&call(connection, script("settle"), &SPENT, &query).unwrap())[0].clone()
            };
            assert_eq!(query(&mut connection), "1", "{algorithm}: it could be used");
            let present = |connection: &mut Connection| {
                let reply = texts(&call(connection, script(verb), &SPENT, &receipt).unwrap());
                (reply[0].clone(), reply[3].clone())
            };
            let (applied, units) = present(&mut connection);
            assert_eq!(applied, "1", "{algorithm} {verb}");
            assert_ne!(units, "0", "{algorithm} {verb}");
            assert_eq!(used(&mut connection, algorithm), [rest, rest], "{algorithm} {verb} {actual:?}");
            assert_eq!(present(&mut connection), ("0".to_owned(), "0".to_owned()), "{algorithm}: only once");
            assert_eq!(query(&mut connection), "0", "{algorithm}: it was used");
        }
    }
}

/// A receipt whose charges have expired is not accepted, and its expiry need not be given.
#[test]
fn the_expiry_of_a_receipt_follows_from_its_places() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for algorithm in every_algorithm() {
        server.command(&["FLUSHALL"]);
        let at = |at_us: u64| at_us.to_string();
        let args = charges(algorithm, &[&at(BOUNDARY_US), "4711"], 5, None);
        let checked = texts(&call(&mut connection, script("check"), &KEYS, &args).unwrap());
        // The longest reset_after of the reply: then nothing of the receipt is left.
        let expires_us =
            checked[3..].iter().step_by(4).map(|text| text.parse::<u64>().unwrap()).max().unwrap();
        for (after_us, applied) in [(expires_us, "0"), (expires_us - 1, "1")] {
            let now = at(BOUNDARY_US + after_us);
            let first = [now.as_str(), "4712", "", "", "", ""];
            let receipt = charges(algorithm, &first, 5, Some(&checked));
            let reply = texts(&call(&mut connection, script("refund"), &SPENT, &receipt).unwrap());
            assert_eq!(reply[0], applied, "{algorithm}, {after_us} us later");
            let seconds = ((BOUNDARY_US + after_us) / SECOND_US).to_string();
            assert_eq!(reply[1], seconds, "{algorithm}");
        }
    }
}

/// By the clock of Redis the record of a receipt lives as long as the receipt, and ten seconds.
#[test]
fn the_record_of_a_receipt_outlives_it_by_ten_seconds() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let algorithm = Algorithm::SlidingLog;
    let args = charges(algorithm, &["", "4711"], 5, None);
    let checked = texts(&call(&mut connection, script("check"), &KEYS, &args).unwrap());
    let receipt = charges(algorithm, &["", "4712", "", "", "", ""], 5, Some(&checked));
    call(&mut connection, script("refund"), &SPENT, &receipt).unwrap();
    let record_ms = ServerWatch::new(&server).pttl_ms(SPENT[2]);
    assert!((3_000_000..=3_610_000).contains(&record_ms), "{record_ms} ms");
}

/// A time above 2^53 us is decimal text, exact to the last digit.
#[test]
fn a_wide_time_is_decimal_text() {
    const UNITS: u64 = 1_000_000_000_000;
    const WINDOW_US: u64 = 34_560_000_000_000;
    let server = RedisServer::start();
    let mut connection = server.connection();
    let now = BOUNDARY_US.to_string();
    let charge = |cost: u64, units: u64| {
        [&now, "4711", &cost.to_string(), "gcra", &units.to_string(), &WINDOW_US.to_string()]
            .map(str::to_owned)
    };
    call(&mut connection, script("check"), &KEYS[..1], &charge(UNITS, UNITS)).unwrap();
    for units in [1, 7, 1_000, 4_000, 999_999_999_999] {
        call(&mut connection, script("change"), &KEYS[..1], &charge(0, units)).unwrap();
        let backlog = u128::from(UNITS) * u128::from(WINDOW_US);
        let (wait_us, reset_us) = (
            (backlog - u128::from(units - 1) * u128::from(WINDOW_US)).div_ceil(units.into()),
            backlog.div_ceil(units.into()),
        );
        let peeked = texts(&call(&mut connection, script("peek"), &KEYS[..1], &charge(1, units)).unwrap());
        assert_eq!(peeked[1..4], [UNITS.to_string(), wait_us.to_string(), reset_us.to_string()], "{units}");
        let inspected = call(&mut connection, script("inspect"), &KEYS[..1], &charge(0, units)).unwrap();
        assert_eq!(texts(&inspected)[2..], [UNITS.to_string(), reset_us.to_string()], "{units}");
        let is_text = matches!(inspected[3], redis::Value::BulkString(_));
        assert_eq!(is_text, reset_us >= 1 << 53, "{units}");
    }
}
