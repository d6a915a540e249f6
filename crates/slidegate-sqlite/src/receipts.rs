//! Receipts: refunding and settling an admission.

use rusqlite::{Connection, params};
use slidegate::algorithm::State;
use slidegate::receipt::{Receipt, ReceiptCharge, ReceiptId};
use slidegate::store::Record;
use slidegate::time::Clock;
use slidegate::{Applied, ReceiptError};

use crate::clock_steps;
use crate::engine::CallContext;
use crate::file_error::FileError;
use crate::rows::{self, Meta, Row, signed};
use crate::transaction::{LockMode, TransactionEnd};

/// The most records of spent receipts.
const RECORDS_MAX: u64 = 1 << 20;
/// The most expired records that one presentation deletes.
const DROPPED_MAX: u64 = 256;

/// The result of presenting a receipt.
type ReceiptResult = Result<Applied, ReceiptError>;

impl<C: Clock> CallContext<'_, '_, C> {
    /// Takes back a whole admission.
    pub(crate) fn refund(&mut self, receipt: &Receipt) -> Result<ReceiptResult, FileError> {
        self.spend(receipt, |connection, meta, now_us| {
            let mut units = 0;
            for charge in receipt.charges() {
                units += refund(connection, meta, now_us, charge, charge.cost())?;
            }
            Ok(Ok(Applied { applied: units > 0, units }))
        })
    }

    /// Replaces the cost of an admission by what was spent.
    pub(crate) fn settle(&mut self, receipt: &Receipt, actual: u64) -> Result<ReceiptResult, FileError> {
        self.spend(receipt, |connection, meta, now_us| {
            let cost = match receipt.cost_to_settle(actual) {
                Ok(cost) => cost,
                Err(error) => return Ok(Err(error)),
            };
            let mut units = 0;
            for charge in receipt.charges() {
                units += match actual.checked_sub(cost) {
                    Some(0) => 0,
                    Some(excess) => charge_excess(connection, meta, now_us, charge, excess)?,
                    None => refund(connection, meta, now_us, charge, cost - actual)?,
                };
            }
            Ok(Ok(Applied { applied: units > 0 || actual == cost, units }))
        })
    }

    /// Runs `act` if the receipt is ours, unspent and not expired. Records it as spent if `act` succeeds.
    fn spend(
        &mut self,
        receipt: &Receipt,
        act: impl Fn(&Connection, &mut Meta, u64) -> Result<ReceiptResult, FileError>,
    ) -> Result<ReceiptResult, FileError> {
        self.step(LockMode::Immediate, |connection, meta, now_us| {
            if receipt.store() != meta.number {
                return Ok(TransactionEnd::Rollback(Err(ReceiptError::Foreign)));
            }
            // Records up to here are deleted, so their receipts stay expired, even if the clock is set back.
            let latest_us = meta.presented_us.max(meta.noted_us).max(now_us);
            let expired_by_us = latest_us.max(clock_steps::expired_by_us(connection, order(receipt))?);
            let expires_us = State::receipt_expires_us(receipt);
            let answer = if expires_us <= expired_by_us || is_spent(connection, receipt.id())? {
                Ok(Applied::default())
            } else {
                drop_expired(connection, meta, latest_us)?;
                if meta.spent >= RECORDS_MAX {
                    let records = usize::try_from(meta.spent).unwrap_or(usize::MAX);
                    Err(ReceiptError::RecordsFull { records })
                } else {
                    act(connection, meta, now_us)?
                }
            };
            // Also a refusal stores the time of its presentation.
            if let Ok(Applied { .. }) = answer
                && expires_us > expired_by_us
                && record(connection, receipt.id(), expires_us)?
            {
                meta.spent += 1;
            }
            meta.presented_us = latest_us;
            meta.save(connection)?;
            Ok(TransactionEnd::Commit(answer))
        })
    }
}

/// The number of the admission's first charge in the store.
fn order(receipt: &Receipt) -> u64 {
    let places = receipt.charges().iter().flat_map(ReceiptCharge::places);
    places.map(|place| place.order).min().unwrap_or(0)
}

fn is_spent(connection: &Connection, id: ReceiptId) -> Result<bool, FileError> {
    let mut select = connection.prepare_cached("SELECT 1 FROM spent WHERE id = ?1")?;
    Ok(select.exists([id.get().cast_signed()])?)
}

/// Records a receipt as spent. Returns whether it is a new record.
fn record(connection: &Connection, id: ReceiptId, expires_us: u64) -> Result<bool, FileError> {
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO spent (id, expires_us) VALUES (?1, ?2)")?;
    Ok(insert.execute(params![id.get().cast_signed(), signed(expires_us)])? == 1)
}

fn drop_expired(connection: &Connection, meta: &mut Meta, latest_us: u64) -> Result<(), FileError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM spent WHERE id IN \
         (SELECT id FROM spent WHERE expires_us <= ?1 ORDER BY expires_us LIMIT ?2)",
    )?;
    let dropped = delete.execute([signed(latest_us), signed(DROPPED_MAX)])?;
    meta.spent = meta.spent.saturating_sub(dropped as u64);
    Ok(())
}

/// Refunds up to `units` of a charge.
fn refund(
    connection: &Connection,
    meta: &Meta,
    now_us: u64,
    charge: &ReceiptCharge,
    units: u64,
) -> Result<u64, FileError> {
    let Some(row) = rows::load(connection, meta, charge.rule(), charge.key().identity())? else {
        return Ok(0);
    };
    let (record, before) = Row::split(Some(row));
    let mut record = record.expect("there is a row");
    let order = charge.places().first().map_or(0, |place| place.order);
    let expired_by_us = meta.noted_us.max(clock_steps::expired_by_us(connection, order)?);
    let given = record.refund(expired_by_us, now_us, charge, units);
    if given > 0 {
        rows::save(connection, meta, charge.rule(), charge.key().identity(), &record, before)?;
    }
    Ok(given)
}

fn charge_excess(
    connection: &Connection,
    meta: &mut Meta,
    now_us: u64,
    charge: &ReceiptCharge,
    units: u64,
) -> Result<u64, FileError> {
    let (record, before) = Row::split(rows::load(connection, meta, charge.rule(), charge.key().identity())?);
    meta.order += 1;
    let record = Record::with_excess(record, meta.order, now_us, charge, units);
    rows::save(connection, meta, charge.rule(), charge.key().identity(), &record, before)?;
    Ok(units)
}
