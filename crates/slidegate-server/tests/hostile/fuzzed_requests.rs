//! Valid requests after seeded mutations: in the body, the length, the chunks, the head, or a pipeline of them.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::json;

use crate::attack::{Attack, Plan};
use crate::client::{Client, request};
use crate::fuzzed_bodies::{Random, mutated};
use crate::observe::{check, grouped, stop};
use crate::program::file_of;
use crate::server_process::ServerProcess;
use crate::wire::{all_answers, first_answer};

pub(crate) const ATTACK: Attack = Attack {
    name: "fuzzed requests",
    holds: "each was answered or its connection closed, never by a 500; a limit that was attacked meanwhile was \
            used exactly; no forged receipt gave anything back",
    carry_out: attack,
};

const CONFIG: &str = "\
rules: { api: { limit: 5/1m }, search: { limits: [5/1s, 9/1h] }, guarded: { limit: 20/1d } }
inline_rules: true
";
const GUARDED_LIMIT: u64 = 20;
const THREADS: u64 = 4;
const JSON: (&str, &str) = ("content-type", "application/json");
const PATHS: &[&str] = &[
    "/v1/check",
    "/v1/check-batch",
    "/v1/peek",
    "/v1/explain",
    "/v1/refund",
    "/v1/settle",
    "/v1/credit",
    "/v1/reset",
    "/v1/keys/api/alice",
    "/v1/rlaas/alice",
    "/v1/rules",
    "/v1/top",
    "/metrics",
    "/readyz?verbose",
    "/no/such/path",
];

fn attack(plan: &Plan) -> String {
    let count = plan.size(2_000, 50_000);
    let server = ServerProcess::start(&["--config", &file_of("rules.yaml", CONFIG)]);
    let (admitted, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let seeds = plan.seed..plan.seed + count;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (seeds, address) = (seeds.start + thread..seeds.end, server.address);
            let (admitted, answered) = (&admitted, &answered);
            scope.spawn(move || {
                let (admissions, answers) = send_fuzzed(address, seeds);
                admitted.fetch_add(admissions, Ordering::Relaxed);
                answered.fetch_add(answers, Ordering::Relaxed);
            });
        }
    });
    let (admitted, answered) = (admitted.into_inner(), answered.into_inner());
    assert_eq!(admitted, GUARDED_LIMIT, "units of the limit that was attacked meanwhile");
    assert!(answered > count / 2, "{answered} of {count} requests had answers: this tests too little");
    assert_eq!(server.ask("GET", "/livez", "").status, 200);
    stop(server);
    format!("{} requests, {} answers", grouped(count), grouped(answered))
}

/// Sends every [`THREADS`]th request. Returns the admissions by the guarded rule, and the answers to fuzzed requests.
fn send_fuzzed(address: SocketAddr, seeds: Range<u64>) -> (u64, u64) {
    let mut client = Client::connect(address).expect("it accepts");
    let (mut admissions, mut answered) = (0, 0);
    let mut receipt = None;
    for (number, seed) in seeds.step_by(usize::try_from(THREADS).expect("few")).enumerate() {
        let mut random = Random::new(seed);
        let bytes = fuzzed(&mut random);
        let shown = || format!("seed {seed}: {}", String::from_utf8_lossy(&bytes));
        let answers = all_answers(address, &bytes).unwrap_or_else(|| panic!("no answer; {}", shown()));
        let mut rest = &answers[..];
        while let Some((status, len)) = first_answer(rest) {
            assert!(status != 500, "{}\n{}", shown(), String::from_utf8_lossy(rest));
            (rest, answered) = (&rest[len..], answered + 1);
        }
        if number % 20 == 0 {
            let answer = check(&mut client, "guarded", "alice");
            assert!(matches!(answer.status, 200 | 429), "{answer:?}");
            admissions += u64::from(answer.status == 200);
            receipt = receipt.or(answer.json()["receipt"].as_str().map(ToOwned::to_owned));
        }
        if let Some(receipt) = &receipt {
            let forged = json!({ "receipt": forged(receipt, &mut random) }).to_string();
            let answer = client.ask("POST", "/v1/refund", &forged);
            assert!((400..500).contains(&answer.status), "seed {seed}: {forged} {answer:?}");
        }
    }
    (admissions, answered)
}

/// The receipt with one character changed.
fn forged(receipt: &str, random: &mut Random) -> String {
    let mut characters: Vec<u8> = receipt.bytes().collect();
    let at = random.below(characters.len());
    characters[at] = if characters[at] == b'A' { b'B' } else { b'A' };
    String::from_utf8(characters).expect("receipts are ASCII")
}

fn fuzzed(random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(8) {
        0 => wrong_length(random),
        1 => chunked(random),
        2 => (0..=random.below(20)).flat_map(|_| plain(random)).collect(),
        _ => plain(random),
    };
    if random.below(3) == 0 {
        damage(&mut bytes, random);
    }
    bytes
}

fn plain(random: &mut Random) -> Vec<u8> {
    let method = ["POST", "POST", "POST", "GET", "HEAD", "BREW"][random.below(6)];
    request(method, PATHS[random.below(PATHS.len())], &[JSON], &body(random))
}

fn body(random: &mut Random) -> Vec<u8> {
    let digits = "9".repeat(random.below(400) + 1);
    match random.below(12) {
        0 => ["[", "{\"checks\":["][random.below(2)].repeat(random.below(10_000)).into_bytes(),
        1 => format!(r#"{{"rule":"api","key":"alice","cost":{digits}}}"#).into_bytes(),
        2 => format!(r#"{{"rule":{{"limit":"{digits}/1m"}},"key":"{digits}"}}"#).into_bytes(),
        3 => (0..random.below(200)).map(|_| u8::try_from(random.below(256)).expect("a byte")).collect(),
        _ => mutated(random),
    }
}

/// A length that is not that of the body, or several.
fn wrong_length(random: &mut Random) -> Vec<u8> {
    let body = body(random);
    let lengths = [
        "0",
        "1",
        "-1",
        "+5",
        "5, 5",
        "0x10",
        "99999999999999999999",
        "1000000",
        "",
        "5\r\ncontent-length: 6",
    ];
    let length = lengths[random.below(lengths.len())];
    let path = PATHS[random.below(PATHS.len())];
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), &body].concat()
}

/// A body in chunks, whose sizes may be wrong.
fn chunked(random: &mut Random) -> Vec<u8> {
    let body = body(random);
    let path = PATHS[random.below(PATHS.len())];
    let encoding = ["chunked", "chunked", "gzip, chunked", "chunked, gzip"][random.below(4)];
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: {encoding}\r\n\r\n");
    let mut bytes = head.into_bytes();
    for chunk in body.chunks(random.below(100) + 1) {
        let size = chunk.len() + usize::from(random.below(50) == 0) * random.below(1 << 30);
        bytes.extend(format!("{size:x}\r\n").bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Flips, cuts, repeats or inserts bytes anywhere, also in the head.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let end = (at + random.below(40)).min(bytes.len());
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => bytes.extend_from_within(at..end),
            _ => drop(bytes.splice(at..end, [0xff, b'\r', b'\n', 0])),
        }
    }
}
