//! The store: every verb is one transaction.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use slidegate::receipt::ReceiptId;
use slidegate::store::{CheckError, LimitUsage, Outcome, Record, ReturnError, Store, StoreError, When};
use slidegate::time::{Clock, SystemClock, WallClock};
use slidegate::{Admission, Applied, Charge, ChargeError, Decision, Key, Receipt, Rule, Verdict};

use crate::error::OpenError;
use crate::failure::Failure;
use crate::file;
use crate::hold::{Held, Hold};
use crate::log;
use crate::options::SqliteOptions;
use crate::patience::Patience;
use crate::rows::{self, Meta, Row};
use crate::transaction::{Begin, End, transact};

/// Time is noted when it has moved on by this much.
const NOTED_STEP_US: u64 = 1_000;
/// Keys that a change of a rule takes over in one step; others have their turn in between.
const CHANGED_AT_ONCE: usize = 256;

/// A store in a file that all processes of a machine share who open it.
///
/// It goes by the system's clock, which they share as well. Its futures are ready when they are first polled: they block
/// the thread while they wait for their turn and for the disk.
pub struct SqliteStore<C: Clock = WallClock> {
    pub(crate) hold: Hold,
    clock: C,
    /// What waiting is measured by: it is never set back.
    pub(crate) waits_by: SystemClock,
    deadline: Duration,
    /// Where the file's log is.
    log: PathBuf,
}

impl<C: Clock> fmt::Debug for SqliteStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// The store in the file that the options name. Where there is none it is created, for its owner only; its directory
    /// must be there.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let waits_by = SystemClock::new();
        let deadline = options.waits();
        let connection = file::open(options, &mut Patience::new(&waits_by, deadline))?;
        // Where links lead to the file, the log is beside the file.
        let path = connection.path().map_or_else(|| options.path().to_owned(), PathBuf::from);
        let log = log::of(&path);
        Ok(Self { hold: Hold::new(connection), clock: WallClock, waits_by, deadline, log })
    }
}

impl<C: Clock> SqliteStore<C> {
    /// The same store on another clock.
    ///
    /// ```no_run
    /// use slidegate::time::ManualClock;
    /// use slidegate_sqlite::{SqliteOptions, SqliteStore};
    ///
    /// let store = SqliteStore::open(&SqliteOptions::new("quota.db"))?.on_clock(ManualClock::at_us(1_000));
    /// # Ok::<(), slidegate_sqlite::OpenError>(())
    /// ```
    #[must_use]
    pub fn on_clock<D: Clock>(self, clock: D) -> SqliteStore<D> {
        let Self { hold, clock: _, waits_by, deadline, log } = self;
        SqliteStore { hold, clock, waits_by, deadline, log }
    }

    /// A secret that all have who share the file, and nobody else: receipts that leave a process are signed with it.
    pub fn secret(&self) -> Result<[u8; 32], StoreError> {
        let found = self.step(Begin::AtFirstWrite, |held| {
            let sql = "SELECT secret FROM meta WHERE id = 1";
            Ok(End::Nothing(held.connection().query_row(sql, [], |row| row.get::<_, Vec<u8>>(0))?))
        })?;
        found.try_into().map_err(|found: Vec<u8>| {
            let why =
                format!("the file's secret has {} bytes in the place of 32; restore the file", found.len());
            StoreError::Refused { why: why.into() }
        })
    }

    pub(crate) fn now_us(&self, when: When) -> u64 {
        match when {
            When::Now => self.clock.now_us(),
            When::AtUs(at_us) => at_us,
        }
    }

    /// One transaction, within the deadline.
    pub(crate) fn step<T>(
        &self,
        begin: Begin,
        mut step: impl FnMut(&Held<'_>) -> Result<End<T>, Failure>,
    ) -> Result<T, Failure> {
        let mut patience = Patience::new(&self.waits_by, self.deadline);
        let held = self.hold.take(&patience)?;
        match transact(held.connection(), &mut patience, begin, |_| step(&held))? {
            End::Nothing(value) => Ok(value),
            End::Keep(value) => {
                log::keep_short(held.connection(), &self.log);
                Ok(value)
            }
        }
    }

    fn admit<'a>(
        &self,
        held: &Held<'_>,
        when: When,
        admission: &Admission<'a>,
    ) -> Result<End<Outcome<'a>>, Failure> {
        let connection = held.connection();
        // Read in every attempt: who had to wait is charged when it is its turn.
        let now_us = self.now_us(when);
        let rows = load_all(held, admission)?;
        let mut verdicts = verdicts(admission, &rows, now_us);
        let decision = decision(admission, &verdicts);
        let charges = verdicts.iter().filter(|verdict| verdict.allowed()).count();
        if !decision.allowed() || charges == 0 {
            return Ok(End::Nothing(Outcome { decision, receipt: None }));
        }
        let mut meta = Meta::load(connection)?;
        let mut receipts = Vec::with_capacity(charges);
        for ((ask, verdict), row) in admission.asks().iter().zip(&mut verdicts).zip(rows) {
            // A shadow rule that would deny is not charged.
            if verdict.allowed() {
                meta.order += 1;
                let (record, before) = Row::split(row);
                let (record, after, receipt) = Record::charged(record, meta.order, now_us, ask);
                rows::save(connection, ask.rule.name(), ask.key.as_str(), &record, before)?;
                *verdict = after;
                receipts.push(receipt);
            }
        }
        if now_us >= meta.noted_us + NOTED_STEP_US {
            meta.noted_us = now_us;
        }
        meta.save(connection)?;
        // What was charged on a clock that was set back has ended by the time that was noted, but not by now.
        rows::sweep_some(connection, now_us.min(meta.noted_us))?;
        let receipt = Receipt::new(drawn_id()?, meta.number, receipts);
        Ok(End::Keep(Outcome { decision: self::decision(admission, &verdicts), receipt: Some(receipt) }))
    }

    /// Does `act` on the row of a key with the next order, if there is one; it says what to keep.
    fn on_row<T: Default>(
        &self,
        rule: &Rule,
        key: Key<'_>,
        act: impl Fn(Record, u64) -> (Record, T),
    ) -> Result<T, Failure> {
        self.step(Begin::AtFirstWrite, |held| {
            let connection = held.connection();
            let Some(row) = rows::load(connection, rule.name(), key.as_str())? else {
                return Ok(End::Nothing(T::default()));
            };
            let (record, before) = Row::split(Some(row));
            let record = record.expect("there is a row");
            let mut meta = Meta::load(connection)?;
            meta.order += 1;
            let (after, value) = act(record.clone(), meta.order);
            if after == record {
                return Ok(End::Nothing(value));
            }
            rows::save(connection, rule.name(), key.as_str(), &after, before)?;
            meta.save(connection)?;
            Ok(End::Keep(value))
        })
    }
}

