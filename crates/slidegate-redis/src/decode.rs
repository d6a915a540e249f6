//! What scripts answer: replies as verdicts, places and numbers.

use redis::Value;
use slidegate::receipt::{Backlog, Position, ReceiptCharge};
use slidegate::rule::{Algorithm, Limit};
use slidegate::store::StoreError;
use slidegate::{Admission, Charge, Verdict};

use crate::encode::unit_us;

/// The items of a flat reply, read one after the other.
#[derive(Debug)]
pub(crate) struct Reply(std::vec::IntoIter<Value>);

/// What was answered to the asks of an admission.
pub(crate) struct Answer<'a> {
    /// One per ask.
    pub(crate) verdicts: Vec<Verdict<'a>>,
    /// One per ask that was charged.
    pub(crate) charges: Vec<ReceiptCharge<'a>>,
}

impl Reply {
    pub(crate) fn new(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(items) => Ok(Self(items.into_iter())),
            _ => Err(unexpected()),
        }
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.0.next().ok_or_else(unexpected)
    }

    /// A number that is not negative; 12 bytes where it is too large for scripts to say it otherwise, and the
    /// largest there is if it is even larger.
    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        match self.next()? {
            Value::Int(number) => u64::try_from(number).map_err(|_| unexpected()),
            Value::BulkString(bytes) => {
                let mut wide = [0; 16];
                let start = wide.len().checked_sub(bytes.len()).ok_or_else(unexpected)?;
                wide[start..].copy_from_slice(&bytes);
                Ok(u64::try_from(u128::from_be_bytes(wide)).unwrap_or(u64::MAX))
            }
            _ => Err(unexpected()),
        }
    }

    /// A wait; `None` if no waiting helps.
    fn wait_us(&mut self) -> Result<Option<u64>, StoreError> {
        if let Some(Value::Int(-1)) = self.0.as_slice().first() {
            self.next()?;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// An instant in microseconds.
    pub(crate) fn instant_us(&mut self) -> Result<u64, StoreError> {
        Ok(self.number()? * 1_000_000 + self.number()?)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.next()? {
            Value::BulkString(bytes) => Ok(bytes),
            _ => Err(unexpected()),
        }
    }
}

/// What `check` and `peek` answer.
pub(crate) fn answer<'a>(reply: Value, admission: &Admission<'a>) -> Result<Answer<'a>, StoreError> {
    let mut answer = Answer { verdicts: Vec::new(), charges: Vec::new() };
    if let Value::BulkString(bytes) = reply {
        answer.short(&bytes, admission).ok_or_else(unexpected)?;
        return Ok(answer);
    }
    let mut reply = Reply::new(reply)?;
    reply.number()?;
    for &Charge { rule, key, cost } in admission.asks() {
        let (mut verdicts, mut standings) = (Vec::new(), Vec::new());
        for limit in rule.limits() {
            let (used, wait_us, reset_after_us) = (reply.number()?, reply.wait_us()?, reply.number()?);
            let verdict = Verdict::new(rule, limit).with_usage(used, reset_after_us);
            let passes = wait_us == Some(0);
            verdicts.push(if passes { verdict } else { verdict.denied(wait_us.unwrap_or(0)) });
            let place = reply.bytes()?;
            if !place.is_empty() {
                standings.push(standing(limit, &place).ok_or_else(unexpected)?);
            }
        }
        answer.verdicts.extend(Verdict::join(verdicts.into_iter()));
        if !standings.is_empty() {
            answer.charges.push(ReceiptCharge::standing(rule, key.as_str(), cost, standings));
        }
    }
    Ok(answer)
}

impl<'a> Answer<'a> {
    /// The common case in short, one ask of one limit: three numbers of seven bytes, and the place.
    fn short(&mut self, bytes: &[u8], admission: &Admission<'a>) -> Option<()> {
        let [Charge { rule, key, cost }] = admission.asks() else { return None };
        let [limit] = rule.limits() else { return None };
        let number = |at: usize| u64::try_from(big_endian(bytes.get(7 * at..7 * at + 7)?)?).ok();
        let (used, wait_us, reset_after_us) = (number(0)?, number(1)?, number(2)?);
        let verdict = Verdict::new(rule, limit).with_usage(used, reset_after_us);
        self.verdicts.push(if wait_us == 0 { verdict } else { verdict.denied(wait_us) });
        let place = bytes.get(21..)?;
        if !place.is_empty() {
            let standing = standing(limit, place)?;
            self.charges.push(ReceiptCharge::standing(rule, key.as_str(), *cost, vec![standing]));
        }
        Some(())
    }
}

/// Generation and position from the bytes of a place.
fn standing(limit: &Limit, place: &[u8]) -> Option<(u64, Position)> {
    let number = |range| big_endian(place.get(range)?);
    let instant_us =
        || Some(u64::try_from(number(6..11)?).ok()? * 1_000_000 + u64::try_from(number(11..14)?).ok()?);
    let generation = u64::try_from(number(0..6)?).ok()?;
    let position = match limit.algorithm() {
        Algorithm::Gcra => Position::Line {
            charged_us: instant_us()?,
            backlog: Backlog::new(number(14..30)?),
            given_back: u64::try_from(number(30..38)?).ok()?,
        },
        _ => Position::At(instant_us()? / unit_us(limit)),
    };
    Some((generation, position))
}

fn big_endian(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)))
}

/// A reply of another shape can only come from another script.
fn unexpected() -> StoreError {
    StoreError::Ambiguous { why: "a script answered in another form than it should".into() }
}
