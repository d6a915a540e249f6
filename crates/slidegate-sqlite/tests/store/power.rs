//! The power is cut: whatever part of what was written since the last sync has reached the disk, the file is sound, and
//! with [`Durability::Full`] everything is in it that was acknowledged.
//!
//! After every admission both files are copied. What the disk may hold between two copies is then made by hand, sector by
//! sector: the log is written first and synced; only then, once in a while, pages of the database. A sector that was
//! written may be there before one that was written earlier.

use std::path::Path;

use crate::common::*;
use rusqlite::Connection;
use slidegate::store::{Call, Store};
use slidegate::testing::{Rng, block_on};
use slidegate::{Algorithm, Rule};
use slidegate_sqlite::Durability;

const SECTOR: usize = 512;

/// Both files at one moment.
#[derive(Debug, Clone)]
struct Disk {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Disk {
    fn of(path: &Path) -> Self {
        let log = std::fs::read(format!("{}-wal", path.display())).unwrap_or_default();
        Self { database: std::fs::read(path).unwrap(), log }
    }

    /// Puts it where nobody has been, and says what alice has used there.
    fn used(&self, rule: &Rule) -> u64 {
        let directory = Directory::new();
        std::fs::write(directory.file(), &self.database).unwrap();
        std::fs::write(directory.path().join("quota.db-wal"), &self.log).unwrap();
        let store = open(directory.file());
        let used = used(&store, Call::now(), rule);
        let sound: String = Connection::open(directory.file())
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
        // It goes on from there.
        assert!(block_on(store.check(Call::now(), &admission(&[(rule, "bob", 1)]))).unwrap().allowed());
        used
    }
}

/// Every state between two: the sectors that differ are written one after the other, or the other way round, or any of
/// them. At most `most` of them.
fn between(before: &[u8], after: &[u8], rng: &mut Rng, most: usize) -> Vec<Vec<u8>> {
    let sector = |bytes: &[u8], number: usize| {
        bytes.get(number * SECTOR..).map(|rest| rest[..rest.len().min(SECTOR)].to_vec()).unwrap_or_default()
    };
    let sectors = before.len().max(after.len()).div_ceil(SECTOR);
    let differing: Vec<usize> =
        (0..sectors).filter(|&number| sector(before, number) != sector(after, number)).collect();
    let written = |chosen: &dyn Fn(usize) -> bool| {
        let mut bytes = before.to_vec();
        for (index, &number) in differing.iter().enumerate() {
            let new = sector(after, number);
            if chosen(index) && !new.is_empty() {
                bytes.resize(bytes.len().max(number * SECTOR + new.len()), 0);
                bytes[number * SECTOR..][..new.len()].copy_from_slice(&new);
            }
        }
        bytes
    };
    let step = (differing.len() * 2).div_ceil(most).max(1);
    let mut all = Vec::new();
    for cut in (0..=differing.len()).step_by(step) {
        all.push(written(&|index| index < cut));
        all.push(written(&|index| index >= cut));
        let coins: Vec<bool> = differing.iter().map(|_| rng.one_in(2)).collect();
        all.push(written(&|index| coins[index]));
    }
    all
}

/// What is done to the files between two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Admitted,
    /// Pages of the log were moved into the database: the first half of emptying it.
    Moved,
    /// The log was emptied: the second half.
    Emptied,
}

/// Admissions of cost 1, and the log moved and emptied as the store does it, in its two halves; with a copy after each.
fn copies(durability: Durability, rule: &Rule, admissions: usize) -> Vec<(Done, Disk)> {
    let directory = Directory::new();
    let store =
        slidegate_sqlite::SqliteStore::open_with(&options(directory.file()).durability(durability)).unwrap();
    let mover = Connection::open(directory.file()).unwrap();
    let mut copies = vec![(Done::Emptied, Disk::of(&directory.file()))];
    for number in 1..=admissions {
        assert!(check(&store, Call::now(), rule, 1).allowed());
        copies.push((Done::Admitted, Disk::of(&directory.file())));
        if number % 25 == 0 {
            for (half, done) in [("PASSIVE", Done::Moved), ("TRUNCATE", Done::Emptied)] {
                mover.query_row(&format!("PRAGMA wal_checkpoint({half})"), [], |_| Ok(())).unwrap();
                copies.push((done, Disk::of(&directory.file())));
            }
        }
    }
    copies
}

#[test]
fn full_holds_all_that_was_acknowledged_whenever_the_power_is_cut() {
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let copies = copies(Durability::Full, &rule, 60);
    let (mut images, mut acknowledged) = (0, 0);
    for (seed, pair) in (0..).zip(copies.windows(2)) {
        let ((_, before), (done, after)) = (&pair[0], &pair[1]);
        let mut rng = Rng::new(seed);
        let disks: Vec<Disk> = match done {
            Done::Admitted => between(&before.log, &after.log, &mut rng, if seed % 8 == 0 { 24 } else { 4 })
                .into_iter()
                .map(|log| Disk { database: before.database.clone(), log })
                .collect(),
            Done::Moved => between(&before.database, &after.database, &mut rng, 48)
                .into_iter()
                .map(|database| Disk { database, log: before.log.clone() })
                .collect(),
            Done::Emptied => vec![after.clone()],
        };
        let most = acknowledged + u64::from(*done == Done::Admitted);
        for disk in disks {
            images += 1;
            let used = disk.used(&rule);
            assert!(
                (acknowledged..=most).contains(&used),
                "{done:?}: {used} used, {acknowledged} acknowledged"
            );
        }
        acknowledged = most;
    }
    assert!(acknowledged == 60 && images > 200, "{images} images");
}

/// The log was synced when it was last moved; of what came after it any beginning may be there.
#[test]
fn normal_is_sound_whenever_the_power_is_cut_and_never_says_more_than_was_used() {
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let copies = copies(Durability::Normal, &rule, 44);
    let ((_, last), mut shorter) = (copies.last().unwrap(), 0);
    for cut in (0..=last.log.len()).step_by(4 * SECTOR) {
        let disk = Disk { database: last.database.clone(), log: last.log[..cut].to_vec() };
        let used = disk.used(&rule);
        assert!((25..=44).contains(&used), "{used}");
        shorter += u64::from(used < 44);
    }
    assert!(shorter > 0, "the end of the log is where the last admissions are");
}