impl<C: Clock> Store for SqliteStore<C> {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        Ok(self.step(Begin::AtFirstWrite, |held| self.admit(held, when, admission))?)
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let decided = self.step(Begin::AtFirstWrite, |held| {
            let rows = load_all(held, admission)?;
            Ok(End::Nothing(decision(admission, &verdicts(admission, &rows, self.now_us(when)))))
        });
        Ok(decided?)
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        self.give_back(when, receipt)
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        self.replace(when, receipt, actual)
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() }.into());
        }
        let charge = Charge { rule, key, cost: units };
        let credited = self.on_row(rule, key, |record, order| {
            let (record, units) = record.credited(order, self.now_us(when), &charge);
            (record, Applied { applied: units > 0, units })
        });
        Ok(credited.map_err(StoreError::from)?)
    }

    /// What is damaged is forgotten as well; what a newer version has written is not.
    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Ok(self.forget(when, rule, key)?)
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let usages = self.step(Begin::AtFirstWrite, |held| {
            let row = rows::load(held.connection(), rule.name(), key.as_str())?;
            Ok(End::Nothing(Record::usages(row.as_ref().map(|row| &row.record), self.now_us(when), rule)))
        });
        Ok(usages?)
    }

    /// A few hundred keys at a time: what is charged meanwhile under the old rule may still go on under it.
    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let last = self.step(Begin::AtFirstWrite, |held| self.change_some(held, when, rule, &after))?;
            let Some(last) = last else { return Ok(()) };
            after = last;
        }
    }
}

impl<C: Clock> SqliteStore<C> {
    /// Takes over a change for the next keys; the last of them, if there were any.
    fn change_some(
        &self,
        held: &Held<'_>,
        when: When,
        rule: &Rule,
        after: &str,
    ) -> Result<End<Option<String>>, Failure> {
        let (connection, now_us) = (held.connection(), self.now_us(when));
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
    }

    fn forget(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, Failure> {
        self.step(Begin::AtFirstWrite, |held| {
            let connection = held.connection();
            let Some(bytes) = rows::bytes_of(connection, rule.name(), key.as_str())? else {
                return Ok(End::Nothing(Applied::default()));
            };
            let units = match Record::from_bytes(&bytes) {
                Ok(record) => record.used_max(self.now_us(when)),
                Err(error @ slidegate::algorithm::BytesError::Newer { .. }) => {
                    return Err(Failure::of_bytes(rule.name(), key.as_str(), &error));
                }
                Err(_) => 0,
            };
            rows::delete(connection, rule.name(), key.as_str())?;
            Ok(End::Keep(Applied { applied: units > 0, units }))
        })
    }
}

fn load_all(held: &Held<'_>, admission: &Admission<'_>) -> Result<Vec<Option<Row>>, Failure> {
    let asks = admission.asks().iter();
    asks.map(|ask| rows::load(held.connection(), ask.rule.name(), ask.key.as_str())).collect()
}

fn verdicts<'a>(admission: &Admission<'a>, rows: &[Option<Row>], now_us: u64) -> Vec<Verdict<'a>> {
    let asks = admission.asks().iter().zip(rows);
    asks.map(|(ask, row)| Record::verdict(row.as_ref().map(|row| &row.record), now_us, ask)).collect()
}

/// Every charge shows the verdict of its state.
fn decision<'a>(admission: &Admission<'_>, verdicts: &[Verdict<'a>]) -> Decision<'a> {
    let of_charges = admission.ask_of_charge().iter().map(|&ask| verdicts[ask]);
    Decision::of_verdicts(of_charges).expect("an admission has a charge")
}

/// An id that nobody can guess and that is not drawn twice.
fn drawn_id() -> Result<ReceiptId, Failure> {
    let draw = || {
        getrandom::u64().map_err(|error| {
            let why = format!("the system gives no random numbers for receipts: {error}; see getrandom(2)");
            Failure::Unavailable(why.into())
        })
    };
    Ok(ReceiptId::new(draw()?, draw()?))
}
