//! The record of one rule and key, for stores that keep bytes.
//!
//! The store provides storage, an atomic step and a counter; the decisions are made here, by the same
//! functions as in memory.
//!
//! ```text
//! record = version  count  (created_order  state) per limit  checksum      checksum: 4 bytes, FNV-1a of all before it
//! ```

use std::time::Duration;

use super::key_state::KeyState;
use super::usage::LimitUsage;
use crate::algorithm::{BytesError, Reader, State, write_number};
use crate::charge::Charge;
use crate::decision::{StateAnswer, Verdict};
use crate::receipt::{OrderedPosition, ReceiptCharge};
use crate::rule::{Algorithm, Limit, Rule};

/// The version of the encoding. Every change of the encoding is another version.
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Expiry is rounded up to this part of a window, so that an index of expiries is not written at every charge.
const END_PARTS: u64 = 8;

/// The states of all limits of one rule for one key, and the sequence numbers from which receipts are valid for them.
///
/// `order` is the store's sequence number, which grows with every charge. A new state records the number at which it
/// was created; receipts of earlier charges give nothing back.
///
/// ```
/// use slidegate::store::Record;
/// use slidegate::Rule;
///
/// let api = Rule::new("api", "5/10s")?;
/// let ask = api.charge("alice", 2)?;
/// assert!(Record::verdict(None, 1_000, &ask).allowed());
/// let (record, answer) = Record::charged(None, 1, 1_000, &ask);
/// assert_eq!(answer.verdict(ask).remaining(), Some(3));
/// assert_eq!(Record::from_bytes(&record.to_bytes())?, record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    state: KeyState,
    /// The sequence number at which each limit's state was created.
    created_order: Vec<u64>,
}

impl Record {
    fn new(limits: &[Limit], order: u64) -> Self {
        Self { state: KeyState::new(limits), created_order: vec![order; limits.len()] }
    }

    /// The record adapted to other limits without an announced change: if it does not fit, its receipts are void.
    fn adapted_to(self, limits: &[Limit], order: u64) -> Self {
        if self.state.fits(limits) {
            return self;
        }
        Self { state: self.state.adapted_to(limits), created_order: vec![order; limits.len()] }
    }

