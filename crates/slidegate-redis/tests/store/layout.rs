//! The bytes of a value are those that docs/redis.md describes.

use redis::Value;
use slidegate::Algorithm;
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::{Call, Store, Update};
use slidegate_redis::LogLayout;

use crate::common::*;

const WINDOW_US: u64 = 10 * SECOND_US;
/// Logs store stamps modulo 2^28 seconds.
const CYCLE_US: u64 = SECOND_US << 28;

/// Reads a value from its front.
struct Bytes(std::vec::IntoIter<u8>);

impl Bytes {
    fn of(watch: &mut ServerWatch, key: &str) -> Self {
        let Value::BulkString(value) = watch.command(&["GET", key]) else { panic!("{key}: a string") };
        Self(value.into_iter())
    }

    fn number(&mut self, bytes: usize) -> u64 {
        assert!(self.0.len() >= bytes, "{} bytes are left, not {bytes}", self.0.len());
        self.0.by_ref().take(bytes).fold(0, |number, byte| number << 8 | u64::from(byte))
    }

    fn numbers<const N: usize>(&mut self, widths: &[usize; N]) -> [u64; N] {
        widths.map(|bytes| self.number(bytes))
    }

    fn instant_us(&mut self) -> u64 {
        self.number(5) * SECOND_US + self.number(3)
    }

    /// Checks the head of a value with one limit of 100/10s. Returns the length of its body.
    fn head(&mut self, code: u64, parameter: u64) -> u64 {
        assert_eq!(self.numbers(&[2, 1, 1]), [u64::from_be_bytes(*b"\0\0\0\0\0\0SG"), 1, 1]);
        assert_eq!(self.numbers(&[1, 2, 6, 5]), [code, parameter, WINDOW_US, 100]);
        assert!(self.number(6) > 0, "a generation is drawn");
        self.number(4)
    }

    fn end(self) {
        assert_eq!(self.0.len(), 0, "nothing follows");
    }
}

/// The value of a key after charges: microseconds after the boundary, and units.
async fn charged(layout: LogLayout, algorithm: Algorithm, charges: &[(u64, u64)]) -> (RedisServer, Bytes) {
    let server = RedisServer::start();
    let store = prefixed(&server.url(), "sg", layout).await;
    let rule = rule("api", &["100/10s"], algorithm);
    for &(after_us, cost) in charges {
        check(&store, Call::at_us(BOUNDARY_US + after_us), &rule, cost).await;
    }
    let name = match layout {
        LogLayout::Packed => "sg:{alice}:api",
        LogLayout::SortedSet => "sg:{alice}:api%state",
    };
    let value = Bytes::of(&mut ServerWatch::new(&server), name);
    (server, value)
}

const THREE: &[(u64, u64)] = &[(0, 1), (1, 2), (2, 3)];

#[test]
fn windows_are_as_documented() {
    run(async {
        let charges = [THREE, &[(WINDOW_US + 1, 4)]].concat();
        let (_server, mut value) = charged(LogLayout::Packed, Algorithm::FixedWindow, &charges).await;
        assert_eq!(value.head(5, 0), 15);
        assert_eq!((value.instant_us(), value.number(7)), (BOUNDARY_US + WINDOW_US, 4));
        value.end();
        let (_server, mut value) = charged(LogLayout::Packed, Algorithm::SlidingCounter, &charges).await;
        assert_eq!(value.head(4, 0), 22);
        assert_eq!(value.instant_us(), BOUNDARY_US + WINDOW_US);
        assert_eq!(value.numbers(&[7, 7]), [6, 4], "the window before, and its own");
        value.end();
    });
}

#[test]
fn backlogs_are_as_documented() {
    run(async {
        let (_server, mut value) = charged(LogLayout::Packed, Algorithm::Gcra, THREE).await;
        assert_eq!(value.head(6, 0), 27);
        assert_eq!(value.instant_us(), BOUNDARY_US + 2);
        // A unit is a window of backlog, and 100 units drain per window.
        assert_eq!(value.numbers(&[6, 6, 7]), [0, 6 * WINDOW_US - 2 * 100, 0]);
        value.end();
    });
}

