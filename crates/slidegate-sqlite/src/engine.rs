//! The file and the clock, and every verb as an atomic step on them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use slidegate::algorithm::BytesError;
use slidegate::decision::StateAnswer;
use slidegate::receipt::{ReceiptId, ReceiptStamp};
use slidegate::store::{Call, LimitUsage, Record, SECRET_BYTES};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Applied, Charge, Rule, Verdict};

use crate::answers::{Answers, OwnedCharge};
use crate::failure::Failure;
use crate::hold::Hold;
use crate::log;
use crate::patience::{Deadline, Patience};
use crate::rows::{self, Meta, Row};
use crate::transaction::{Begin, End, transact};

/// Time is noted when it has moved on by this much.
const NOTED_STEP_US: u64 = 1_000;
/// Keys that a change of a rule takes over in one step; others have their turn in between.
const CHANGED_AT_ONCE: usize = 256;

/// The file and the clock.
pub(crate) struct Engine<C> {
    pub(crate) hold: Arc<Hold>,
    pub(crate) clock: C,
    /// Whether it was given by a caller, who moves it.
    pub(crate) is_own_clock: bool,
    /// What waiting is measured by: it is never set back.
    pub(crate) monotonic: Arc<SystemClock>,
    /// How long a call may wait that names no deadline.
    pub(crate) deadline: Duration,
    /// Where the file's log is.
    pub(crate) log: PathBuf,
}

impl<C> Engine<C> {
    /// The same file on another clock.
    pub(crate) fn on_clock<D>(&self, clock: D) -> Engine<D> {
        let Self { hold, clock: _, monotonic, deadline, log, .. } = self;
        let (hold, monotonic) = (Arc::clone(hold), Arc::clone(monotonic));
        Engine { hold, clock, is_own_clock: true, monotonic, deadline: *deadline, log: log.clone() }
    }

    /// That of a call that is made now.
    pub(crate) fn deadline(&self, call: Call) -> Result<Deadline, Failure> {
        Deadline::of(&self.monotonic, call, self.deadline)
    }

    /// How a call waits that is made now, on the thread that makes it.
    pub(crate) fn patience(&self, call: Call) -> Result<Patience<'_>, Failure> {
        Ok(Patience::new(&self.monotonic, self.deadline(call)?))
    }
}

/// A call whose turn has come. Every verb is one transaction.
pub(crate) struct Turn<'t, 'c, C> {
    pub(crate) engine: &'t Engine<C>,
    pub(crate) patience: &'t mut Patience<'c>,
    pub(crate) call: Call,
}

impl<C: Clock> Turn<'_, '_, C> {
    /// One transaction, within the deadline. `step` is told the time, which is read in every attempt, so that a call that
    /// waited is charged at the time of its transaction.
    pub(crate) fn step<T>(
        &mut self,
        begin: Begin,
        mut step: impl FnMut(&Connection, u64) -> Result<End<T>, Failure>,
    ) -> Result<T, Failure> {
        let held = self.engine.hold.take(self.patience)?;
        if !self.patience.is_wanted() {
            return Err(Failure::timed_out());
        }
        let now_us = || self.call.instant_us().unwrap_or_else(|| self.engine.clock.now_us());
        match transact(held.connection(), self.patience, begin, |connection| step(connection, now_us()))? {
            End::Nothing(value) => Ok(value),
            End::Keep(value) => {
                log::keep_short(held.connection(), &self.engine.log);
                Ok(value)
            }
        }
    }

