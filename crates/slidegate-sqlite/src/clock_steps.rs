//! A clock that is set back.
//!
//! The processes of a machine share a wall clock, which may be set back: by an operator, or after it was wrong. States with
//! later stamps would count until it has caught up, perhaps for a year. So the first call that reads a time more than a
//! second before the latest one in the file records the step, and every state that was written before it and charged later
//! than the step's end counts what it used as one charge at the step's end.
//!
//! ```text
//! epoch 0  --------------------- from_us          the latest time in the file
//! epoch 1          to_us --------------------->   the first reading after the clock was set back
//!                  ^ a state of epoch 0 that was charged later counts as one charge here
//! ```
//!
//! **States change when they are next written.** Every row has the epoch in which it was written. A call applies the steps
//! since then, oldest first, to what it reads. The result is a function of the row and the steps alone: a denial, which
//! writes nothing, has the same result as the next call, so its wait holds. Rejected: rewriting all rows at the step, which
//! locks a file of a million keys for seconds.
//!
//! **Never over.** What counted at `from_us` was charged before `to_us` was read, so counting it from `to_us` on is not too
//! short. Nothing is stamped later than `to_us` then, so no wait for it exceeds a window.
//!
//! **No false step.** The clock is read after the transaction has its snapshot of the file, so every time in the file was
//! read earlier: a slow process is not mistaken for a clock that was set back.

use rusqlite::{Connection, params};
use slidegate::store::Record;

use crate::file_error::FileError;
use crate::rows::{Meta, signed, unsigned};

/// A clock set back by this much is not followed: time stands still until it has caught up.
const TOLERANCE_US: u64 = 1_000_000;
/// The most steps on record. A state older than the oldest of them misses those before, and counts longer.
pub(crate) const STEPS_MAX: u64 = 64;

/// Records that the clock was set back, if it was. Returns whether it wrote.
pub(crate) fn follow(connection: &Connection, meta: &mut Meta, now_us: u64) -> Result<bool, FileError> {
    let from_us = meta.noted_us.max(meta.presented_us);
    if from_us <= now_us.saturating_add(TOLERANCE_US) {
        return Ok(false);
    }
    meta.epoch += 1;
    (meta.noted_us, meta.presented_us) = (now_us, meta.presented_us.min(now_us));
    let step = [meta.epoch, meta.order, from_us, now_us].map(signed);
    connection
        .execute("INSERT INTO clock_step (epoch, ord, from_us, to_us) VALUES (?1, ?2, ?3, ?4)", step)?;
    let oldest = meta.epoch.saturating_sub(STEPS_MAX);
    connection.execute("DELETE FROM clock_step WHERE epoch <= ?1", [signed(oldest)])?;
    meta.save(connection)?;
    Ok(true)
}

/// A record written in `epoch`, after all later steps. Receipts of a state that they change are void.
pub(crate) fn apply(
    connection: &Connection,
    meta: &Meta,
    epoch: u64,
    record: Record,
) -> Result<Record, FileError> {
    if epoch >= meta.epoch {
        return Ok(record);
    }
    let mut select =
        connection.prepare_cached("SELECT from_us, to_us FROM clock_step WHERE epoch > ?1 ORDER BY epoch")?;
    let mut steps = select.query(params![signed(epoch)])?;
    let mut record = record;
    while let Some(step) = steps.next()? {
        let (from_us, to_us) = (step.get(0).map(unsigned)?, step.get(1).map(unsigned)?);
        record = record.set_back(meta.order + 1, from_us, to_us);
    }
    Ok(record)
}

/// The latest time before a step that a receipt of the charge number `order` has seen. What had expired then stays
/// expired: its record of being spent may be deleted. After so many steps that some were deleted, older receipts expire.
pub(crate) fn expired_by_us(connection: &Connection, order: u64) -> Result<u64, FileError> {
    let mut select = connection.prepare_cached(
        "SELECT coalesce(max(from_us) FILTER (WHERE ord >= ?1), 0), coalesce(min(ord), 0), count(*) FROM clock_step",
    )?;
    let (from_us, oldest, count): (i64, i64, i64) =
        select.query_row([signed(order)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let is_older = unsigned(count) >= STEPS_MAX && order <= unsigned(oldest);
    Ok(if is_older { u64::MAX } else { unsigned(from_us) })
}
