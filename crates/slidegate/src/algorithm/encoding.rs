//! The byte encoding of states, for stores that outlive the process.
//!
//! ```text
//! state  = limit  window                                    every number: LEB128
//! limit  = algorithm  parameter  units  limit  window_ms
//! window = newest  count  has_units  (age | step  units?)*  sliding-log: the age of the oldest, then steps
//!          newest  credited  count  (age | step  units*2+merged)*         compact-log
//!          0 | 1  newest  count  (back  units)*             sliding-buckets: steps back to the buckets in use
//!          number  previous  current                        sliding-counter
//!          number  count                                    fixed-window
//!          as_of  backlog_low  backlog_high  drained  given_back  charges_end    gcra
//! ```
//!
//! Reading trusts nothing: any bytes are a state that charges could have made, or an error. The invariants of the
//! algorithms (stamps within a window of the newest, counts within [`USED_MAX`], time before the year 10000) are
//! checked only here.

use std::time::Duration;

use super::bytes::{BytesError, Reader, write_number};
use super::cells::Cells;
use super::compact_entry::Entry;
use super::log_entries::Entries as LogEntries;
use super::packed_counts::{Counts, PackedCounts};
use super::packed_line::Line;
use super::sliding_buckets::ring_len;
use super::state::{AnyWindow, State};
use super::window::USED_MAX;
use super::{CompactLog, FixedWindow, Gcra, SlidingBuckets, SlidingCounter, SlidingLog};
use crate::rate::{LIMIT_MAX, Rate};
use crate::receipt::Backlog;
use crate::rule::{Algorithm, ENTRIES_MAX, Limit};
use crate::time::TIME_MAX_US;

const LATE: &str = "an instant after the year 9999";
const MANY: &str = "more units than any state counts";
const OLD: &str = "an entry older than its window";

impl State {
    /// Appends the state as bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_limit(out, self.limit());
        match &self.window {
            AnyWindow::SlidingLog(log) => write_log(out, log),
            AnyWindow::CompactLog(log) => write_compact(out, log),
            AnyWindow::SlidingBuckets(buckets) => write_buckets(out, buckets),
            AnyWindow::SlidingCounter(counter) => {
                let Counts { number, previous, current } = counter.counts.get();
                write_all(out, &[number, previous, current]);
            }
            AnyWindow::FixedWindow(window) => write_all(out, &[window.number, window.count]),
            AnyWindow::Gcra(gcra) => write_gcra(out, gcra),
        }
    }

    /// Reads bytes of [`Self::write`].
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, BytesError> {
        let limit = read_limit(reader)?;
        let window = match limit.algorithm() {
            Algorithm::SlidingLog => AnyWindow::SlidingLog(read_log(reader, &limit)?),
            Algorithm::CompactLog(_) => AnyWindow::CompactLog(read_compact(reader, &limit)?),
            Algorithm::SlidingBuckets(..) => AnyWindow::SlidingBuckets(read_buckets(reader, &limit)?),
            Algorithm::SlidingCounter => {
                let number = reader.at_most(TIME_MAX_US / limit.window_us(), LATE)?;
                let (previous, current) = (reader.at_most(USED_MAX, MANY)?, reader.at_most(USED_MAX, MANY)?);
                let counts = PackedCounts::of(Counts { number, previous, current });
                AnyWindow::SlidingCounter(SlidingCounter { counts })
            }
            Algorithm::FixedWindow => {
                let number = reader.at_most(TIME_MAX_US / limit.window_us(), LATE)?;
                AnyWindow::FixedWindow(FixedWindow { number, count: reader.at_most(USED_MAX, MANY)? })
            }
            Algorithm::Gcra => AnyWindow::Gcra(read_gcra(reader, &limit)?),
        };
        Ok(Self { limit, window })
    }
}

fn write_all(out: &mut Vec<u8>, numbers: &[u64]) {
    for &number in numbers {
        write_number(out, number);
    }
}

fn write_limit(out: &mut Vec<u8>, limit: &Limit) {
    let (code, parameter) = limit.algorithm().code();
    out.push(code);
    write_all(out, &[parameter, limit.units(), limit.rate().limit(), limit.window_us() / 1_000]);
}

fn read_limit(reader: &mut Reader<'_>) -> Result<Limit, BytesError> {
    let (code, parameter) = (reader.byte()?, reader.number()?);
    let algorithm = Algorithm::of_code(code, parameter).ok_or(BytesError::damaged("an unknown algorithm"))?;
    let (units, of, window_ms) = (reader.number()?, reader.number()?, reader.number()?);
    let rate = Rate::new(of, Duration::from_millis(window_ms)).ok();
    let limit = rate.and_then(|rate| Limit::enforcing(rate, units, algorithm));
    limit.ok_or(BytesError::damaged("a limit or a window out of range"))
}

fn write_log(out: &mut Vec<u8>, log: &SlidingLog) {
    let (entries, len) = (&log.entries, log.entries.len());
    let has_units = (0..len).any(|index| entries.units(index, index + 1) > 1);
    write_all(out, &[entries.newest(), len as u64, u64::from(has_units)]);
    let mut before = None;
    for index in 0..len {
        before = Some(write_stamp(out, entries.stamp(index), before, entries.newest()));
        if has_units {
            write_number(out, entries.units(index, index + 1));
        }
    }
}

