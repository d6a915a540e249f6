//! The verbs on the file: each is one transaction.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use slidegate::algorithm::BytesError;
use slidegate::decision::StateAnswer;
use slidegate::receipt::{ReceiptId, ReceiptStamp};
use slidegate::store::{Call, LimitUsage, Record, RefusalCause, SECRET_BYTES};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Applied, Charge, Rule, Verdict};

use crate::clock_steps;
use crate::file_error::FileError;
use crate::file_lock::FileLock;
use crate::lock_wait::{Deadline, LockWait};
use crate::owned_admission::{AdmissionAnswers, OwnedCharge};
use crate::rows::{self, Meta, Row};
use crate::transaction::{LockMode, TransactionEnd, transact};
use crate::wal;

/// The latest time is stored again when it has advanced by this much.
const NOTED_STEP_US: u64 = 1_000;
/// Keys per transaction of a rule change; other calls run between the transactions.
const CHANGED_AT_ONCE: usize = 256;

/// The file and the clock.
pub(crate) struct Engine<C> {
    pub(crate) file: Arc<FileLock>,
    pub(crate) clock: C,
    /// Whether a caller supplied the clock.
    pub(crate) has_custom_clock: bool,
    /// The clock of deadlines: it is never set back.
    pub(crate) monotonic: Arc<SystemClock>,
    /// The timeout of a call without a deadline.
    pub(crate) deadline: Duration,
}

impl<C> Engine<C> {
    /// The same file on another clock.
    pub(crate) fn on_clock<D>(&self, clock: D) -> Engine<D> {
        let Self { file, clock: _, monotonic, deadline, .. } = self;
        let (file, monotonic) = (Arc::clone(file), Arc::clone(monotonic));
        Engine { file, clock, has_custom_clock: true, monotonic, deadline: *deadline }
    }

    /// The deadline of a call made now.
    pub(crate) fn deadline(&self, call: Call) -> Result<Deadline, FileError> {
        Deadline::of(&self.monotonic, call, self.deadline)
    }

    /// The lock wait of a call made now, on the caller's thread.
    pub(crate) fn lock_wait(&self, call: Call) -> Result<LockWait<'_>, FileError> {
        Ok(LockWait::new(&self.monotonic, self.deadline(call)?))
    }
}

/// A call that runs now: the engine, its lock wait and its instant. Every verb is one transaction.
pub(crate) struct CallContext<'t, 'c, C> {
    pub(crate) engine: &'t Engine<C>,
    pub(crate) lock_wait: &'t mut LockWait<'c>,
    pub(crate) call: Call,
}

impl<C: Clock> CallContext<'_, '_, C> {
    /// Runs one transaction, until the deadline. `step` gets the time, which is read in every attempt, so that a call
    /// that waited is charged at the time of its transaction. If the clock was set back, that is recorded first, and
    /// stays also if `step` writes nothing.
    pub(crate) fn step<T>(
        &mut self,
        lock_mode: LockMode,
        mut step: impl FnMut(&Connection, &mut Meta, u64) -> Result<TransactionEnd<T>, FileError>,
    ) -> Result<T, FileError> {
        let (call, engine) = (self.call, self.engine);
        self.transact(lock_mode, |connection| {
            let mut meta = Meta::load(connection)?;
            // After the snapshot of the file, which `clock_steps` relies on.
            let now_us = call.instant_us().unwrap_or_else(|| engine.clock.now_us());
            let set_back = clock_steps::follow(connection, &mut meta, now_us)?;
            let end = step(connection, &mut meta, now_us)?;
            Ok(if set_back { end.committed() } else { end })
        })
    }

    /// Runs one transaction that needs no time.
    pub(crate) fn transact<T>(
        &mut self,
        lock_mode: LockMode,
        step: impl FnMut(&Connection) -> Result<TransactionEnd<T>, FileError>,
    ) -> Result<T, FileError> {
        let mut locked = self.engine.file.lock(self.lock_wait)?;
        if !self.lock_wait.has_caller() {
            return Err(FileError::timed_out());
        }
        let now_us = self.engine.monotonic.now_us();
        let open = locked.file().current(now_us, self.lock_wait)?;
        match transact(&open.connection, self.lock_wait, lock_mode, step)? {
            TransactionEnd::Rollback(value) => Ok(value),
            TransactionEnd::Commit(value) => {
                wal::checkpoint_if_long(&open.connection, &open.wal);
                Ok(value)
            }
        }
    }