#[test]
fn buckets_are_as_documented() {
    for (edge, code) in [(Edge::Full, 3), (Edge::Interpolated, 3 + 16), (Edge::Dropped, 3 + 32)] {
        let algorithm = Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), edge);
        let charges = [THREE, &[(SECOND_US, 4)]].concat();
        let (_server, mut value) = run(charged(LogLayout::Packed, algorithm, &charges));
        let body_bytes = value.head(code, 10);
        assert_eq!(value.instant_us(), BOUNDARY_US + SECOND_US);
        let [sum, width, count] = value.numbers(&[7, 1, 2]);
        assert_eq!((sum, width, body_bytes), (10, 1, 18 + count));
        let counters: Vec<u64> = (0..count).map(|_| value.number(1)).collect();
        assert_eq!(counters[counters.len() - 2..], [6, 4], "{edge:?}: the newest last");
        assert_eq!(counters.iter().sum::<u64>(), 10);
        value.end();
    }
}

#[test]
fn logs_are_as_documented() {
    run(async {
        let (_server, mut value) = charged(LogLayout::Packed, Algorithm::SlidingLog, THREE).await;
        assert_eq!(value.head(1, 0), 27 + 3 * (6 + 2));
        assert_eq!(value.instant_us(), BOUNDARY_US + 2);
        assert_eq!(value.numbers(&[7, 7, 4, 1]), [0, 6, 3, 2]);
        for (after_us, total) in [(0, 1), (1, 3), (2, 6)] {
            assert_eq!(value.numbers(&[6, 2]), [(BOUNDARY_US + after_us) % CYCLE_US, total]);
        }
        value.end();

        let compact = Algorithm::CompactLog(Entries::new(4).unwrap());
        let (_server, mut value) = charged(LogLayout::Packed, compact, THREE).await;
        assert_eq!(value.head(2, 4), 26 + 3 * (6 + 2));
        assert_eq!((value.instant_us(), value.instant_us()), (BOUNDARY_US + 2, 0), "charged, credited");
        assert_eq!(value.numbers(&[7, 2, 1]), [6, 3, 2]);
        for &(after_us, cost) in THREE {
            assert_eq!(value.numbers(&[6, 2]), [(BOUNDARY_US + after_us) % CYCLE_US, 2 * cost]);
        }
        value.end();
        // A fifth entry is one too many: neighbours are merged and marked.
        let five = [THREE, &[(SECOND_US, 4), (2 * SECOND_US, 5)]].concat();
        let (_server, mut value) = charged(LogLayout::Packed, compact, &five).await;
        let body_bytes = value.head(2, 4);
        value.numbers(&[8, 8]);
        let [units, count, width] = value.numbers(&[7, 2, 1]);
        assert_eq!((units, width, body_bytes), (15, 2, 26 + count * (6 + 2)));
        let entries: Vec<[u64; 2]> = (0..count).map(|_| value.numbers(&[6, 2])).collect();
        assert_eq!(entries.iter().map(|[_, twice]| twice / 2).sum::<u64>(), 15);
        assert!(count <= 4 && entries.iter().any(|[_, twice]| twice % 2 == 1), "{entries:?}");
        value.end();
    });
}

/// Requests of one microsecond share an entry, and widths follow the limit.
#[test]
fn entries_are_as_documented() {
    run(async {
        let together = [(0, 1), (0, 2), (0, 3)];
        let (server, mut value) = charged(LogLayout::Packed, Algorithm::SlidingLog, &together).await;
        assert_eq!(value.head(1, 0), 27 + 6 + 2);
        let store = store(&server.url()).await;
        let mut watch = ServerWatch::new(&server);
        for (units, width) in [(65_535_u64, 2), (65_536, 4), (4_294_967_295, 4), (4_294_967_296, 7)] {
            let name = format!("to-{units}");
            let rule = rule(&name, &[&format!("{units}/10s")], Algorithm::SlidingLog);
            check(&store, Call::at_us(BOUNDARY_US), &rule, 1).await;
            let mut value = Bytes::of(&mut watch, &format!("sg:{{alice}}:{name}"));
            value.numbers(&[4, 8, 6, 6]);
            assert_eq!(value.numbers(&[4, 8, 7, 7, 4, 1])[5], width, "{units}");
        }
    });
}

