//! Power losses: any part of the writes since the last sync may have reached the disk. The file stays consistent, and
//! with [`Durability::Full`] it holds every acknowledged admission.
//!
//! After every admission the test copies both files. Then it builds the disks that are possible between two copies,
//! sector by sector: the log is written first and synced; only then, now and then, pages of the database. Sectors may
//! reach the disk in any order.

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

    /// Opens a copy in a new directory. Returns alice's use.
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
        // The store works on.
        assert!(block_on(store.check(Call::now(), &admission(&[(rule, "bob", 1)]))).unwrap().allowed());
        used
    }
}

/// The possible contents between two: some of the differing sectors are written, in order, in reverse order, or at
/// random. At most about `most` contents.
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

/// What changed the files between two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskEvent {
    Admitted,
    /// The first half of a checkpoint: pages of the log were moved into the database.
    Moved,
    /// The second half: the log was emptied.
    Emptied,
}

/// Makes admissions of cost 1 and checkpoints in their two halves, with a copy after each.
fn copies(durability: Durability, rule: &Rule, admissions: usize) -> Vec<(DiskEvent, Disk)> {
    let directory = Directory::new();
    let store =
        slidegate_sqlite::SqliteStore::open_with(&options(directory.file()).durability(durability)).unwrap();
    let checkpointer = Connection::open(directory.file()).unwrap();
    let mut copies = vec![(DiskEvent::Emptied, Disk::of(&directory.file()))];
    for number in 1..=admissions {
        assert!(check(&store, Call::now(), rule, 1).allowed());
        copies.push((DiskEvent::Admitted, Disk::of(&directory.file())));
        if number % 25 == 0 {
            for (half, event) in [("PASSIVE", DiskEvent::Moved), ("TRUNCATE", DiskEvent::Emptied)] {
                checkpointer.query_row(&format!("PRAGMA wal_checkpoint({half})"), [], |_| Ok(())).unwrap();
                copies.push((event, Disk::of(&directory.file())));
            }
        }
    }
    copies
}

#[test]
fn full_durability_keeps_every_acknowledged_admission() {
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let copies = copies(Durability::Full, &rule, 60);
    let (mut images, mut acknowledged) = (0, 0);
    for (seed, pair) in (0..).zip(copies.windows(2)) {
        let ((_, before), (event, after)) = (&pair[0], &pair[1]);
        let mut rng = Rng::new(seed);
        let disks: Vec<Disk> = match event {
            DiskEvent::Admitted => {
                between(&before.log, &after.log, &mut rng, if seed % 8 == 0 { 24 } else { 4 })
                    .into_iter()
                    .map(|log| Disk { database: before.database.clone(), log })
                    .collect()
            }
            DiskEvent::Moved => between(&before.database, &after.database, &mut rng, 48)
                .into_iter()
                .map(|database| Disk { database, log: before.log.clone() })
                .collect(),
            DiskEvent::Emptied => vec![after.clone()],
        };
        let most = acknowledged + u64::from(*event == DiskEvent::Admitted);
        for disk in disks {
            images += 1;
            let used = disk.used(&rule);
            assert!(
                (acknowledged..=most).contains(&used),
                "{event:?}: {used} used, {acknowledged} acknowledged"
            );
        }
        acknowledged = most;
    }
    assert!(acknowledged == 60 && images > 200, "{images} images");
}

/// The last checkpoint synced the log; of later writes any prefix may have reached the disk.
#[test]
fn normal_durability_stays_consistent_and_never_counts_more_than_was_used() {
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let copies = copies(Durability::Normal, &rule, 44);
    let ((_, last), mut shorter) = (copies.last().unwrap(), 0);
    for cut in (0..=last.log.len()).step_by(4 * SECTOR) {
        let disk = Disk { database: last.database.clone(), log: last.log[..cut].to_vec() };
        let used = disk.used(&rule);
        assert!((25..=44).contains(&used), "{used}");
        shorter += u64::from(used < 44);
    }
    assert!(shorter > 0, "the last admissions are at the end of the log");
}