    /// Decides and, if everything passes, charges everything.
    pub(crate) fn check(&mut self, charges: &[Charge<'_>]) -> Result<AdmissionAnswers, FileError> {
        if charges.is_empty() {
            return Ok(AdmissionAnswers::default());
        }
        self.step(LockMode::Deferred, |connection, meta, now_us| admit(connection, meta, now_us, charges))
    }

    /// Decides several admissions, one after the other, until one deadline.
    pub(crate) fn check_batch(
        &mut self,
        batch: &[Vec<OwnedCharge>],
    ) -> Vec<Result<AdmissionAnswers, FileError>> {
        let mut answers = Vec::with_capacity(batch.len());
        for charges in batch {
            let is_over = !answers.is_empty() && self.lock_wait.is_over();
            let charges = OwnedCharge::charges(charges);
            answers.push(if is_over { Err(FileError::timed_out()) } else { self.check(&charges) });
        }
        answers
    }

    /// Decides without charging.
    pub(crate) fn peek(&mut self, charges: &[Charge<'_>]) -> Result<AdmissionAnswers, FileError> {
        if charges.is_empty() {
            return Ok(AdmissionAnswers::default());
        }
        self.step(LockMode::Deferred, |connection, meta, now_us| {
            let rows = load_all(connection, meta, charges)?;
            Ok(TransactionEnd::Rollback(AdmissionAnswers::uncharged(&verdicts(charges, &rows, now_us))))
        })
    }

    /// Gives back up to the cost of `charge` from the oldest live charges first.
    pub(crate) fn credit(&mut self, charge: &Charge<'_>) -> Result<Applied, FileError> {
        let (rule, key) = (charge.rule().name(), charge.key().identity());
        self.step(LockMode::Deferred, |connection, meta, now_us| {
            let (Some(record), before) = Row::split(rows::load(connection, meta, rule, key)?) else {
                return Ok(TransactionEnd::Rollback(Applied::default()));
            };
            meta.order += 1;
            let (after, units) = record.clone().credited(meta.order, now_us, charge);
            let applied = Applied { applied: units > 0, units };
            if after == record {
                return Ok(TransactionEnd::Rollback(applied));
            }
            rows::save(connection, meta, rule, key, &after, before)?;
            meta.save(connection)?;
            Ok(TransactionEnd::Commit(applied))
        })
    }

    /// Deletes the state of a key, even a damaged one, but not one of a newer version.
    pub(crate) fn reset(&mut self, state: &Charge<'_>) -> Result<Applied, FileError> {
        let (rule, key) = (state.rule().name(), state.key().identity());
        self.step(LockMode::Deferred, |connection, meta, now_us| {
            let Some((bytes, epoch)) = rows::bytes_of(connection, rule, key)? else {
                return Ok(TransactionEnd::Rollback(Applied::default()));
            };
            let units = match Record::from_bytes(&bytes) {
                Ok(record) => clock_steps::apply(connection, meta, epoch, record)?.used_max(now_us),
                Err(error @ BytesError::Newer { .. }) => {
                    return Err(FileError::from_bytes_error(rule, key, &error));
                }
                Err(_) => 0,
            };
            rows::delete(connection, rule, key)?;
            Ok(TransactionEnd::Commit(Applied { applied: units > 0, units }))
        })
    }

    pub(crate) fn inspect(&mut self, state: &Charge<'_>) -> Result<Vec<LimitUsage>, FileError> {
        let (rule, key) = (state.rule(), state.key().identity());
        self.step(LockMode::Deferred, |connection, meta, now_us| {
            let row = rows::load(connection, meta, rule.name(), key)?;
            Ok(TransactionEnd::Rollback(Record::usages(row.as_ref().map(|row| &row.record), now_us, rule)))
        })
    }

    /// Applies a rule change to the next keys after `after`. Returns the last of them, if there were any.
    pub(crate) fn change_some(&mut self, rule: &Rule, after: &str) -> Result<Option<String>, FileError> {
        self.step(LockMode::Deferred, |connection, meta, now_us| {
            let rows = rows::keys_after(connection, meta, rule.name(), after, CHANGED_AT_ONCE)?;
            let last = rows.last().map(|(key, _)| key.clone());
            meta.order += 1;
            let mut wrote = false;
            for (key, row) in rows {
                let changed = row.record.changed(meta.order, now_us, rule);
                if changed != row.record {
                    let (_, before) = Row::split(Some(row));
                    rows::save(connection, meta, rule.name(), &key, &changed, before)?;
                    wrote = true;
                }
            }
            if !wrote {
                return Ok(TransactionEnd::Rollback(last));
            }
            meta.save(connection)?;
            Ok(TransactionEnd::Commit(last))
        })
    }

    pub(crate) fn secret(&mut self) -> Result<[u8; SECRET_BYTES], FileError> {
        let secret = self.transact(LockMode::Deferred, |connection| {
            let sql = "SELECT secret FROM meta WHERE id = 1";
            Ok(TransactionEnd::Rollback(connection.query_row(sql, [], |row| row.get::<_, Vec<u8>>(0))?))
        })?;
        secret.try_into().map_err(|other: Vec<u8>| {
            let bytes = other.len();
            let why =
                format!("the file's secret has {bytes} bytes in place of {SECRET_BYTES}; restore the file");
            FileError::Refused(RefusalCause::DamagedStore, why.into())
        })
    }
}

fn admit(
    connection: &Connection,
    meta: &mut Meta,
    now_us: u64,
    charges: &[Charge<'_>],
) -> Result<TransactionEnd<AdmissionAnswers>, FileError> {
    let rows = load_all(connection, meta, charges)?;
    let verdicts = verdicts(charges, &rows, now_us);
    let passes = verdicts.iter().all(|verdict| verdict.allowed() || verdict.shadow());
    if !passes || !verdicts.iter().any(Verdict::allowed) {
        return Ok(TransactionEnd::Rollback(AdmissionAnswers::uncharged(&verdicts)));
    }
    let mut answers = AdmissionAnswers::charged(ReceiptStamp { id: drawn_id()?, store: meta.number });
    for ((charge, verdict), row) in charges.iter().zip(verdicts).zip(rows) {
        // A shadow rule that would deny is not charged.
        if !verdict.allowed() {
            answers.push(StateAnswer::uncharged(verdict));
            continue;
        }
        meta.order += 1;
        let (record, before) = Row::split(row);
        let (record, answer) = Record::charged(record, meta.order, now_us, charge);
        rows::save(connection, meta, charge.rule().name(), charge.key().identity(), &record, before)?;
        answers.push(answer);
    }
    if now_us >= meta.noted_us + NOTED_STEP_US {
        meta.noted_us = now_us;
    }
    meta.save(connection)?;
    // A state charged on a clock that was set back may have ended by the noted time, but not by now.
    rows::sweep_some(connection, now_us.min(meta.noted_us))?;
    Ok(TransactionEnd::Commit(answers))
}

fn load_all(
    connection: &Connection,
    meta: &Meta,
    charges: &[Charge<'_>],
) -> Result<Vec<Option<Row>>, FileError> {
    let load =
        |charge: &Charge<'_>| rows::load(connection, meta, charge.rule().name(), charge.key().identity());
    charges.iter().map(load).collect()
}

fn verdicts<'a>(charges: &[Charge<'a>], rows: &[Option<Row>], now_us: u64) -> Vec<Verdict<'a>> {
    let charges = charges.iter().zip(rows);
    charges
        .map(|(charge, row)| Record::verdict(row.as_ref().map(|row| &row.record), now_us, charge))
        .collect()
}

/// Draws an id that is not guessable.
fn drawn_id() -> Result<ReceiptId, FileError> {
    let drawn = getrandom::u64().map_err(|error| {
        let why = format!("the system gives no random numbers for receipts: {error}; see getrandom(2)");
        FileError::Unavailable(why.into())
    });
    Ok(ReceiptId::new(drawn?))
}