    /// The verdict on `ask`, without charging. A key without a record is new.
    #[must_use]
    pub fn verdict<'a>(record: Option<&Self>, now_us: u64, ask: &Charge<'a>) -> Verdict<'a> {
        let limits = ask.rule.limits();
        let adapted = Self::adapted(record, limits);
        let verdicts = limits.iter().zip(adapted.states()).map(|(limit, state)| {
            if ask.cost > limit.units() {
                // Only a shadow rule gets here: it would deny a cost that can never pass.
                let usage = state.usage(limit, now_us);
                return Verdict { allowed: false, ..Verdict::of_usage(ask, limit, usage) };
            }
            Verdict::of_ruling(ask, limit, state.decide(limit, now_us, ask.cost))
        });
        Verdict::join(verdicts).expect("a rule has at least one limit")
    }

    /// The states adapted to `limits`.
    fn adapted<'r>(record: Option<&'r Self>, limits: &[Limit]) -> std::borrow::Cow<'r, KeyState> {
        use std::borrow::Cow;
        match record {
            Some(record) if record.state.fits(limits) => Cow::Borrowed(&record.state),
            Some(record) => Cow::Owned(record.state.adapted_to(limits)),
            None => Cow::Owned(KeyState::new(limits)),
        }
    }

    /// The record after the charge of `ask`, which passes, and the answer with the position of the charge.
    #[must_use]
    pub fn charged(record: Option<Self>, order: u64, now_us: u64, ask: &Charge<'_>) -> (Self, StateAnswer) {
        let Charge { rule, cost, .. } = *ask;
        let record = record.map(|record| record.adapted_to(rule.limits(), order));
        let mut record = record.unwrap_or_else(|| Self::new(rule.limits(), order));
        let charges = rule.limits().iter().zip(record.state.states_mut()).map(|(limit, state)| {
            let place = state.charge(limit, now_us, cost);
            let verdict = Verdict::of_usage(ask, limit, state.usage(limit, now_us));
            (verdict, OrderedPosition { order, position: place.position })
        });
        let (verdicts, positions): (Vec<_>, Vec<_>) = charges.unzip();
        let verdict = Verdict::join(verdicts.into_iter()).expect("a rule has at least one limit");
        (record, StateAnswer::charged(verdict, positions))
    }

    /// Takes back up to `units` of a charge; returns the largest number over the limits, as a charge expires earlier in
    /// short windows. Charges that expired by `noted_us`, the store's watermark of time, stay expired.
    pub fn refund(&mut self, noted_us: u64, now_us: u64, charge: &ReceiptCharge, units: u64) -> u64 {
        let states = self.state.states_mut().iter_mut().zip(&self.created_order);
        let given = states.map(|(state, &created_order)| {
            let place = charge.places().iter().find(|place| state.limit().keeps_state_of(&place.limit));
            let live =
                place.filter(|place| place.order >= created_order && State::expires_us(place) > noted_us);
            live.map_or(0, |place| state.refund(now_us, place, units))
        });
        given.max().unwrap_or(0)
    }

    /// The record after an excess of `units` above the cost of `charge`. If the key was reset or dropped since, a new
    /// state starts under the limits of the charge.
    #[must_use]
    pub fn with_excess(
        record: Option<Self>,
        order: u64,
        now_us: u64,
        charge: &ReceiptCharge,
        units: u64,
    ) -> Self {
        let mut record = record.unwrap_or_else(|| Self::new(&charge.limits().collect::<Vec<_>>(), order));
        record.state.charge_excess(now_us, units);
        record
    }

    /// Takes back up to the cost of `charge` from the oldest charges of every limit; returns the largest number.
    #[must_use]
    pub fn credited(self, order: u64, now_us: u64, charge: &Charge<'_>) -> (Self, u64) {
        let limits = charge.rule.limits();
        let mut record = self.adapted_to(limits, order);
        let states = limits.iter().zip(record.state.states_mut());
        let given = states.map(|(limit, state)| state.credit(limit, now_us, charge.cost)).max();
        (record, given.unwrap_or(0))
    }

    /// The record after a live change of `rule` at `now_us`: each limit continues the state of its geometry; one
    /// without starts with the largest use, and without receipts.
    #[must_use]
    pub fn changed(&self, order: u64, now_us: u64, rule: &Rule) -> Self {
        let created_order = rule.limits().iter().map(|limit| {
            let kept = self.state.states().iter().position(|state| limit.keeps_state_of(state.limit()));
            kept.map_or(order, |index| self.created_order[index])
        });
        Self { created_order: created_order.collect(), state: self.state.changed(rule, now_us) }
    }

    /// The record after the store's clock was set back from `from_us` to `to_us`. What a state that was charged later than
    /// `to_us` used at `from_us` counts as one charge at `to_us`. Its receipts before `order` are void, as after a change of
    /// its geometry.
    ///
    /// The result depends on nothing else, so a store may compute it at every later call: a denial writes nothing, and
    /// its wait holds.
    #[must_use]
    pub fn set_back(mut self, order: u64, from_us: u64, to_us: u64) -> Self {
        for (state, created_order) in self.state.states_mut().iter_mut().zip(&mut self.created_order) {
            let moved = state.clone().set_back(from_us, to_us);
            if moved != *state {
                (*state, *created_order) = (moved, order);
            }
        }
        self
    }

    /// What is used of every limit of a rule.
    #[must_use]
    pub fn usages(record: Option<&Self>, now_us: u64, rule: &Rule) -> Vec<LimitUsage> {
        let adapted = Self::adapted(record, rule.limits());
        let usages = rule.limits().iter().zip(adapted.states()).map(|(limit, state)| {
            let usage = state.usage(limit, now_us);
            LimitUsage::new(*limit, usage.used, Duration::from_micros(usage.reset_after_us))
        });
        usages.collect()
    }

    /// The largest use of any limit, as of its last charge.
    #[must_use]
    pub fn used_max(&self, now_us: u64) -> u64 {
        self.state.used_max(now_us)
    }

    /// The instant from which the record may be dropped: no charge counts then and no receipt could give anything
    /// back. It is rounded up, and therefore the same for many charges in a row.
    #[must_use]
    pub fn expires_us(&self) -> u64 {
        let ends = self.state.states().iter().map(|state| {
            let ends_us = state.ends_us();
            let step_us = match state.limit().algorithm() {
                Algorithm::SlidingLog | Algorithm::CompactLog(_) | Algorithm::Gcra => {
                    (state.limit().window_us() / END_PARTS).max(1)
                }
                // These end with a window or a bucket, so their expiry moves in steps already.
                Algorithm::SlidingBuckets(..) | Algorithm::SlidingCounter | Algorithm::FixedWindow => 1,
            };
            ends_us.checked_next_multiple_of(step_us).unwrap_or(u64::MAX)
        });
        ends.max().unwrap_or(0)
    }

    /// The record as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        write_number(&mut bytes, self.created_order.len() as u64);
        for (created_order, state) in self.created_order.iter().zip(self.state.states()) {
            write_number(&mut bytes, *created_order);
            state.write(&mut bytes);
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum);
        bytes
    }

    /// Reads bytes of [`Self::to_bytes`]. Any input gives a valid record or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        // The version is checked before the checksum: a newer version may have another checksum, or none.
        let version = Reader::new(bytes).byte()?;
        if version > VERSION {
            return Err(BytesError::Newer { version, known: VERSION });
        }
        let body = bytes.split_last_chunk::<CHECKSUM_BYTES>().filter(|(body, sum)| checksum(body) == **sum);
        let (body, _) = body.ok_or(BytesError::damaged("the checksum does not match"))?;
        Self::from_body(body)
    }

    fn from_body(body: &[u8]) -> Result<Self, BytesError> {
        let mut reader = Reader::new(body);
        if reader.byte()? != VERSION {
            return Err(BytesError::damaged("a version that never existed"));
        }
        let limits = reader.count()?;
        let (mut created_order, mut states) = (Vec::new(), Vec::new());
        for _ in 0..limits {
            created_order.push(reader.number()?);
            states.push(State::read(&mut reader)?);
        }
        reader.end()?;
        if states.is_empty() {
            return Err(BytesError::damaged("a rule has at least one limit"));
        }
        Ok(Self { state: KeyState::of(states), created_order })
    }
}

/// Detects a damaged disk. It is no protection against forgery: an attacker who can write the file can do worse.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let (basis, prime) = (0x811C_9DC5_u32, 0x0100_0193_u32);
    bytes.iter().fold(basis, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(prime)).to_le_bytes()
}

#[cfg(test)]
mod tests;