    /// Decides and, if everything passes, charges everything.
    pub(crate) fn check(&mut self, asks: &[Charge<'_>]) -> Result<Answers, Failure> {
        if asks.is_empty() {
            return Ok(Answers::default());
        }
        self.step(Begin::AtFirstWrite, |connection, now_us| admit(connection, now_us, asks))
    }

    /// Decides on several admissions, one after the other, all within one deadline.
    pub(crate) fn check_batch(&mut self, batch: &[Vec<OwnedCharge>]) -> Vec<Result<Answers, Failure>> {
        let mut answers = Vec::with_capacity(batch.len());
        for asks in batch {
            let is_over = !answers.is_empty() && self.patience.is_over();
            let asks = OwnedCharge::charges(asks);
            answers.push(if is_over { Err(Failure::timed_out()) } else { self.check(&asks) });
        }
        answers
    }

    /// Decides without charging.
    pub(crate) fn peek(&mut self, asks: &[Charge<'_>]) -> Result<Answers, Failure> {
        if asks.is_empty() {
            return Ok(Answers::default());
        }
        self.step(Begin::AtFirstWrite, |connection, now_us| {
            let rows = load_all(connection, asks)?;
            Ok(End::Nothing(Answers::uncharged(&verdicts(asks, &rows, now_us))))
        })
    }

    /// Gives back up to the cost of `charge` from the oldest live charges first.
    pub(crate) fn credit(&mut self, charge: &Charge<'_>) -> Result<Applied, Failure> {
        let (rule, key) = (charge.rule().name(), charge.key().as_str());
        self.step(Begin::AtFirstWrite, |connection, now_us| {
            let (Some(record), before) = Row::split(rows::load(connection, rule, key)?) else {
                return Ok(End::Nothing(Applied::default()));
            };
            let mut meta = Meta::load(connection)?;
            meta.order += 1;
            let (after, units) = record.clone().credited(meta.order, now_us, charge);
            let applied = Applied { applied: units > 0, units };
            if after == record {
                return Ok(End::Nothing(applied));
            }
            rows::save(connection, rule, key, &after, before)?;
            meta.save(connection)?;
            Ok(End::Keep(applied))
        })
    }

    /// Forgets a key. What is damaged is forgotten as well; what a newer version has written is not.
    pub(crate) fn reset(&mut self, state: &Charge<'_>) -> Result<Applied, Failure> {
        let (rule, key) = (state.rule().name(), state.key().as_str());
        self.step(Begin::AtFirstWrite, |connection, now_us| {
            let Some(bytes) = rows::bytes_of(connection, rule, key)? else {
                return Ok(End::Nothing(Applied::default()));
            };
            let units = match Record::from_bytes(&bytes) {
                Ok(record) => record.used_max(now_us),
                Err(error @ BytesError::Newer { .. }) => return Err(Failure::of_bytes(rule, key, &error)),
                Err(_) => 0,
            };
            rows::delete(connection, rule, key)?;
            Ok(End::Keep(Applied { applied: units > 0, units }))
        })
    }

    pub(crate) fn inspect(&mut self, state: &Charge<'_>) -> Result<Vec<LimitUsage>, Failure> {
        let (rule, key) = (state.rule(), state.key().as_str());
        self.step(Begin::AtFirstWrite, |connection, now_us| {
            let row = rows::load(connection, rule.name(), key)?;
            Ok(End::Nothing(Record::usages(row.as_ref().map(|row| &row.record), now_us, rule)))
        })
    }

    /// Takes over a change of a rule for the next keys after `after`; the last of them, if there were any.
    pub(crate) fn change_some(&mut self, rule: &Rule, after: &str) -> Result<Option<String>, Failure> {
        self.step(Begin::AtFirstWrite, |connection, now_us| {
            let rows = rows::keys_after(connection, rule.name(), after, CHANGED_AT_ONCE)?;
            let last = rows.last().map(|(key, _)| key.clone());
            let mut meta = Meta::load(connection)?;
            meta.order += 1;
            let mut wrote = false;
            for (key, row) in rows {
                let changed = row.record.changed(meta.order, now_us, rule);
                if changed != row.record {
                    let (_, before) = Row::split(Some(row));
                    rows::save(connection, rule.name(), &key, &changed, before)?;
                    wrote = true;
                }
            }
            if !wrote {
                return Ok(End::Nothing(last));
            }
            meta.save(connection)?;
            Ok(End::Keep(last))
        })
    }

    pub(crate) fn secret(&mut self) -> Result<[u8; SECRET_BYTES], Failure> {
        let found = self.step(Begin::AtFirstWrite, |connection, _| {
            let sql = "SELECT secret FROM meta WHERE id = 1";
            Ok(End::Nothing(connection.query_row(sql, [], |row| row.get::<_, Vec<u8>>(0))?))
        })?;
        found.try_into().map_err(|found: Vec<u8>| {
            let bytes = found.len();
            let why =
                format!("the file's secret has {bytes} bytes in place of {SECRET_BYTES}; restore the file");
            Failure::Refused(why.into())
        })
    }
}

fn admit(connection: &Connection, now_us: u64, asks: &[Charge<'_>]) -> Result<End<Answers>, Failure> {
    let rows = load_all(connection, asks)?;
    let verdicts = verdicts(asks, &rows, now_us);
    let passes = verdicts.iter().all(|verdict| verdict.allowed() || verdict.shadow());
    if !passes || !verdicts.iter().any(Verdict::allowed) {
        return Ok(End::Nothing(Answers::uncharged(&verdicts)));
    }
    let mut meta = Meta::load(connection)?;
    let mut answers = Answers::charged(ReceiptStamp { id: drawn_id()?, store: meta.number });
    for ((ask, verdict), row) in asks.iter().zip(verdicts).zip(rows) {
        // A shadow rule that would deny is not charged.
        if !verdict.allowed() {
            answers.push(StateAnswer::uncharged(verdict));
            continue;
        }
        meta.order += 1;
        let (record, before) = Row::split(row);
        let (record, answer) = Record::charged(record, meta.order, now_us, ask);
        rows::save(connection, ask.rule().name(), ask.key().as_str(), &record, before)?;
        answers.push(answer);
    }
    if now_us >= meta.noted_us + NOTED_STEP_US {
        meta.noted_us = now_us;
    }
    meta.save(connection)?;
    // What was charged on a clock that was set back has ended by the time that was noted, but not by now.
    rows::sweep_some(connection, now_us.min(meta.noted_us))?;
    Ok(End::Keep(answers))
}

fn load_all(connection: &Connection, asks: &[Charge<'_>]) -> Result<Vec<Option<Row>>, Failure> {
    let load = |ask: &Charge<'_>| rows::load(connection, ask.rule().name(), ask.key().as_str());
    asks.iter().map(load).collect()
}

fn verdicts<'a>(asks: &[Charge<'a>], rows: &[Option<Row>], now_us: u64) -> Vec<Verdict<'a>> {
    let asks = asks.iter().zip(rows);
    asks.map(|(ask, row)| Record::verdict(row.as_ref().map(|row| &row.record), now_us, ask)).collect()
}

/// An id that nobody can guess and that is not drawn twice.
fn drawn_id() -> Result<ReceiptId, Failure> {
    let drawn = getrandom::u64().map_err(|error| {
        let why = format!("the system gives no random numbers for receipts: {error}; see getrandom(2)");
        Failure::Unavailable(why.into())
    });
    Ok(ReceiptId::new(drawn?))
}