fn read_log(reader: &mut Reader<'_>, limit: &Limit) -> Result<SlidingLog, BytesError> {
    let (newest, len) = (reader.at_most(TIME_MAX_US, LATE)?, reader.count()?);
    let has_units = reader.at_most(1, "a units flag other than 0 or 1")? == 1;
    let mut entries = LogEntries::emptied(if len == 0 { newest } else { 0 });
    let (mut before, mut sum) = (None, 0);
    for _ in 0..len {
        let stamp = read_stamp(reader, before, newest, limit)?;
        let units = if has_units { reader.at_most(USED_MAX - sum, MANY)? } else { 1 };
        if units == 0 {
            return Err(BytesError::damaged("an entry without units"));
        }
        sum += units;
        entries.push(stamp, units);
        before = Some(stamp);
    }
    if entries.newest() != newest {
        return Err(BytesError::damaged("a newest stamp without an entry"));
    }
    Ok(SlidingLog { entries })
}

fn write_compact(out: &mut Vec<u8>, log: &CompactLog) {
    write_all(out, &[log.newest, log.credited, log.entries.len() as u64]);
    let mut before = None;
    for entry in &log.entries {
        before = Some(write_stamp(out, entry.stamp(log.newest), before, log.newest));
        write_number(out, entry.units() << 1 | u64::from(entry.merged()));
    }
}

fn read_compact(reader: &mut Reader<'_>, limit: &Limit) -> Result<CompactLog, BytesError> {
    let newest = reader.at_most(TIME_MAX_US, LATE)?;
    let credited = reader.at_most(newest, "a credit later than the newest entry")?;
    let len = reader.count()?;
    if len > usize::from(ENTRIES_MAX) {
        return Err(BytesError::damaged("more entries than a compact log has"));
    }
    let mut log = CompactLog { newest, credited, ..CompactLog::default() };
    log.entries.reserve_exact(len);
    let mut before = None;
    for _ in 0..len {
        let stamp = read_stamp(reader, before, newest, limit)?;
        let packed = reader.number()?;
        let (units, merged) = (packed >> 1, packed & 1 == 1);
        if units == 0 || units > USED_MAX - log.sum || before == Some(stamp) {
            return Err(BytesError::damaged(MANY));
        }
        log.sum += units;
        log.entries.push_back(Entry::new(stamp, units, merged));
        before = Some(stamp);
    }
    Ok(log)
}

/// Writes a stamp as its step from the one before, or as the age of the oldest; returns the stamp.
fn write_stamp(out: &mut Vec<u8>, stamp: u64, before: Option<u64>, newest: u64) -> u64 {
    write_number(out, before.map_or(newest - stamp, |before| stamp - before));
    stamp
}

/// Reads a stamp, which lies between the one before and the newest.
fn read_stamp(
    reader: &mut Reader<'_>,
    before: Option<u64>,
    newest: u64,
    limit: &Limit,
) -> Result<u64, BytesError> {
    match before {
        Some(before) => Ok(before + reader.at_most(newest - before, "an entry later than the newest")?),
        None => Ok(newest - reader.at_most(newest.min(limit.window_us() - 1), OLD)?),
    }
}

fn write_buckets(out: &mut Vec<u8>, buckets: &SlidingBuckets) {
    if buckets.cells.is_empty() {
        write_number(out, 0);
        return;
    }
    let in_use = || buckets.numbers(0).rev().filter(|&number| buckets.units(number) > 0);
    write_all(out, &[1, buckets.newest, in_use().count() as u64]);
    let mut before = buckets.newest;
    for number in in_use() {
        write_all(out, &[before - number, buckets.units(number)]);
        before = number;
    }
}

fn read_buckets(reader: &mut Reader<'_>, limit: &Limit) -> Result<SlidingBuckets, BytesError> {
    if reader.at_most(1, "a ring flag other than 0 or 1")? == 0 {
        return Ok(SlidingBuckets::default());
    }
    let newest = reader.at_most(TIME_MAX_US / limit.bucket_us(), LATE)?;
    let ring = ring_len(limit);
    let mut buckets = SlidingBuckets { cells: Cells::zeros(ring, limit.units()), newest };
    let oldest = (newest + 1).saturating_sub(ring as u64);
    let mut before = newest;
    for index in 0..reader.count()? {
        let back = reader.at_most(before - oldest, "a bucket outside the ring")?;
        let units = reader.at_most(USED_MAX - buckets.cells.sum(), MANY)?;
        if units == 0 || (index > 0 && back == 0) {
            return Err(BytesError::damaged("a bucket twice, or without units"));
        }
        before -= back;
        buckets.cells.set(buckets.index(before), units);
    }
    Ok(buckets)
}

fn write_gcra(out: &mut Vec<u8>, gcra: &Gcra) {
    let line = gcra.line();
    let backlog = line.backlog.get();
    #[expect(clippy::cast_possible_truncation, reason = "cut in two on purpose")]
    let (low, high) = (backlog as u64, (backlog >> 64) as u64);
    write_all(
        out,
        &[line.as_of_us, low, high, line.drained_per_window, line.given_back, line.charges_end_us],
    );
}

fn read_gcra(reader: &mut Reader<'_>, limit: &Limit) -> Result<Gcra, BytesError> {
    let as_of_us = reader.at_most(TIME_MAX_US, LATE)?;
    let backlog = u128::from(reader.number()?) | u128::from(reader.number()?) << 64;
    let drained_per_window = reader.at_most(LIMIT_MAX, "a limit out of range")?;
    let (given_back, charges_end_us) = (reader.number()?, reader.number()?);
    let most = u128::from(USED_MAX) * u128::from(limit.window_us());
    if backlog > most || (backlog > 0 && drained_per_window == 0) {
        return Err(BytesError::damaged(MANY));
    }
    let backlog = Backlog::new(backlog);
    Ok(Gcra::new(&Line { as_of_us, backlog, drained_per_window, given_back, charges_end_us }))
}

#[cfg(test)]
mod tests;