#[test]
fn long_logs_are_as_documented() {
    run(async {
        let mut entries: Vec<(u64, u64)> = (0..70).map(|after_us| (after_us, after_us + 1)).collect();
        let mut charges: Vec<(u64, u64)> = entries.iter().map(|&(after_us, _)| (after_us, 1)).collect();
        let (_server, value) = charged(LogLayout::Packed, Algorithm::SlidingLog, &charges).await;
        assert_ring(value, 0, &entries);
        // Eleven entries have left, and one of five units is new: only its slot is written.
        charges.push((WINDOW_US + 10, 5));
        entries.push((WINDOW_US + 10, 75));
        let (_server, value) = charged(LogLayout::Packed, Algorithm::SlidingLog, &charges).await;
        assert_ring(value, 11, &entries[11..]);
    });
}

/// A ring with those entries: microseconds after the boundary, and the running total, which was `before` before them.
fn assert_ring(mut value: Bytes, before: u64, entries: &[(u64, u64)]) {
    let as_kept = |(after_us, total): (u64, u64)| [(BOUNDARY_US + after_us) % CYCLE_US, total];
    let (newest_us, total) = entries[entries.len() - 1];
    assert_eq!(value.head(1, 0), 48);
    assert_eq!(value.instant_us(), BOUNDARY_US + newest_us);
    assert_eq!(value.numbers(&[7, 7, 4, 1]), [before, total, entries.len() as u64, 128 + 2]);
    let [first, slots] = value.numbers(&[4, 4]).map(|number| usize::try_from(number).unwrap());
    assert_eq!(value.numbers(&[6, 7]), as_kept(entries[0]), "the oldest once more");
    let ring: Vec<[u64; 2]> = (0..slots).map(|_| value.numbers(&[6, 2])).collect();
    value.end();
    for (number, &entry) in entries.iter().enumerate() {
        assert_eq!(ring[(first + number) % slots], as_kept(entry), "entry {number}");
    }
}

#[test]
fn sorted_sets_are_as_documented() {
    run(async {
        let (server, mut value) = charged(LogLayout::SortedSet, Algorithm::SlidingLog, THREE).await;
        assert_eq!(value.head(7, 0), 8);
        assert_eq!(value.instant_us(), BOUNDARY_US + 2);
        value.end();
        let mut watch = ServerWatch::new(&server);
        assert_eq!(watch.keys(), ["sg:{alice}:api", "sg:{alice}:api%state"]);
        let members = watch.command(&["ZRANGE", "sg:{alice}:api", "0", "-1", "WITHSCORES"]);
        let members: Vec<(String, u64)> = redis::from_redis_value(members).unwrap();
        let scores: Vec<u64> = members.iter().map(|(_, score)| score - BOUNDARY_US).collect();
        assert_eq!(scores, [0, 1, 1, 2, 2, 2]);
        for ((name, _), unit) in members.iter().zip([1, 1, 2, 1, 2, 3]) {
            let (drawn, number) = name.split_once(':').unwrap();
            assert!(drawn.parse::<u64>().unwrap() < 1 << 48, "{name}");
            assert_eq!(number, unit.to_string(), "{name}");
        }
    });
}

/// The names of keys, with special characters.
#[test]
fn keys_are_named_as_documented() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let store = store(&server.url()).await;
        let rule = rule("api", &["50/10s"], Algorithm::SlidingLog);
        for (name, escaped) in [
            ("alice", "sg:{alice}:api"),
            ("yt:quota:key1", "sg:{yt:quota:key1}:api"),
            ("{a}%{b}}{", "sg:{%7Ba%7D%25%7Bb%7D%7D%7B}:api"),
            ("käse *?[x]\\ \"q\"", "sg:{käse *?[x]\\ \"q\"}:api"),
        ] {
            watch.command(&["FLUSHALL"]);
            let request = admission(&[(&rule, name, 1)]);
            let receipt = store.check(Call::now(), &request).await.unwrap().receipt();
            assert_eq!(watch.keys(), [escaped]);
            store.update(Call::now(), Update::Refund(&receipt.unwrap())).await.unwrap();
            let spent = watch.keys().into_iter().find(|key| key.contains("%spent:")).unwrap();
            let id = spent.strip_prefix(&format!("{escaped}%spent:")).expect(&spent);
            assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{spent}");
        }
    });
}
