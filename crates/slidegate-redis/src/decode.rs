//! Replies of scripts: decoded into verdicts, places and numbers.

use redis::Value;
use slidegate::decision::StateAnswer;
use slidegate::receipt::{Backlog, OrderedPosition, Position};
use slidegate::rule::{Algorithm, Limit};
use slidegate::store::StoreError;
use slidegate::{Charge, Verdict};

use crate::encode::position_step_us;

/// Reads the items of a flat reply one after the other.
#[derive(Debug)]
pub(crate) struct ReplyReader(std::vec::IntoIter<Value>);

/// The decoded reply to an admission.
pub(crate) struct AdmissionReply {
    /// One per charge.
    pub(crate) states: Vec<StateAnswer>,
    /// Whether no charge was denied; shadow rules take no part.
    pub(crate) allowed: bool,
    /// Whether any of them was charged.
    pub(crate) charged: bool,
}

impl ReplyReader {
    pub(crate) fn new(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(items) => Ok(Self(items.into_iter())),
            _ => Err(unexpected()),
        }
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.0.next().ok_or_else(unexpected)
    }

    /// A number that is not negative. Scripts send numbers from 2^53 up as decimal text; one above `u64::MAX` saturates.
    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        match self.next()? {
            Value::Int(number) => u64::try_from(number).map_err(|_| unexpected()),
            Value::BulkString(digits) => decimal(&digits).ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }

    /// A wait; `None` if the cost never passes.
    fn wait_us(&mut self) -> Result<Option<u64>, StoreError> {
        if let Some(Value::Int(-1)) = self.0.as_slice().first() {
            self.next()?;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// An instant in microseconds.
    pub(crate) fn instant_us(&mut self) -> Result<u64, StoreError> {
        let (seconds, rest_us) = (self.number()?, self.number()?);
        seconds.checked_mul(1_000_000).and_then(|us| us.checked_add(rest_us)).ok_or_else(unexpected)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.next()? {
            Value::BulkString(bytes) => Ok(bytes),
            _ => Err(unexpected()),
        }
    }
}

/// Decodes the reply of `check` and `peek` on these asks.
pub(crate) fn admission_reply(reply: Value, asks: &[Charge<'_>]) -> Result<AdmissionReply, StoreError> {
    let mut decoded =
        AdmissionReply { states: Vec::with_capacity(asks.len()), allowed: true, charged: false };
    if let Value::BulkString(bytes) = reply {
        decoded.read_binary(&bytes, asks).ok_or_else(unexpected)?;
        return Ok(decoded);
    }
    let mut reply = ReplyReader::new(reply)?;
    reply.number()?;
    for ask in asks {
        let (mut binding, mut positions) = (None, Vec::new());
        for limit in ask.rule().limits() {
            let (used, wait_us, reset_after_us) = (reply.number()?, reply.wait_us()?, reply.number()?);
            let verdict = Verdict::new(ask, limit).with_usage(used, reset_after_us);
            let passes = wait_us == Some(0);
            let verdict = if passes { verdict } else { verdict.denied(wait_us.unwrap_or(0)) };
            binding = Verdict::join(binding.into_iter().chain([verdict]));
            let place = reply.bytes()?;
            if !place.is_empty() {
                positions.push(position(limit, &place).ok_or_else(unexpected)?);
            }
        }
        decoded.push(binding.expect("a rule has at least one limit"), positions);
    }
    Ok(decoded)
}

impl AdmissionReply {
    /// The binary reply of the fast path, to one charge of one limit: three numbers of seven bytes, and the place.
    fn read_binary(&mut self, bytes: &[u8], asks: &[Charge<'_>]) -> Option<()> {
        let [ask] = asks else { return None };
        let [limit] = ask.rule().limits() else { return None };
        let number = |at: usize| u64::try_from(big_endian(bytes.get(7 * at..7 * at + 7)?)?).ok();
        let (used, wait_us, reset_after_us) = (number(0)?, number(1)?, number(2)?);
        let verdict = Verdict::new(ask, limit).with_usage(used, reset_after_us);
        let verdict = if wait_us == 0 { verdict } else { verdict.denied(wait_us) };
        let place = bytes.get(21..)?;
        let position = if place.is_empty() { None } else { Some(position(limit, place)?) };
        self.push(verdict, position);
        Some(())
    }

    /// Adds the answer to the next charge. Without positions it was not charged.
    fn push(&mut self, verdict: Verdict<'_>, positions: impl IntoIterator<Item = OrderedPosition>) {
        let mut positions = positions.into_iter().peekable();
        self.allowed &= verdict.allowed() || verdict.shadow();
        self.charged |= positions.peek().is_some();
        self.states.push(StateAnswer::charged(verdict, positions));
    }
}

/// Generation and position from the bytes of a place.
fn position(limit: &Limit, place: &[u8]) -> Option<OrderedPosition> {
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
        _ => Position::At(instant_us()? / position_step_us(limit)),
    };
    Some(OrderedPosition { order: generation, position })
}

fn big_endian(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)))
}

/// A number of decimal digits alone; one above `u64::MAX` saturates.
fn decimal(digits: &[u8]) -> Option<u64> {
    let number = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    valid.then(|| digits.iter().fold(0, number))
}

/// Only another script sends a reply of another form.
fn unexpected() -> StoreError {
    StoreError::Ambiguous { why: "a script sent a reply of an unknown form".into() }
}
