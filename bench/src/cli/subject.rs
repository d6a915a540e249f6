//! The commands that are measured.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use slidegate::time::{Clock, SystemClock};

/// Requests per key: 95 of 100 units fit a day's quota of 9,500.
const PER_KEY: u32 = 95;
const FSYNC_BYTES: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    Nothing,
    Version,
    Mistake,
    Sqlite3,
    CheckNormal,
    CheckDenied,
    CheckFull,
    Fsync,
}

impl Subject {
    /// In the order of a round.
    pub(crate) const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Version,
        Self::Mistake,
        Self::Sqlite3,
        Self::CheckNormal,
        Self::CheckDenied,
        Self::CheckFull,
        Self::Fsync,
    ];

    /// Whether it syncs the disk.
    pub(crate) fn syncs(self) -> bool {
        matches!(self, Self::CheckFull | Self::Fsync)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Nothing => "`true`: a process that does nothing",
            Self::Version => "`slidegate --version`",
            Self::Mistake => "`slidegate check` with a mistake",
            Self::Sqlite3 => "`sqlite3 FILE 'select 1'`",
            Self::CheckNormal => "`slidegate check`, allowed, normal",
            Self::CheckDenied => "`slidegate check`, denied",
            Self::CheckFull => "`slidegate check`, allowed, full",
            Self::Fsync => "4 KiB written and synced (fdatasync)",
        }
    }
}

/// The files and programs that the subjects use.
pub(crate) struct Fixture {
    program: PathBuf,
    normal: PathBuf,
    full: PathBuf,
    synced: File,
    clock: SystemClock,
}

impl Fixture {
    /// In an empty directory.
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let here = std::env::current_exe().context("this program does not know where it is")?;
        let synced = OpenOptions::new().create(true).append(true).open(dir.join("synced"))?;
        let fixture = Self {
            program: here.with_file_name("slidegate"),
            normal: dir.join("normal.db"),
            full: dir.join("full.db"),
            synced,
            clock: SystemClock::new(),
        };
        // Creates both files, and uses up the key of the denied subject, before anything is timed.
        fixture.run(Subject::CheckFull, u32::MAX)?;
        fixture.run(Subject::CheckNormal, u32::MAX)?;
        let spent =
            fixture.check(&fixture.normal, "normal", "spent", "1/24h", "1").stdout(Stdio::null()).status()?;
        ensure!(spent.success(), "the first request of a key passes");
        Ok(fixture)
    }

    /// Runs a subject and returns its time in microseconds.
    pub(crate) fn run(&self, subject: Subject, round: u32) -> Result<u64> {
        let key = format!("yt:quota:key{}", round / PER_KEY);
        let (mut command, status) = match subject {
            Subject::Fsync => return self.sync(),
            Subject::Nothing => (Command::new("true"), 0),
            Subject::Version => (self.slidegate(&["--version"]), 0),
            Subject::Mistake => (self.slidegate(&["check", "alice", "--limit", "banana"]), 2),
            Subject::Sqlite3 => {
                let mut command = Command::new("sqlite3");
                command.arg(&self.normal).arg("select 1");
                (command, 0)
            }
            Subject::CheckNormal => (self.check(&self.normal, "normal", &key, "9500/24h", "100"), 0),
            Subject::CheckDenied => (self.check(&self.normal, "normal", "spent", "1/24h", "1"), 1),
            Subject::CheckFull => (self.check(&self.full, "full", &key, "9500/24h", "100"), 0),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun_us = self.clock.now_us();
        let ended = command.status().with_context(|| format!("cannot start {}", subject.title()))?;
        let took_us = self.clock.now_us() - begun_us;
        ensure!(ended.code() == Some(status), "{} ended with {ended}", subject.title());
        Ok(took_us)
    }

    fn slidegate(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        command
    }

    fn check(&self, file: &Path, durability: &str, key: &str, limit: &str, cost: &str) -> Command {
        let store = format!("sqlite:{}?durability={durability}", file.display());
        self.slidegate(&["check", key, "--limit", limit, "--cost", cost, "--store", &store])
    }

    fn sync(&self) -> Result<u64> {
        let begun_us = self.clock.now_us();
        (&self.synced).write_all(&[0; FSYNC_BYTES])?;
        self.synced.sync_data()?;
        Ok(self.clock.now_us() - begun_us)
    }
}
